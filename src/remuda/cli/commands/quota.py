"""``remuda quota``: how much there may be, and how much of that is used."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from remuda.cli.amounts import Limit, bytes_text, parse_limit
from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.options import Output
from remuda.cli.output import show as print_text
from remuda.cli.showing.formats import dump
from remuda.cli.showing.tables import as_table
from remuda.kernel.errors import Invalid

Scope = Annotated[
    Literal["organization", "project"],
    Parameter(name="--of", help="Whose: the organization's, which always holds, or what of it a project may have."),
]


def show(*, of: Scope = "organization", output: Output = "table", where: Where = HERE) -> None:
    """Show how much there may be, and how much of that is used."""
    with where.open() as asked:
        _show(asked.session.get("identity", _path(asked, of))["quotas"], output)


def set(  # noqa: A001  the command's name
    *limits: str, of: Scope = "organization", output: Output = "table", where: Where = HERE
) -> None:
    """Change how much there may be. What an organization may have is for administrators of the platform to say.

    Parameters
    ----------
    limits
        What there may be, such as servers=20 or filestorage=2TiB, which is in bytes where no unit is said. The others
        stay as they are.

    """
    wanted = {each.kind: each for each in map(parse_limit, limits)}
    if not wanted:
        raise Invalid("LIMITS", "are missing", remedy="say what there may be, such as servers=20")
    with where.open() as asked:
        path = _path(asked, of)
        found, state = asked.session.read("identity", path)
        known = {each["kind"]: each["quantity"] for each in found["quotas"]}
        if strange := sorted(wanted.keys() - known.keys()):
            raise Invalid("LIMITS", f"name {strange[0]}", remedy=f"the kinds are {', '.join(known)}")
        _check_units(wanted.values(), found["quotas"])
        otherwise = _otherwise(asked, found, of)
        own = {kind: number for kind, number in known.items() if number != otherwise[kind]}
        new = {kind: each.quantity for kind, each in wanted.items()}
        body = {"quotas": [{"kind": kind, "quantity": number} for kind, number in (own | new).items()]}
        asked.session.ask("PUT", "identity", path, body, match=state)
        _show(asked.session.get("identity", path)["quotas"], output)


def _path(asked: Asked, of: str) -> str:
    if of == "organization":
        return f"/api/v1/organizations/{asked.needs_organization()}/quotas"
    place = asked.needs_project()
    return f"/api/v1/organizations/{place.organization}/projects/{place.project}/quotas"


def _otherwise(asked: Asked, found: Any, of: str) -> dict[str, int]:
    """Return what holds where nothing is set: setting it too would pin it."""
    if of == "organization":
        return {each["kind"]: each["default"] for each in found["quotas"]}
    above = asked.session.get("identity", _path(asked, "organization"))
    return {each["kind"]: each["quantity"] for each in above["quotas"]}


def _check_units(wanted: Iterable[Limit], quotas: Any) -> None:
    of_bytes = {each["kind"] for each in quotas if each["format"] == "binary"}
    for each in wanted:
        if each.is_bytes and each.kind not in of_bytes:
            raise Invalid("LIMITS", f"count {each.kind} in bytes", remedy=f"say a number, such as {each.kind}=20")


def _show(quotas: Any, output: str) -> None:
    if output == "name":
        print_text("".join(f"{each['kind']}\n" for each in quotas))
    elif output == "table":
        rows = [[each["kind"], *(_number(each, name) for name in ("used", "free", "quantity"))] for each in quotas]
        print_text(as_table(["KIND", "USED", "FREE", "LIMIT"], rows))
    else:
        print_text(dump(quotas, "yaml" if output == "yaml" else "json"))


def _number(quota: Any, name: str) -> str:
    return bytes_text(quota[name]) if quota["format"] == "binary" else str(quota[name])
