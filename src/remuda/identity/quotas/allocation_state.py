"""Names and pure transitions of allocations."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from remuda.identity.kinds.quotas import ALLOCATION_FINALIZER, Allocation, AllocationSpec, Amounts, Intent, owner_value
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
from remuda.resources.crud import without_finalizer
from remuda.store.objects import Metadata

_INSTANT = timedelta(microseconds=1)


class AllocationReleased(AlreadyExists):
    """Raised when an operation requests an allocation that it released, or did not confirm in time."""

    def __init__(self, name: str) -> None:
        super().__init__("Allocation", name)
        RemudaError.__init__(
            self, f"The allocation {name} was released: renew it, or request another with a new Idempotency-Key."
        )


def owner_of(allocation: Allocation) -> str:
    """Return the object that an allocation is for, as the index `owner` has it."""
    return owner_value(allocation.metadata.labels[RESOURCE_KIND], allocation.metadata.labels[RESOURCE_ID])


def is_active(allocation: Allocation) -> bool:
    return allocation.spec.state != "released"


def same_operation(found: Allocation, requested: Allocation) -> Allocation:
    """Return the allocation found under the name of a new one, if the same operation created it and it is active."""
    identities = [
        (organization_of(allocation), project_of(allocation), owner_of(allocation)) for allocation in (found, requested)
    ]
    if identities[0] != identities[1]:
        raise KeyReused
    if not is_active(found):
        raise AllocationReleased(found.name)
    if MODIFIED not in found.metadata.annotations and found.spec.allocations != requested.spec.allocations:
        raise KeyReused
    return found


def reserved_under(allocation: Allocation, intent: Intent, now: datetime) -> Allocation:
    """Return a new allocation as it is stored: with a finalizer until it is released.

    It has no owner reference, because usage records outlive all objects. While it is active, its quota record remains,
    and so does the organization.
    """
    metadata = replace(allocation.metadata, finalizers=(ALLOCATION_FINALIZER,))
    return replace(
        allocation, metadata=metadata, spec=replace(allocation.spec, started=now, intent_deadline=intent.deadline)
    )


def tombstone(intent: Intent, organization: str, now: datetime) -> Allocation:
    """Return a released allocation in place of one that was never created, so that a late writer cannot create it."""
    kind, _, name = intent.owner.partition("/")
    labels = {
        ORGANIZATION: organization,
        PROJECT: intent.project,
        RESOURCE_KIND: kind,
        RESOURCE_ID: name,
        NAME: UNNAMED,
    }
    metadata = Metadata(name=intent.allocation, labels=labels)
    return Allocation(metadata=metadata, spec=AllocationSpec(allocations=intent.amounts, state="released", ended=now))


def confirmed(allocation: Allocation) -> Allocation:
    return replace(allocation, spec=replace(allocation.spec, state="confirmed"))


def with_amounts(allocation: Allocation, amounts: Amounts) -> Allocation:
    return replace(allocation, spec=replace(allocation.spec, allocations=amounts))


def with_fencing_token(allocation: Allocation, fencing_token: int) -> Allocation:
    """Return an allocation that was changed or released with this fencing token or a later one."""
    return replace(
        allocation, spec=replace(allocation.spec, fencing_token=max(allocation.spec.fencing_token, fencing_token))
    )


def is_released_for(allocation: Allocation, fencing_token: int) -> bool:
    """Return whether an allocation is released, and cannot be renewed with a fencing token before this one."""
    return not is_active(allocation) and allocation.spec.fencing_token >= fencing_token


def released(allocation: Allocation, now: datetime) -> Allocation:
    """Return a released allocation, with a new end, so that a concurrent renewal conflicts."""
    ended = now if allocation.spec.ended is None else max(now, allocation.spec.ended + _INSTANT)
    spec = replace(allocation.spec, state="released", ended=ended)
    return replace(without_finalizer(allocation, ALLOCATION_FINALIZER), spec=spec)


def renewed(allocation: Allocation, intent: Intent, now: datetime) -> Allocation:
    """Return an allocation that is active again with its former amounts. Its start does not change."""
    metadata = replace(allocation.metadata, finalizers=(*allocation.metadata.finalizers, ALLOCATION_FINALIZER))
    started, deadline = allocation.spec.started or now, intent.deadline
    spec = replace(allocation.spec, state="unconfirmed", started=started, ended=None, intent_deadline=deadline)
    return replace(allocation, metadata=metadata, spec=spec)


def retained(allocation: Allocation, intent: Intent) -> Allocation:
    """Return an allocation that was confirmed during its release, as a new version: a late release conflicts."""
    return replace(allocation, spec=replace(allocation.spec, intent_deadline=intent.deadline))


def is_confirmed_under(allocation: Allocation, intent: Intent) -> bool:
    """Return whether an allocation was confirmed since this intent; one confirmed, released and renewed was not."""
    is_same = allocation.spec.intent_deadline == intent.deadline
    return is_same and intent.action != "update" and allocation.spec.state == "confirmed"


def deadline_after(allocation: Allocation, due: datetime) -> datetime:
    """Return the deadline of the next intent of an allocation. It is unique, since it identifies the intent."""
    previous = allocation.spec.intent_deadline
    return due if previous is None else max(due, previous + _INSTANT)


def uses_kind(kind: str | None) -> Callable[[Allocation], bool] | None:
    """Return a filter of allocations with an amount of a kind, or None for all kinds."""
    if kind is None:
        return None
    return lambda allocation: any(amount.kind == kind for amount in allocation.spec.allocations)


def was_active(allocation: Allocation, since: datetime | None, until: datetime | None) -> bool:
    """Return whether an allocation was active in a period that excludes both ends, or at a moment."""
    started, ended = allocation.spec.started, allocation.spec.ended
    if started is None:
        return False
    if since is not None and since == until:
        return started <= since and (ended is None or since < ended)
    return (until is None or started < until) and (since is None or ended is None or ended > since)
