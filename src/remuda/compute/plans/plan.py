"""The plan: what a change of an instance does, and what becomes of what it has.

A pure function of what was wanted, what is wanted now, what the catalogue says of either, and what the region's
provider can do, and can do with a server that has failed. What else is known of the instance (its addresses, whether
it runs, whether its server is being made anew) is told, and decides nothing: neither what is done, nor what needs
consent, nor the hash.

The hash of a plan: whoever sends it back has seen this plan, and no other.

It covers which instance it is about (its uid, so not one that was made again under the same name), all that a client
may change of it, before and after, and the flavors and images involved, as they are on offer. So another PUT in
between, or a flavor that has become another one, makes another plan. What is only observed is not in it: addresses,
power, how many of a flavor are free, whether an image is ready, what is held of the quota until now.

Why a change would be refused if it were made now, although it could be: what it costs is not there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from remuda.compute.plans import messages as wording
from remuda.compute.plans.diff import Field, Side, StepKind, Subject, decide, networking_of
from remuda.compute.plans.messages import change_sentence
from remuda.compute.plans.schema import (
    BlockerRead,
    ChangeRead,
    Extent,
    PlanRead,
    QuotaChangeRead,
    StepRead,
    Thing,
    ThingRead,
)
from remuda.kernel.encoding import digest
from remuda.resources.schema import FlavorRead, ImageRead

_DIGITS = 32


def hash_of(
    uid: str,
    before: Side,
    after: Side,
    *,
    steps: tuple[StepRead, ...],
    lost: tuple[Thing, ...],
) -> str:
    """Return the hash of a plan. What is done and lost follows from the rest, and from what the provider can do."""
    facts = {
        "uid": uid,
        "before": _side(before),
        "after": _side(after),
        "steps": [(step.kind, [change.field for change in step.changes]) for step in steps],
        "lost": lost,
    }
    return digest(facts)[:_DIGITS]


def _side(side: Side) -> dict[str, Any]:
    return {"writable": side.writable, "flavor": _flavor(side.flavor), "image": _image(side.image)}


def _flavor(flavor: FlavorRead | None) -> Any:
    return None if flavor is None else (flavor.metadata.id, replace(flavor.spec, free=None))


def _image(image: ImageRead | None) -> Any:
    return None if image is None else (image.metadata.id, image.spec)


_ANEW: frozenset[StepKind] = frozenset({"rebuild", "replace"})
"""Steps after which it starts from a new disk."""
_OF_THE_DISK: tuple[Thing, ...] = ("rootDisk", "sshHostKeys", "memory")
_OF_THE_PORT: tuple[Thing, ...] = ("privateIP", "macAddress")
_PORTS = "ports"
_Steps = tuple[tuple[StepKind, tuple[Field, ...]], ...]


def plan_change(
    subject: Subject, before: Side, after: Side, capabilities: frozenset[str], *, takes_images: bool = True
) -> PlanRead:
    """Return what it takes to make of an instance what is wanted now. If nothing else is wanted, it is empty."""
    decided = _with_own(decide(before.server, after.server, takes_images=takes_images), before, after)
    kinds = tuple(kind for kind, _ in decided)
    steps = tuple(_step(kind, fields, subject, before, after) for kind, fields in decided)
    lost = tuple(_lost(kinds, before, after, keeps_ports=_PORTS in capabilities))
    quota = tuple(_quota(before, after))
    told, ending = tuple(thing for thing in lost if subject.runs or thing != "memory"), _ending(subject)
    return PlanRead(
        hash=hash_of(subject.uid, before, after, steps=steps, lost=lost),
        is_destructive=bool(lost),
        sentence=wording.summary(kinds, told, is_made_anew=subject.is_made_anew),
        steps=steps,
        lost=tuple(_gone(thing, subject, after) for thing in told),
        survives=tuple(_kept(thing, subject) for thing in _things(before) if thing not in {*lost, *ending}),
        downtime=wording.downtime_of(_downtime(kinds, after), subject),
        quota=quota,
    )


def _with_own(decided: _Steps, before: Side, after: Side) -> _Steps:
    """Add what is changed about the instance alone, and comes to no server."""
    own: dict[Field, bool] = {
        "metadata.tags": before.tags != after.tags,
        "spec.protection": before.protection != after.protection,
    }
    fields = tuple(field for field, is_changed in own.items() if is_changed)
    others = dict(decided)
    in_place = (*others.pop("in-place", ()), *fields)
    return (*((("in-place", in_place),) if in_place else ()), *others.items())


def _step(kind: StepKind, fields: tuple[Field, ...], subject: Subject, before: Side, after: Side) -> StepRead:
    is_applied = kind in _ANEW
    changes = tuple(
        ChangeRead(field=field, sentence=change_sentence(field, before, after, is_applied=is_applied))
        for field in fields
    )
    return StepRead(kind=kind, sentence=wording.step_sentence(kind, subject), changes=changes)


def _things(side: Side) -> Iterator[Thing]:
    """Yield what an instance has."""
    yield from ("id", "name", *_OF_THE_PORT)
    if networking_of(side).public_ip:
        yield "publicIP"
    yield from _OF_THE_DISK


def _lost(kinds: tuple[StepKind, ...], before: Side, after: Side, *, keeps_ports: bool) -> Iterator[Thing]:
    has_public, is_new = networking_of(before).public_ip, "replace" in kinds
    if is_new and not keeps_ports:
        yield from _OF_THE_PORT
    if has_public and (not networking_of(after).public_ip or (is_new and not keeps_ports)):
        yield "publicIP"
    if _ANEW.intersection(kinds):
        yield from _OF_THE_DISK


def _ending(subject: Subject) -> tuple[Thing, ...]:
    """Return what an instance has not, or not for long, whatever is changed."""
    if subject.is_made_anew:
        return _OF_THE_DISK
    return () if subject.runs else ("memory",)


def _gone(thing: Thing, subject: Subject, after: Side) -> ThingRead:
    sentence = wording.lost_sentence(thing, is_given_up=not networking_of(after).public_ip)
    return ThingRead(thing=thing, value=_value(thing, subject), sentence=sentence)


def _kept(thing: Thing, subject: Subject) -> ThingRead:
    return ThingRead(thing=thing, value=_value(thing, subject), sentence=wording.survives_sentence(thing))


def _value(thing: Thing, subject: Subject) -> str:
    known = {
        "id": subject.id,
        "name": subject.name,
        "privateIP": subject.private_ip,
        "macAddress": subject.mac_address,
        "publicIP": subject.public_ip,
    }
    return known.get(thing, "")


def _downtime(kinds: tuple[StepKind, ...], after: Side) -> Extent:
    if not _ANEW.intersection(kinds):
        return "none"
    is_virtual = after.flavor is not None and not after.flavor.spec.baremetal
    return "seconds" if is_virtual else "unknown"


def _quota(before: Side, after: Side) -> Iterator[QuotaChangeRead]:
    for kind, was, is_ in (
        ("servers", 1, 1),
        ("gpus", before.gpus, after.gpus),
        ("floatingips", int(networking_of(before).public_ip), int(networking_of(after).public_ip)),
    ):
        yield QuotaChangeRead(kind=kind, before=was, after=is_, delta=is_ - was)


def quota_blockers(changes: Sequence[QuotaChangeRead], free: Mapping[str, int]) -> Sequence[BlockerRead]:
    """Return what of a change's cost there is no room for. What nobody limits is not among what is free."""
    dearer = [each for each in changes if each.delta > 0 and each.kind in free]
    return [_blocker(each, free[each.kind]) for each in dearer if each.delta > free[each.kind]]


def _blocker(change: QuotaChangeRead, free: int) -> BlockerRead:
    sentence = (
        f"It would be refused: it takes {change.delta} more of {change.kind}, and the quota of its project and "
        f"organization leaves {max(free, 0)}. Delete something that is not needed, or have the quota raised."
    )
    return BlockerRead(reason="QuotaExceeded", sentence=sentence)
