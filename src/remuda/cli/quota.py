"""``remuda quota``: how much there may be, and how much of that is used."""

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from remuda.cli.options import Output
from remuda.cli.output import show as print_text
from remuda.cli.showing.formats import dump
from remuda.cli.showing.tables import as_table
from remuda.cli.where import HERE, Asked, Where
from remuda.kernel.errors import Invalid

__all__ = ["set", "show"]

Scope = Annotated[
    Literal["organization", "project"],
    Parameter(name="--of", help="Whose: the organization's, which always holds, or what of it a project may have."),
]
_STEP = 1024
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


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
        What there may be, such as servers=20 gpus=4. The others stay as they are.

    """
    wanted = dict(_limit(text) for text in limits)
    if not wanted:
        raise Invalid("LIMITS", "are missing", remedy="say what there may be, such as servers=20")
    with where.open() as asked:
        path = _path(asked, of)
        found, state = asked.session.read("identity", path)
        known = {each["kind"]: each["quantity"] for each in found["quotas"]}
        if strange := sorted(wanted.keys() - known.keys()):
            raise Invalid("LIMITS", f"name {strange[0]}", remedy=f"the kinds are {', '.join(known)}")
        otherwise = _otherwise(asked, found, of)
        own = {kind: number for kind, number in known.items() if number != otherwise[kind]}
        body = {"quotas": [{"kind": kind, "quantity": number} for kind, number in (own | wanted).items()]}
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


def _limit(text: str) -> tuple[str, int]:
    kind, _, number = text.partition("=")
    if not kind or not number.isdecimal():
        raise Invalid("LIMITS", f"{text} is no limit", remedy="say what there may be, such as servers=20")
    return kind, int(number)


def _show(quotas: Any, output: str) -> None:
    if output == "name":
        print_text("".join(f"{each['kind']}\n" for each in quotas))
    elif output == "table":
        rows = [[each["kind"], *(_number(each, name) for name in ("used", "free", "quantity"))] for each in quotas]
        print_text(as_table(["KIND", "USED", "FREE", "LIMIT"], rows))
    else:
        print_text(dump(quotas, "yaml" if output == "yaml" else "json"))


def _number(quota: Any, name: str) -> str:
    number, unit = float(quota[name]), 0
    if quota["format"] != "binary":
        return str(quota[name])
    while abs(number) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:g}" if not unit else f"{number:.4g} {_UNITS[unit]}B"
