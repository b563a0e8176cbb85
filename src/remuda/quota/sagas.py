"""Sagas that create an object, or update it under an operation lock, together with its quota.

An increase is reserved before the object is updated, and a decrease released after it, so that no object uses quota
that is not allocated. If the previous state cannot be restored, because its references or its quota are gone, the
object keeps the new state, and its quota.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Context, Principal, Requester, requester_of
from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, NotFound, ReferenceRejected, Unavailable
from remuda.kernel.ids import derived_id
from remuda.operations.kinds import Operation
from remuda.operations.saga import Saga, Step, Work
from remuda.operations.service import Operations
from remuda.quota.lifecycle import reserve
from remuda.quota.lock import (
    PreviousState,
    is_locked,
    is_reverting,
    lock_holder,
    locked,
    previous_state,
    restored,
    reverting,
)
from remuda.quota.ports import Charge, ChargeAmount, ProjectRef, QuotaLedger, StaleTokenError
from remuda.reconcile.sources import KeyMapper, Source, indexed
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.logs import Record
from remuda.store.objects import Resource, ResourceT

_TOO_LATE = "The change took too long and was rolled back: try again."
SpecT = TypeVar("SpecT")
RequestT = TypeVar("RequestT")
NewT = TypeVar("NewT", bound=msgspec.Struct)
ChangeT = TypeVar("ChangeT", bound="QuotaUpdate[Any, Any]")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPorts:
    """Ports of the steps."""

    store: Store
    ledger: QuotaLedger


class QuotaUpdate(msgspec.Struct, Generic[SpecT, RequestT], frozen=True, kw_only=True):
    """The input of an update that changes the quota of an object."""

    id: str
    previous: PreviousState[SpecT]
    requested: RequestT
    requester: Requester
    requested_at: datetime


def _subject_of(operation: Operation) -> Iterable[str]:
    return (operation.spec.subject,)


def operation_source(about: Kind[Any], keys: KeyMapper[Operation] = _subject_of) -> Source[Operation]:
    """Return a watch source of operations that create or update objects of a kind, which enqueues their objects.

    The begin of an operation does not count: only its end lets a controller act.
    """
    return Source(
        Operation,
        when=lambda operation: operation.phase,
        keys=keys,
        concerns=lambda operation: operation.spec.subject_kind == about.qualified,
        created=False,
    )


def created_by(store: Store, kind: type[Resource]) -> KeyMapper[Operation]:
    """Map an operation to the objects of a kind that it has created."""
    return indexed(store, kind, "operation", lambda operation: operation.name)


def create_saga(
    name: str,
    kind: Kind[ResourceT],
    input_type: type[NewT],
    *,
    id_of: Callable[[NewT], str],
    create_step: str,
    build: Callable[[QuotaPorts, Work[NewT]], Awaitable[ResourceT]],
    charge: Callable[[Work[NewT], ProjectRef], Charge] | None = None,
    reference: Callable[[str], str] | None = None,
    extra_steps: Sequence[Step[QuotaPorts, NewT]] = (),
) -> Saga[QuotaPorts, NewT]:
    """Return the saga that creates an object, which stores the operation as `spec.operation`.

    The input has the caller's request as `requested`, and the `requester`, with the payer. `reference` returns, by
    the operation, the reference that keeps the project from being removed; the project is checked again when the object
    exists. `charge` returns the quota, by its payer. `extra_steps` come before the one that creates what `build`
    returns.
    """
    steps = _CreateSteps(kind.type, id_of, build, charge, reference)
    add_reference = Step(name="add-project-reference", do=steps.add_reference, undo=steps.remove_reference)
    reserve = Step(name="reserve-quota", do=steps.reserve, undo=steps.release)
    # A deletion marks its project and then lists the objects in it: one that was created later is rejected here.
    recheck = Step(name="recheck-project", do=steps.add_reference, undo=_do_nothing)
    return Saga(
        name=name,
        input_type=input_type,
        subject=lambda new: (kind.qualified, id_of(new)),
        steps=(
            *([add_reference] if reference is not None else []),
            *([reserve] if charge is not None else []),
            *extra_steps,
            Step(name=create_step, do=steps.create, undo=steps.roll_back),
            *([recheck] if reference is not None else []),
        ),
    )


class _CreateSteps(Generic[ResourceT, NewT]):
    """The steps of a create saga, for one kind."""

    def __init__(
        self,
        kind: type[ResourceT],
        id_of: Callable[[NewT], str],
        build: Callable[[QuotaPorts, Work[NewT]], Awaitable[ResourceT]],
        charge: Callable[[Work[NewT], ProjectRef], Charge] | None,
        reference: Callable[[str], str] | None,
    ) -> None:
        self._kind, self._id_of, self._build = kind, id_of, build
        self._charge, self._reference = charge, reference

    async def add_reference(self, ports: QuotaPorts, work: Work[NewT]) -> None:
        await ports.ledger.add_reference(*self._referred(work))

    async def remove_reference(self, ports: QuotaPorts, work: Work[NewT]) -> None:
        await ports.ledger.remove_reference(*self._referred(work))

    async def reserve(self, ports: QuotaPorts, work: Work[NewT]) -> None:
        await reserve(ports.ledger, self._charged(work), _requester(work).named(work.actor_name))

    async def release(self, ports: QuotaPorts, work: Work[NewT]) -> None:
        await ports.ledger.release(self._charged(work))

    async def create(self, ports: QuotaPorts, work: Work[NewT]) -> None:
        """Create the object, unless this operation created it before."""
        new = await self._build(ports, work)
        try:
            await ports.store.create(new)
        except AlreadyExists:
            if not _is_created_by(await ports.store.get(self._kind, new.name), work.id):
                raise

    async def roll_back(self, ports: QuotaPorts, work: Work[NewT]) -> None:
        await roll_back_create(
            ports.store, self._kind, self._id_of(work.input), lambda found: _is_created_by(found, work.id)
        )

    def _referred(self, work: Work[Any]) -> tuple[ProjectRef, str]:
        assert self._reference is not None, "a saga without a reference has no such step"
        spec = work.input.requested.spec
        return ProjectRef(spec.organization_id, spec.project_id), self._reference(work.id)

    def _charged(self, work: Work[NewT]) -> Charge:
        assert self._charge is not None, "a saga without a charge has no such step"
        by = _requester(work)
        assert by.organization is not None, "the service completes the payer"
        assert by.project is not None, "the service completes the payer"
        return self._charge(work, ProjectRef(by.organization, by.project))


def _requester(work: Work[Any]) -> Requester:
    requester: Requester = work.input.requester
    return requester


def _is_created_by(resource: Any, operation: str) -> bool:
    return bool(resource.spec.operation == operation)


def update_saga(
    name: str,
    kind: Kind[ResourceT],
    input_type: type[ChangeT],
    *,
    changed: Callable[[ResourceT, ChangeT, Principal], ResourceT],
    charge: Callable[[ResourceT], Charge],
    has_secret: bool = False,
) -> Saga[QuotaPorts, ChangeT]:
    steps = _UpdateSteps(kind.type, changed, charge)
    return Saga(
        name=name,
        input_type=input_type,
        has_secret=has_secret,
        subject=lambda change: (kind.qualified, change.id),
        steps=(
            Step(name="lock", do=steps.lock, undo=steps.unlock),
            Step(name="reserve-increase", do=steps.reserve_increase, undo=steps.restore_allocation),
            Step(name="update", do=steps.change, undo=steps.restore),
            Step(name="set-allocation", do=steps.set_allocation, undo=_do_nothing),
        ),
    )


async def run_update(
    operations: Operations,
    saga: Saga[QuotaPorts, ChangeT],
    context: Context,
    found: Resource,
    requested: Any,
    *,
    now: datetime,
    log: Sequence[Record],
    **extra: Any,
) -> None:
    """Update an object with its quota, as validated, in an operation of its own. `extra` extends the input."""
    change = saga.input_type(
        id=found.name,
        previous=previous_state(found),
        requested=requested,
        requester=requester_of(context.principal),
        requested_at=now,
        **extra,
    )
    await operations.run(
        saga,
        id=derived_id(context.operation, f"{found.version} {now.isoformat()}"),
        actor=context.principal.actor_name,
        actor_name=context.principal.display_name,
        input=change,
        trace_id=context.trace_id,
        log=log,
    )


class _UpdateSteps(Generic[ResourceT, ChangeT]):
    """Steps of an update, for one kind."""

    def __init__(
        self,
        kind: type[ResourceT],
        changed: Callable[[ResourceT, ChangeT, Principal], ResourceT],
        charge: Callable[[ResourceT], Charge],
    ) -> None:
        self._kind, self._changed, self._charge = kind, changed, charge

    async def lock(self, ports: QuotaPorts, work: Work[ChangeT]) -> None:
        """Lock the object, if it is still the one that was validated."""
        while True:
            found = await ports.store.get(self._kind, work.input.id)
            work.subject.uid = found.uid
            if lock_holder(found) == work.id:
                return
            is_other = found.is_deleting or previous_state(found) != work.input.previous
            if is_other or await is_locked(ports.store, found):
                raise Conflict(self._kind.__name__, found.name)
            with suppress(Conflict):
                await ports.store.update(locked(found, work.id))
                return

    async def unlock(self, ports: QuotaPorts, work: Work[ChangeT]) -> None:
        await self._rewrite(ports, work, lambda found: locked(found, ""))

    async def reserve_increase(self, ports: QuotaPorts, work: Work[ChangeT]) -> None:
        """Reserve the maximum of the old and the new quota."""
        found = await self._get_locked(ports, work)
        await _change_allocation(ports.ledger, _greatest(self._charge(found), self._charge(self._updated(found, work))))

    async def set_allocation(self, ports: QuotaPorts, work: Work[ChangeT]) -> None:
        """Set the allocation to the quota of the current state, unless another operation or a deletion owns it."""
        found = await find(ports.store, self._kind, work.input.id, include_deleting=False)
        if found is not None and lock_holder(found) == work.id and is_reverting(found):
            raise Unavailable(_TOO_LATE)
        await self._set_allocation(ports, work, found)

    async def restore_allocation(self, ports: QuotaPorts, work: Work[ChangeT]) -> None:
        await self._rewrite(ports, work, reverting)
        await self._set_allocation(
            ports, work, await find(ports.store, self._kind, work.input.id, include_deleting=False)
        )

    async def change(self, ports: QuotaPorts, work: Work[ChangeT]) -> None:
        """Update the object, unless that was done before."""
        while True:
            found = await self._get_locked(ports, work)
            if found.is_deleting:
                raise Conflict(self._kind.__name__, found.name)
            if previous_state(found) != work.input.previous:
                return
            with suppress(Conflict):
                await ports.store.update(self._updated(found, work))
                return

    def _updated(self, found: ResourceT, work: Work[ChangeT]) -> ResourceT:
        return self._changed(found, work.input, work.input.requester.named(work.actor_name))

    async def restore(self, ports: QuotaPorts, work: Work[ChangeT]) -> None:
        """Restore the previous state. Reserve its quota first, again if the fencing token was incremented meanwhile."""
        with suppress(ReferenceRejected, Forbidden):
            while (found := await self._rewrite(ports, work, reverting)) is not None:
                was = restored(found, work.input.previous)
                if not found.is_deleting:
                    await _change_allocation(ports.ledger, _greatest(self._charge(found), self._charge(was)))
                with suppress(Conflict):
                    await ports.store.update(was)
                    return

    async def _set_allocation(self, ports: QuotaPorts, work: Work[ChangeT], found: ResourceT | None) -> None:
        if found is None or (lock_holder(found) != work.id and await is_locked(ports.store, found)):
            return
        await _change_allocation(ports.ledger, self._charge(found))

    async def _get_locked(self, ports: QuotaPorts, work: Work[ChangeT]) -> ResourceT:
        found = await ports.store.get(self._kind, work.input.id)
        if lock_holder(found) != work.id or is_reverting(found):
            raise Unavailable(_TOO_LATE)
        return found

    async def _rewrite(
        self, ports: QuotaPorts, work: Work[ChangeT], write: Callable[[ResourceT], ResourceT]
    ) -> ResourceT | None:
        """Update the object if this operation holds its lock, and return it then."""
        while True:
            found = await find(ports.store, self._kind, work.input.id)
            if found is None or lock_holder(found) != work.id:
                return None
            with suppress(Conflict):
                return await ports.store.update(write(found))


async def _do_nothing(_ports: object, _work: object) -> None:
    """Do nothing: the undo of an earlier step covers it."""


async def _change_allocation(ledger: QuotaLedger, charge: Charge) -> None:
    try:
        await _change_or_allocate(ledger, charge)
    except StaleTokenError:
        raise Unavailable(_TOO_LATE) from None


async def _change_or_allocate(ledger: QuotaLedger, charge: Charge) -> None:
    try:
        await ledger.update(charge)
    except NotFound:  # it expired, because it was not confirmed in time
        await ledger.allocate(charge)
        await ledger.update(charge)


def _greatest(one: Charge, other: Charge) -> Charge:
    amounts: dict[str, int] = {}
    for amount in (*one.amounts, *other.amounts):
        amounts[amount.kind] = max(amounts.get(amount.kind, 0), amount.committed)
    return dataclasses.replace(one, amounts=tuple(ChargeAmount(*each) for each in amounts.items()))


async def roll_back_create(
    store: Store, kind: type[ResourceT], name: str, is_own: Callable[[ResourceT], bool] = lambda _: True
) -> None:
    """Remove an object that its operation, still open, has created: no controller has acted on it.

    `is_own` says whether this operation created it, if the name does not. If another object already refers to it or
    belongs to it, its deletion stays pending until that one is removed.
    """
    while (found := await find(store, kind, name)) is not None and is_own(found):
        remaining = tuple(each for each in found.metadata.finalizers if each != CONTROLLER_FINALIZER)
        try:
            freed = await store.update(replace(found, metadata=replace(found.metadata, finalizers=remaining)))
            if not freed.is_deleting:
                await store.delete(kind, freed.name, uid=freed.uid, version=freed.version)
        except Conflict:
            continue
        except NotFound:
            pass  # it was removed meanwhile
        return
