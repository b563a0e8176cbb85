"""Plan of an update: its steps, what is lost and preserved, downtime, quota, and a hash.

A pure function of the previous spec, the requested spec, the flavors and images involved, and the capabilities of the
provider. Observed state is described and decides neither the steps nor the hash.

The hash covers the uid of the instance, the writable fields and the number of rebuilds before and after, the flavors
and images as they are offered, and what is done and lost. An update in between, or a flavor that has changed, gives
another hash.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from remuda.compute.plans import messages
from remuda.compute.plans.diff import PlannedInstance, required_steps
from remuda.compute.plans.fields import Field, PlanSide, StepKind, change_message, networking_of
from remuda.compute.plans.schema import (
    Attribute,
    BlockerRead,
    Extent,
    PlanAttributeRead,
    PlanChangeRead,
    PlanRead,
    PlanStepRead,
    QuotaChangeRead,
)
from remuda.kernel.encoding import digest
from remuda.resources.schema import FlavorRead, ImageRead

_DIGITS = 32


def plan_hash(
    uid: str, before: PlanSide, after: PlanSide, *, steps: tuple[PlanStepRead, ...], lost: tuple[Attribute, ...]
) -> str:
    facts = {
        "uid": uid,
        "before": _side(before),
        "after": _side(after),
        "steps": [(step.kind, [change.field for change in step.changes]) for step in steps],
        "lost": lost,
    }
    return digest(facts)[:_DIGITS]


def _side(side: PlanSide) -> dict[str, Any]:
    facts = {"writable": side.writable, "flavor": _flavor(side.flavor), "image": _image(side.image)}
    return facts | ({"rebuilds": side.rebuilds} if side.rebuilds else {})


def _flavor(flavor: FlavorRead | None) -> Any:
    return None if flavor is None else (flavor.metadata.id, replace(flavor.spec, free=None))


def _image(image: ImageRead | None) -> Any:
    return None if image is None else (image.metadata.id, image.spec)


_NEW_DISK: frozenset[StepKind] = frozenset({"rebuild", "replace"})
_DISK_ATTRIBUTES: tuple[Attribute, ...] = ("rootDisk", "sshHostKeys", "memory")
_PORT_ATTRIBUTES: tuple[Attribute, ...] = ("privateIP", "macAddress")
_PORTS = "ports"
_Steps = tuple[tuple[StepKind, tuple[Field, ...]], ...]


def plan_update(
    subject: PlannedInstance,
    before: PlanSide,
    after: PlanSide,
    capabilities: frozenset[str],
    *,
    can_rebuild: bool = True,
) -> PlanRead:
    """Return the plan of an update; it has no steps if nothing changes."""
    decided = _with_instance_fields(required_steps(before.server, after.server, can_rebuild=can_rebuild), before, after)
    kinds = tuple(kind for kind, _ in decided)
    steps = tuple(_step(kind, fields, subject, before, after) for kind, fields in decided)
    lost = tuple(_lost(kinds, before, after, keeps_ports=_PORTS in capabilities))
    quota = tuple(_quota(before, after))
    shown, ending = tuple(each for each in lost if subject.is_running or each != "memory"), _ending(subject)
    return PlanRead(
        hash=plan_hash(subject.uid, before, after, steps=steps, lost=lost),
        is_destructive=bool(lost),
        message=messages.summary(kinds, shown, is_rebuilding=subject.is_rebuilding),
        steps=steps,
        destroyed=tuple(_lost_attribute(each, subject, after) for each in shown),
        preserved=tuple(_preserved(each, subject) for each in _attributes(before) if each not in {*lost, *ending}),
        downtime=messages.downtime_of(_downtime(kinds, after), subject),
        quota=quota,
    )


def _with_instance_fields(decided: _Steps, before: PlanSide, after: PlanSide) -> _Steps:
    """Add the fields of the instance that its server does not have."""
    own: dict[Field, bool] = {
        "metadata.tags": before.tags != after.tags,
        "spec.protection": before.protection != after.protection,
    }
    fields = tuple(field for field, is_changed in own.items() if is_changed)
    others = dict(decided)
    in_place = (*others.pop("in-place", ()), *fields)
    return (*((("in-place", in_place),) if in_place else ()), *others.items())


def _step(
    kind: StepKind, fields: tuple[Field, ...], subject: PlannedInstance, before: PlanSide, after: PlanSide
) -> PlanStepRead:
    is_applied = kind in _NEW_DISK
    changes = tuple(
        PlanChangeRead(field=field, message=change_message(field, before, after, is_applied=is_applied))
        for field in fields
    )
    return PlanStepRead(kind=kind, message=messages.step_message(kind, subject), changes=changes)


def _attributes(side: PlanSide) -> Iterator[Attribute]:
    yield from ("id", "name", *_PORT_ATTRIBUTES)
    if networking_of(side).public_ip:
        yield "publicIP"
    yield from _DISK_ATTRIBUTES


def _lost(kinds: tuple[StepKind, ...], before: PlanSide, after: PlanSide, *, keeps_ports: bool) -> Iterator[Attribute]:
    has_public, is_new = networking_of(before).public_ip, "replace" in kinds
    if is_new and not keeps_ports:
        yield from _PORT_ATTRIBUTES
    if has_public and (not networking_of(after).public_ip or (is_new and not keeps_ports)):
        yield "publicIP"
    if _NEW_DISK.intersection(kinds):
        yield from _DISK_ATTRIBUTES


def _ending(subject: PlannedInstance) -> tuple[Attribute, ...]:
    """Return the attributes that an instance does not have, or loses without this update."""
    if subject.is_rebuilding:
        return _DISK_ATTRIBUTES
    return () if subject.is_running else ("memory",)


def _lost_attribute(attribute: Attribute, subject: PlannedInstance, after: PlanSide) -> PlanAttributeRead:
    message = messages.lost_message(attribute, is_removed=not networking_of(after).public_ip)
    return PlanAttributeRead(attribute=attribute, value=_value(attribute, subject), message=message)


def _preserved(attribute: Attribute, subject: PlannedInstance) -> PlanAttributeRead:
    message = messages.preserved_message(attribute)
    return PlanAttributeRead(attribute=attribute, value=_value(attribute, subject), message=message)


def _value(attribute: Attribute, subject: PlannedInstance) -> str:
    known = {
        "id": subject.id,
        "name": subject.name,
        "privateIP": subject.private_ip,
        "macAddress": subject.mac_address,
        "publicIP": subject.public_ip,
    }
    return known.get(attribute, "")


def _downtime(kinds: tuple[StepKind, ...], after: PlanSide) -> Extent:
    if not _NEW_DISK.intersection(kinds):
        return "none"
    is_virtual = after.flavor is not None and not after.flavor.spec.baremetal
    return "seconds" if is_virtual else "unknown"


def _quota(before: PlanSide, after: PlanSide) -> Iterator[QuotaChangeRead]:
    for kind, used, needed in (
        ("servers", 1, 1),
        ("gpus", before.gpus, after.gpus),
        ("floatingips", int(networking_of(before).public_ip), int(networking_of(after).public_ip)),
    ):
        yield QuotaChangeRead(kind=kind, before=used, after=needed, delta=needed - used)


def quota_blockers(changes: Sequence[QuotaChangeRead], free: Mapping[str, int]) -> Sequence[BlockerRead]:
    """Return the changes that exceed the free quota. A kind without a limit is not in `free`."""
    limited = [each for each in changes if each.delta > 0 and each.kind in free]
    return [_blocker(each, free[each.kind]) for each in limited if each.delta > free[each.kind]]


def _blocker(change: QuotaChangeRead, free: int) -> BlockerRead:
    message = (
        f"The update would be rejected: it needs {change.delta} more of {change.kind}, and the quota of project and "
        f"organization has {max(free, 0)} left. Delete unused resources, or request more quota."
    )
    return BlockerRead(reason="QuotaExceeded", message=message)
