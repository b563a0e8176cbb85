"""Rows, and what becomes of them: names and pure transitions."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from remuda.identity.kinds.quotas import HELD, Allocation, AllocationSpec, Amounts, Intent, owner_value
from remuda.kernel.errors import AlreadyExists, KeyReused, RemudaError
from remuda.resources.conventions import (
    MODIFIED,
    NAME,
    ORGANIZATION,
    PROJECT,
    RESOURCE_ID,
    RESOURCE_KIND,
    UNNAMED,
    organization_of,
    project_of,
)
from remuda.store.objects import Metadata

_INSTANT = timedelta(microseconds=1)


class Released(AlreadyExists):
    """Raised when an operation asks for what it has given back, or did not confirm in time."""

    def __init__(self, name: str) -> None:
        super().__init__("Allocation", name)
        RemudaError.__init__(
            self, f"The allocation {name} was released: renew it, or ask for another under a new Idempotency-Key."
        )


def owner_of(row: Allocation) -> str:
    """Return what a row is for, as the index `owner` has it."""
    return owner_value(row.metadata.labels[RESOURCE_KIND], row.metadata.labels[RESOURCE_ID])


def is_living(row: Allocation) -> bool:
    """Tell whether a row holds something."""
    return row.spec.life != "released"


def same_operation(found: Allocation, wanted: Allocation) -> Allocation:
    """Return the row that was found under the name of a new one, if the same operation made it and it is living.

    One that was changed since is the same one still, whatever it holds now.
    """
    places = [(organization_of(row), project_of(row), owner_of(row)) for row in (found, wanted)]
    if places[0] != places[1]:
        raise KeyReused
    if not is_living(found):
        raise Released(found.name)
    if MODIFIED not in found.metadata.annotations and found.spec.allocations != wanted.spec.allocations:
        raise KeyReused
    return found


def held_under(row: Allocation, intent: Intent, now: datetime) -> Allocation:
    """Return a new row as it is stored: it stays until it is released. Nobody owns it, since usage outlives everybody.

    While it is living its head stays, and so does the organization.
    """
    metadata = replace(row.metadata, finalizers=(HELD,))
    return replace(row, metadata=metadata, spec=replace(row.spec, started=now, taken_under=intent.deadline))


def bar(intent: Intent, organization: str, now: datetime) -> Allocation:
    """Return a row that takes the name of one that was never made, so that nobody who was asleep can make it."""
    kind, _, name = intent.owner.partition("/")
    labels = {
        ORGANIZATION: organization,
        PROJECT: intent.project,
        RESOURCE_KIND: kind,
        RESOURCE_ID: name,
        NAME: UNNAMED,
    }
    metadata = Metadata(name=intent.allocation, labels=labels)
    return Allocation(metadata=metadata, spec=AllocationSpec(allocations=intent.holds, life="released", ended=now))


def confirmed(row: Allocation) -> Allocation:
    """Return a row whose owner has said that it is there."""
    return replace(row, spec=replace(row.spec, life="confirmed"))


def with_amounts(row: Allocation, amounts: Amounts) -> Allocation:
    """Return a row that holds this much."""
    return replace(row, spec=replace(row.spec, allocations=amounts))


def turned(row: Allocation, turn: int) -> Allocation:
    """Return a row that was changed, or ended, in this turn or a later one."""
    return replace(row, spec=replace(row.spec, turn=max(row.spec.turn, turn)))


def has_ended(row: Allocation, turn: int) -> bool:
    """Tell whether a row holds nothing any more, and will not in an earlier turn than this one."""
    return not is_living(row) and row.spec.turn >= turn


def released(row: Allocation, now: datetime) -> Allocation:
    """Return a row that holds nothing any more.

    One that was released before is another one all the same, so that whoever was about to renew it notices.
    """
    ended = now if row.spec.ended is None else max(now, row.spec.ended + _INSTANT)
    finalizers = tuple(each for each in row.metadata.finalizers if each != HELD)
    metadata = replace(row.metadata, finalizers=finalizers)
    return replace(row, metadata=metadata, spec=replace(row.spec, life="released", ended=ended))


def renewed(row: Allocation, intent: Intent, now: datetime) -> Allocation:
    """Return a row that holds again what it held. What it is for was there all the time, so it began when it did."""
    metadata = replace(row.metadata, finalizers=(*row.metadata.finalizers, HELD))
    started, under = row.spec.started or now, intent.deadline
    spec = replace(row.spec, life="unconfirmed", started=started, ended=None, taken_under=under)
    return replace(row, metadata=metadata, spec=spec)


def kept(row: Allocation, intent: Intent) -> Allocation:
    """Return a row whose owner has said that it is there since this intent to release it.

    It is another one by that, so whoever is about to release it, or was and fell asleep, notices.
    """
    return replace(row, spec=replace(row.spec, taken_under=intent.deadline))


def is_confirmed_under(row: Allocation, intent: Intent) -> bool:
    """Tell whether a row was confirmed since this intent: one that was confirmed, released and renewed was not."""
    is_same = row.spec.taken_under == intent.deadline
    return is_same and intent.action != "change" and row.spec.life == "confirmed"


def deadline_after(row: Allocation, due: datetime) -> datetime:
    """Return when the next intent about a row ends: no two do so at once, since that is what they are told apart by."""
    under = row.spec.taken_under
    return due if under is None else max(due, under + _INSTANT)


def charging(kind: str | None) -> Callable[[Allocation], bool] | None:
    """Return what tells whether a row holds something of a kind; nothing if any will do."""
    if kind is None:
        return None
    return lambda row: any(amount.kind == kind for amount in row.spec.allocations)


def was_held(row: Allocation, since: datetime | None, until: datetime | None) -> bool:
    """Tell whether a row held something at some time in a period, which includes neither of its ends but a moment."""
    started, ended = row.spec.started, row.spec.ended
    if started is None:
        return False
    if since is not None and since == until:
        return started <= since and (ended is None or since < ended)
    return (until is None or started < until) and (since is None or ended is None or ended > since)
