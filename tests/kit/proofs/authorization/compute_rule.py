"""Design section 7 as a rule for compute, whose instances are where their networks are.

Nobody we know is 401. An instance of an organization that one has nothing to do with is 404, as if it were not there,
and one of the own organization without the right is 403. A place that a path, a query or a body names is 403 outside
one's permissions, existing or not. A network is validated by region, with the permissions of the caller; one of another
project than the body says is 422. An instance that is gone is 404 for everybody but who might have read it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.kit.proofs.authorization import matrix
from tests.kit.proofs.authorization.compute_operations import PROTECTED, READ, ComputeRow
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
from tests.kit.proofs.authorization.region_rule import Region, RegionTarget, sees
from tests.kit.proofs.authorization.trial import Rule

READ_NETWORKS: Right = ("region:networks:v2", "read")


@dataclass(frozen=True, kw_only=True)
class GoneTarget(Target):
    """An instance that is gone."""


_HELD = {"home": HOME, "next door": NEXT_DOOR, "abroad": ABROAD}
_NAMED = {**_HELD, "nowhere": NOWHERE, "no such project": NO_PROJECT, "lent project": LENT}
_REGIONS: tuple[Region, ...] = ("open", "private", "absent")


def targets(row: Row) -> Iterator[Target]:
    """Yield everything that a request of this operation could be about."""
    assert isinstance(row, ComputeRow)
    match row.sort:
        case "open" | "everywhere":
            yield Target(label="")
        case "organization":
            for label, place in {"home": HOME, "abroad": ABROAD, "nowhere": NOWHERE}.items():
                for region in _REGIONS if "{regionID}" in row.path else _REGIONS[:1]:
                    yield RegionTarget(label=f"{label}, {region} region", named=place, region=region)
        case "filter":
            yield from matrix.targets(row)
        case "create":
            yield from _new()
        case "policy":
            yield from (Target(label=label, named=place) for label, place in _NAMED.items())
        case "object" | "past":
            yield from (Target(label=label, holder=place) for label, place in _HELD.items())
            yield Target(label="absent")
            if row.sort == "past":
                yield from (GoneTarget(label=f"gone from {label}", holder=place) for label, place in _HELD.items())


def _new() -> Iterator[Target]:
    for label, place in _NAMED.items():
        yield Target(label=label, named=place, holder=place if place in PLACES else HOME)
    yield Target(label="home, next door's network", named=HOME, holder=NEXT_DOOR)
    yield Target(label="home, a foreigner's network", named=HOME, holder=ABROAD)
    yield Target(label="abroad, home's network", named=ABROAD, holder=HOME)
    yield Target(label="home, no network", named=HOME)


def expected(row: Row, caller: Caller, target: Target) -> int:
    """Return the status that this request must have."""
    return _validated(row, caller, target)[0]


def missing(row: Row, caller: Caller, target: Target) -> Right | str | None:
    """Return the right that whoever is refused does not have, or what it is told instead."""
    return _validated(row, caller, target)[1]


def _validated(row: Row, caller: Caller, target: Target) -> tuple[int, Right | str | None]:
    assert isinstance(row, ComputeRow)
    if row.scope == "public":
        return row.success, None
    if not caller.is_known:
        return 401, None
    if row.right is None:
        return row.success, None
    if row.sort == "filter":
        return matrix.expected(row, caller, target), row.right
    if row.sort in {"object", "past"}:
        return _of_instance(row, caller, target)
    return _of_place(row, caller, target)


def _of_place(row: ComputeRow, caller: Caller, target: Target) -> tuple[int, Right | None]:
    """Check what names a place: a catalogue, a policy, or where an instance is to be; or what is about everything."""
    right, place = row.right, target.named
    assert right is not None
    if row.sort == "everywhere":
        return (row.success, None) if right in caller.everywhere else (403, right)
    assert place is not None, "a place is named"
    is_allowed = (
        caller.may_in_all_of(right, place.organization) if row.scope == "organization" else caller.may(right, place)
    )
    if not is_allowed:
        return 403, right
    if row.sort == "organization":
        assert isinstance(target, RegionTarget)
        return row.success if sees(caller, target.region) else 404, None
    is_trusted = row.sort == "create" and right in caller.everywhere
    if place not in PLACES and not is_trusted:
        return 404, None  # who may do everything is trusted as it is, and then told that the network is elsewhere
    return _on_network(row, caller, place, target.holder) if row.sort == "create" else (row.success, None)


def _on_network(row: ComputeRow, caller: Caller, scope: Scope, holder: Scope | None) -> tuple[int, Right | None]:
    if holder is None or not caller.knows(READ_NETWORKS, holder.organization):
        return 404, None
    if not caller.may(READ_NETWORKS, holder):
        return 403, READ_NETWORKS
    return row.success if holder == scope else 422, None


def _of_instance(row: ComputeRow, caller: Caller, target: Target) -> tuple[int, Right | str | None]:
    holder = target.holder
    if holder is None:
        return 404, None
    if isinstance(target, GoneTarget):
        return row.success if caller.may(READ, holder) else 404, None
    if not caller.knows(READ, holder.organization):
        return 404, None
    for right in filter(None, (row.first, row.right)):
        if not caller.may(right, holder):
            return 403, right
    return row.success, PROTECTED if row.state == "protected" else None


RULE = Rule(targets=targets, expected=expected, missing=missing)
