"""Design section 7 as a rule for region, whose objects are in organizations and projects that it does not own.

Nobody we know is 401. An object of an organization that one has nothing to do with is 404, as if it were not there, and
one of the own organization without the right is 403, which names the first right that is missing. A place that a path,
a query or a body names is 403 outside one's permissions, existing or not. A region that is for others is not there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.kit.proofs.authorization import matrix
from tests.kit.proofs.authorization.matrix import (
    ABROAD,
    HOME,
    LENT,
    NEXT_DOOR,
    NO_PROJECT,
    NOWHERE,
    PLACES,
    Caller,
    Right,
    Row,
    Scope,
    Target,
)
from tests.kit.proofs.authorization.region_operations import RegionRow
from tests.kit.proofs.authorization.trial import Rule

READ_REGIONS: Right = ("region:regions", "read")
ONLY_SERVICES = "only a service may replace a server"

Region = Literal["open", "private", "absent"]
"""A region that everybody sees, one that is for the home organization, and none."""


@dataclass(frozen=True, kw_only=True)
class RegionTarget(Target):
    """What a request is about, and in which region."""

    region: Region = "open"


_HELD = {"home": HOME, "next door": NEXT_DOOR, "abroad": ABROAD}
_NAMED = {**_HELD, "nowhere": NOWHERE, "no such project": NO_PROJECT, "lent project": LENT}
_REGIONS: tuple[Region, ...] = ("open", "private", "absent")


def targets(row: Row) -> Iterator[Target]:
    """Yield everything that a request of this operation could be about."""
    assert isinstance(row, RegionRow)
    match row.sort:
        case "open":
            yield Target(label="")
        case "somewhere" | "region":
            regions = _REGIONS if "{regionID}" in row.path else _REGIONS[:1]
            yield from (RegionTarget(label=f"{region} region", region=region) for region in regions)
        case "organization":
            yield from _of_organizations(row)
        case "filter":
            yield from matrix.targets(row)
        case "place":
            yield from _in_places(row)
        case "everywhere":
            yield Target(label="there", holder=HOME if row.thing else None)
            if row.thing:
                yield Target(label="absent")
        case "network" | "object":
            yield from (Target(label=label, holder=place) for label, place in _HELD.items())
            yield Target(label="absent")


def _of_organizations(row: RegionRow) -> Iterator[Target]:
    places = {"home": HOME, "abroad": ABROAD, "nowhere": NOWHERE}
    for label, place in places.items():
        held = place if row.thing and place in PLACES else None
        for region in _REGIONS if "{regionID}" in row.path and not row.thing else _REGIONS[:1]:
            yield RegionTarget(label=f"{label}, {region} region", named=place, holder=held, region=region)
    if row.thing:
        yield RegionTarget(label="absent", named=HOME)
        yield RegionTarget(label="a foreigner's through home", named=HOME, holder=ABROAD)
        yield RegionTarget(label="home's through abroad", named=ABROAD, holder=HOME)


def _in_places(row: RegionRow) -> Iterator[Target]:
    for label, place in _NAMED.items():
        yield RegionTarget(label=label, named=place)
    if row.operation == "create_network":
        yield RegionTarget(label="home, private region", named=HOME, region="private")
        yield RegionTarget(label="abroad, private region", named=ABROAD, region="private")
        yield RegionTarget(label="home, absent region", named=HOME, region="absent")


def expected(row: Row, caller: Caller, target: Target) -> int:
    """Return the status that this request must have."""
    return _validated(row, caller, target)[0]


def missing(row: Row, caller: Caller, target: Target) -> Right | str | None:
    """Return the right that whoever is refused does not have, or what it is told instead."""
    return _validated(row, caller, target)[1]


def _validated(row: Row, caller: Caller, target: Target) -> tuple[int, Right | str | None]:
    assert isinstance(row, RegionRow)
    if row.scope == "public":
        return row.success, None
    if not caller.is_known:
        return 401, None
    if row.is_for_services and caller.sort != "system":
        return 403, ONLY_SERVICES
    if row.sort == "filter":
        return matrix.expected(row, caller, target), row.right
    if row.sort in {"network", "object"}:
        return _of_object(row, caller, target.holder)
    return _of_place(row, caller, target)


def _of_place(row: RegionRow, caller: Caller, target: Target) -> tuple[int, Right | None]:
    """Validator what is about a region, an organization or a project, and not about an object of one."""
    if row.sort == "somewhere":
        is_allowed = _may_somewhere(row, caller)
    elif row.sort == "everywhere":
        is_allowed = row.right in caller.everywhere
    else:
        is_allowed = row.right is None or _may_there(row, caller, target.named)
    if not is_allowed:
        return 403, row.right
    return row.success if _is_found(row, caller, target) else 404, None


def _of_object(row: RegionRow, caller: Caller, holder: Scope | None) -> tuple[int, Right | None]:
    if holder is None:
        return 404, None
    for right in filter(None, (row.first, row.right, row.then)):
        is_of_organization = right[0] == "region:images"
        if not is_of_organization and not caller.knows(right, holder.organization):
            return 404, None
        if is_of_organization and not caller.may_in_all_of(right, holder.organization):
            return 403, right
        if not caller.may(right, holder):
            return 403, right
    return row.success, None


def _may_somewhere(row: RegionRow, caller: Caller) -> bool:
    return any(
        row.right in held for held in (caller.everywhere, *caller.organizations.values(), *caller.projects.values())
    )


def _may_there(row: RegionRow, caller: Caller, scope: Scope | None) -> bool:
    assert row.right is not None
    assert scope is not None, "a place is named"
    if row.sort == "organization":
        return caller.may_in_all_of(row.right, scope.organization)
    return caller.may(row.right, scope)


def _is_found(row: RegionRow, caller: Caller, target: Target) -> bool:
    """Tell whether all that a request names is there: the region, the project, the image."""
    if isinstance(target, RegionTarget) and not sees(caller, target.region):
        return False
    if row.sort == "place":
        return target.named in PLACES
    if row.sort == "everywhere":
        return not row.thing or target.holder is not None
    return not row.thing or (target.holder is not None and target.holder == target.named)


def sees(caller: Caller, region: Region) -> bool:
    """Tell whether a caller may know of a region."""
    homes = {*caller.organizations, *(place.organization for place in caller.projects)}
    return region == "open" or (
        region == "private" and (READ_REGIONS in caller.everywhere or HOME.organization in homes)
    )


RULE = Rule(targets=targets, expected=expected, missing=missing)
