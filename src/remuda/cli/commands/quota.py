"""``remuda quota``: how much there may be, and how much of that is used.

How much there may be, as people write and read it: numbers, and bytes in powers of 1024.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.options import Output
from remuda.cli.output import as_table, dump
from remuda.cli.output import show as print_text
from remuda.kernel.errors import Invalid

_MOST = 2**53 - 1
_STEP = 1024
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LIMIT = re.compile(r"([^=]+)=([0-9]{1,99})(?: ?([KMGTPE]i)B?)?")


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of a kind there may be."""

    kind: str
    quantity: int
    is_bytes: bool
    """It was written with a unit, which only bytes have."""


def parse_limit(text: str) -> Limit:
    """Return a limit that is written such as servers=20 or filestorage=2TiB."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        remedy = "say what there may be, such as servers=20 or filestorage=2TiB"
        raise Invalid("LIMITS", f"{text} is no limit", remedy=remedy)
    kind, number, unit = found.groups(default="")
    quantity = int(number) * _STEP ** _UNITS.index(unit)
    if quantity > _MOST:
        raise Invalid("LIMITS", f"{text} is too large", remedy=f"say at most {_MOST}")
    return Limit(kind, quantity, is_bytes=bool(unit))


def bytes_text(count: int) -> str:
    """Return so many bytes as people read them."""
    number, unit = float(count), 0
    while abs(number) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:g}" if not unit else f"{number:.4g} {_UNITS[unit]}B"


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
