"""Commands ``remuda quota``. Quantities are numbers, or bytes with a binary unit."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from remuda.cli.lookup import DEFAULT_SCOPE, ScopedSession, ScopeOptions
from remuda.cli.options import Output
from remuda.cli.output import Format, as_table, dump, write
from remuda.identity.quotas.schema import QuotaPatch, QuotaRead, QuotasPatch, QuotasRead
from remuda.kernel.errors import Invalid

_MAXIMUM = 2**53 - 1
_STEP = 1024
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LIMIT = re.compile(r"([^=]+)=([0-9]{1,99})(?: ?([KMGTPE]i)B?)?")
_EXAMPLE = "give one such as servers=20 or filestorage=2TiB"


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """A limit as it was typed."""

    kind: str
    quantity: int
    is_bytes: bool
    """It has a unit, which only quantities in bytes have."""


def parse_limit(text: str) -> QuotaLimit:
    """Return a limit such as servers=20 or filestorage=2TiB."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise Invalid("LIMITS", f"{text} is not a limit", remedy=_EXAMPLE)
    kind, number, unit = found.groups(default="")
    quantity = int(number) * _STEP ** _UNITS.index(unit)
    if quantity > _MAXIMUM:
        raise Invalid("LIMITS", f"{text} is too large", remedy=f"give at most {_MAXIMUM}")
    return QuotaLimit(kind, quantity, is_bytes=bool(unit))


def bytes_text(count: int) -> str:
    number, unit = float(count), 0
    while abs(number) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:g}" if not unit else f"{number:.4g} {_UNITS[unit]}B"


QuotaLevel = Annotated[
    Literal["organization", "project"], Parameter(name="--scope", help="Show or change the limits of this.")
]


async def show(
    *, level: QuotaLevel = "organization", output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Show the limits and the usage.

    Example::

        remuda quota show --scope project
    """
    async with scope.open() as api:
        _show((await _read(api, level)).quotas, output)


async def set(  # noqa: A001  the command's name
    *limits: str, level: QuotaLevel = "organization", output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Change limits; only the operator of the platform can change those of an organization.

    Example::

        remuda quota set servers=20 filestorage=2TiB --scope project

    :param limits: Limits such as servers=20 or filestorage=2TiB; without a unit, bytes. Other limits stay unchanged.
    """
    requested = {each.kind: each for each in map(parse_limit, limits)}
    if not requested:
        raise Invalid("LIMITS", "are missing", remedy=_EXAMPLE)
    async with scope.open() as api:
        found = (await _read(api, level)).quotas
        _check_kinds("LIMITS", requested, found)
        _check_units(requested.values(), found)
        await _change(api, level, {kind: each.quantity for kind, each in requested.items()})
        _show((await _read(api, level)).quotas, output)


async def unset(
    *kinds: str, level: QuotaLevel = "organization", output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Remove limits; the defaults then apply to an organization, and its limits to a project.

    Example::

        remuda quota unset servers --scope project

    :param kinds: Kinds such as servers. Other limits stay unchanged.
    """
    if not kinds:
        raise Invalid("KINDS", "are missing", remedy="give one such as servers")
    async with scope.open() as api:
        _check_kinds("KINDS", kinds, (await _read(api, level)).quotas)
        await _change(api, level, dict.fromkeys(kinds))
        _show((await _read(api, level)).quotas, output)


async def _change(api: ScopedSession, level: str, quantities: Mapping[str, int | None]) -> None:
    """Set the limits of these kinds, and unset those without a quantity."""
    body = QuotasPatch(quotas=tuple(QuotaPatch(kind=kind, quantity=quantity) for kind, quantity in quantities.items()))
    await api.session.send("PATCH", "identity", _path(api, level), body, response_type=type(None))


def _check_kinds(argument: str, requested: Iterable[str], quotas: Iterable[QuotaRead]) -> None:
    known = [each.kind for each in quotas]
    if unknown := sorted(kind for kind in requested if kind not in known):
        raise Invalid(argument, f"name {unknown[0]}", remedy=f"the kinds are {', '.join(known)}")


async def _read(api: ScopedSession, level: str) -> QuotasRead:
    return await api.session.get("identity", _path(api, level), QuotasRead)


def _path(api: ScopedSession, level: str) -> str:
    if level == "organization":
        return f"/api/v1/organizations/{api.require_organization()}/quotas"
    project = api.require_project()
    return f"/api/v1/organizations/{project.organization}/projects/{project.project}/quotas"


def _check_units(limits: Iterable[QuotaLimit], quotas: Iterable[QuotaRead]) -> None:
    in_bytes = {each.kind for each in quotas if each.format == "binary"}
    for each in limits:
        if each.is_bytes and each.kind not in in_bytes:
            raise Invalid("LIMITS", f"give {each.kind} in bytes", remedy=f"give a number, such as {each.kind}=20")


def _show(quotas: tuple[QuotaRead, ...], output: Format) -> None:
    if output == "name":
        write("".join(f"{each.kind}\n" for each in quotas))
    elif output == "table":
        rows = [
            [each.kind, *(_quantity(each, number) for number in (each.used, each.free, each.quantity))]
            for each in quotas
        ]
        write(as_table(["KIND", "USED", "FREE", "LIMIT"], rows))
    else:
        write(dump(quotas, output))


def _quantity(quota: QuotaRead, number: int) -> str:
    return bytes_text(number) if quota.format == "binary" else str(number)
