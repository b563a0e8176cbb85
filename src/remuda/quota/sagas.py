"""Changing something together with what it costs: an operation has the object in hand meanwhile.

More is held before the object is changed, and less after it, so nobody has what is not paid for.

What cannot be put back, because a network that the object named before has gone meanwhile, or because others have what
it cost before, stays as it was changed to, and costs what that costs.

Taking back what an operation made and nobody has seen yet.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Asker
from remuda.kernel.errors import Conflict, Forbidden, NotFound, ReferenceRefused, Unavailable
from remuda.operations.kinds import Operation
from remuda.operations.saga import Saga, Step, Work
from remuda.quota.lock import Before, before_of, hand_of, in_hand_of, is_in_hand, is_taken_back, restored, taken_back
from remuda.quota.ports import Amount, Charge, Late, Ledger
from remuda.reconcile.sources import Keys, through
from remuda.resources.conventions import IN_CARE
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, ResourceT

_TOO_LATE = "The change took too long, and was taken back: try again."
SpecT = TypeVar("SpecT")
WantedT = TypeVar("WantedT")
ChangeT = TypeVar("ChangeT", bound="Change[Any, Any]")


class ChangingPorts(Protocol):
    """What the steps reach the world through."""

    @property
    def store(self) -> Store:
        """Where the objects are."""
        ...

    @property
    def identity(self) -> Ledger:
        """Where it is known what they cost."""
        ...


class Change(msgspec.Struct, Generic[SpecT, WantedT], frozen=True, kw_only=True):
    """What is needed to change an object that is to cost something else."""

    id: str
    before: Before[SpecT]
    wanted: WantedT
    by: Asker
    now: datetime


def about(kind: Kind[Any]) -> Callable[[Operation], Iterable[str]]:
    """Map an operation to the object of this kind that it makes or changes, for a source of its controller."""

    def subject(operation: Operation) -> Iterable[str]:
        spec = operation.spec
        return (spec.subject,) if spec.subject_kind == kind.qualified else ()

    return subject


def made_by(store: Store, kind: type[Resource], about: Kind[Any]) -> Keys[Operation]:
    """Map an operation about something of one kind to what it has made of another, or of the same."""
    made = through(store, kind, "operation", lambda operation: operation.name)
    return lambda operation: made(operation) if operation.spec.subject_kind == about.qualified else ()


def change_saga(
    name: str,
    kind: Kind[ResourceT],
    input_type: type[ChangeT],
    *,
    changed: Callable[[ResourceT, ChangeT], ResourceT],
    charge: Callable[[ResourceT], Charge],
    holds_secret: bool = False,
) -> Saga[ChangingPorts, ChangeT]:
    """Return the saga that changes objects of a kind together with what they cost."""
    steps = _Steps(kind.type, changed, charge)
    return Saga(
        name=name,
        input_type=input_type,
        holds_secret=holds_secret,
        subject=lambda change: (kind.qualified, change.id),
        steps=(
            Step(name="take-in-hand", do=steps.take, undo=steps.let_go),
            Step(name="hold-more", do=steps.hold_more, undo=steps.settle_back),
            Step(name="change", do=steps.change, undo=steps.put_back),
            Step(name="hold-what-it-costs", do=steps.settle, undo=_leave),
        ),
    )


class _Steps(Generic[ResourceT, ChangeT]):
    """The steps, for one kind."""

    def __init__(
        self,
        kind: type[ResourceT],
        changed: Callable[[ResourceT, ChangeT], ResourceT],
        charge: Callable[[ResourceT], Charge],
    ) -> None:
        self._kind, self._changed, self._charge = kind, changed, charge

    async def take(self, ports: ChangingPorts, work: Work[ChangeT]) -> None:
        """Take the object that was judged in hand; another one is not changed."""
        while True:
            found = await ports.store.get(self._kind, work.input.id)
            work.about.uid = found.uid
            if hand_of(found) == work.id:
                return
            is_other = found.is_marked or before_of(found) != work.input.before
            if is_other or await is_in_hand(ports.store, found):
                raise Conflict(self._kind.__name__, found.name)
            with suppress(Conflict):
                await ports.store.update(in_hand_of(found, work.id))
                return

    async def let_go(self, ports: ChangingPorts, work: Work[ChangeT]) -> None:
        """Leave the object to others."""
        await self._rewrite(ports, work, lambda found: in_hand_of(found, ""))

    async def hold_more(self, ports: ChangingPorts, work: Work[ChangeT]) -> None:
        """Hold what it costs before and after, whichever is more of each kind."""
        found = await self._taken(ports, work)
        await _hold(ports.identity, _greatest(self._charge(found), self._charge(self._changed(found, work.input))))

    async def settle(self, ports: ChangingPorts, work: Work[ChangeT]) -> None:
        """Hold what it costs as it stands. What is being deleted is its controller's; so is what another has."""
        found = await find(ports.store, self._kind, work.input.id, marked=False)
        if found is not None and hand_of(found) == work.id and is_taken_back(found):
            raise Unavailable(_TOO_LATE)
        await self._settle(ports, work, found)

    async def settle_back(self, ports: ChangingPorts, work: Work[ChangeT]) -> None:
        """Hold what it costs as it stands again."""
        await self._rewrite(ports, work, taken_back)
        await self._settle(ports, work, await find(ports.store, self._kind, work.input.id, marked=False))

    async def change(self, ports: ChangingPorts, work: Work[ChangeT]) -> None:
        """Change it, unless that was done before."""
        while True:
            found = await self._taken(ports, work)
            if found.is_marked:
                raise Conflict(self._kind.__name__, found.name)
            if before_of(found) != work.input.before:
                return
            with suppress(Conflict):
                await ports.store.update(self._changed(found, work.input))
                return

    async def put_back(self, ports: ChangingPorts, work: Work[ChangeT]) -> None:
        """Make it again what it was. Less may be held already, so that is held first.

        Whoever else puts it back begins another turn by that, so what was held here no longer counts: it is held anew.
        """
        with suppress(ReferenceRefused, Forbidden):
            while (found := await self._rewrite(ports, work, taken_back)) is not None:
                was = restored(found, work.input.before)
                if not found.is_marked:
                    await _hold(ports.identity, _greatest(self._charge(found), self._charge(was)))
                with suppress(Conflict):
                    await ports.store.update(was)
                    return

    async def _settle(self, ports: ChangingPorts, work: Work[ChangeT], found: ResourceT | None) -> None:
        if found is None or (hand_of(found) != work.id and await is_in_hand(ports.store, found)):
            return
        await _hold(ports.identity, self._charge(found))

    async def _taken(self, ports: ChangingPorts, work: Work[ChangeT]) -> ResourceT:
        found = await ports.store.get(self._kind, work.input.id)
        if hand_of(found) != work.id or is_taken_back(found):
            raise Unavailable(_TOO_LATE)
        return found

    async def _rewrite(
        self, ports: ChangingPorts, work: Work[ChangeT], write: Callable[[ResourceT], ResourceT]
    ) -> ResourceT | None:
        """Write to the object if this operation has it in hand, and return it then."""
        while True:
            found = await find(ports.store, self._kind, work.input.id)
            if found is None or hand_of(found) != work.id:
                return None
            with suppress(Conflict):
                return await ports.store.update(write(found))


async def _leave(ports: ChangingPorts, work: Work[ChangeT]) -> None:
    """Do nothing: what it costs is settled when the object is put back."""


async def _hold(identity: Ledger, charge: Charge) -> None:
    try:
        await _held(identity, charge)
    except Late:
        raise Unavailable(_TOO_LATE) from None


async def _held(identity: Ledger, charge: Charge) -> None:
    try:
        await identity.change(charge)
    except NotFound:  # it lapsed, since nobody said in time that the object is there
        await identity.allocate(charge)
        await identity.change(charge)


def _greatest(one: Charge, other: Charge) -> Charge:
    most: dict[str, int] = {}
    for amount in (*one.amounts, *other.amounts):
        most[amount.kind] = max(most.get(amount.kind, 0), amount.committed)
    return Charge(
        payer=one.payer,
        operation=one.operation,
        kind=one.kind,
        id=one.id,
        amounts=tuple(Amount(kind, committed) for kind, committed in most.items()),
        turn=one.turn,
    )


async def unmake(
    store: Store, kind: type[ResourceT], name: str, is_own: Callable[[ResourceT], bool] = lambda _: True
) -> None:
    """Remove an object with its finalizer: while its operation is open, no controller has made anything of it.

    `is_own` tells whether this operation made it, where its name does not. If somebody has seen it already and made
    something that belongs to it or names it, it is left marked, and goes when that does.
    """
    while (found := await find(store, kind, name)) is not None and is_own(found):
        left = tuple(each for each in found.metadata.finalizers if each != IN_CARE)
        try:
            freed = await store.update(replace(found, metadata=replace(found.metadata, finalizers=left)))
            if not freed.is_marked:
                await store.delete(kind, freed.name, uid=freed.uid, version=freed.version)
        except Conflict:
            continue
        except NotFound:
            pass  # it went meanwhile
        return
