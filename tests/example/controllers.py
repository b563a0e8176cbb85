"""What makes the livery's intent true: one controller each for mounts, yards and ledgers.

A mount is made in the pasture only after the operation that made the object is done and its stall is confirmed, and
the object goes only after the pasture no longer has the mount and the stall is given back. One pass does one effect.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, set_condition
from remuda.kernel.errors import AlreadyExists, Forbidden, NotFound
from remuda.operations.kinds import OPEN_PHASES, Operation, Phase
from remuda.providers.absence import AbsenceTracker
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue, Result
from remuda.store.contract import Store
from tests.example.kinds import KEEPS_LEDGER, Intent, Ledger, Mount, Stall, Yard
from tests.example.looking import pasture_name
from tests.example.pasture import Grazing, Pasture
from tests.example.stalls import Stalls

RELEASED_ROWS_KEEP = timedelta(days=1)
"""Longer than anybody sleeps who could still want a released row's name."""

_SOON_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class MountController:
    """Makes, keeps and removes what a mount has in the pasture."""

    store: Store
    clock: Clock
    stalls: Stalls
    pasture: Pasture
    absences: AbsenceTracker

    async def provision(self, mount: Mount, run: ReconcileContext) -> Result | Outcome[Mount]:
        """Bring a mount one step nearer to being there."""
        phase = await self._phase(mount)
        if phase == "undone":
            marked = await self.store.delete(Mount, mount.name, uid=mount.uid, log=[run.event(mount, "Undone")])
            return Outcome(Requeue(0, "Deprovisioning", "the operation that made it was undone"), marked or mount)
        if phase != "done":
            return _waits_for_operation(phase)
        if not await self.stalls.is_settled(mount.spec.yard, mount.spec.operation):
            return await self._settle(mount, run)
        found = await self.pasture.find(pasture_name(mount))
        if found is None:
            return await self._turn_out(mount, run)
        self.absences.clear(found.name)
        if found.paddock != mount.spec.paddock:
            await self.pasture.move(found.name, mount.spec.paddock)
            moved = run.event(mount, "Moved", paddock=mount.spec.paddock)
            return Outcome(Requeue(_SOON_S, message="being led to another paddock"), mount, [moved])
        return Outcome(Done(), self._seen(mount, found))

    async def deprovision(self, mount: Mount, run: ReconcileContext) -> Result | Outcome[Mount]:
        """Bring a mount one step nearer to being gone: the pasture first, then the stall."""
        name, phase = pasture_name(mount), await self._phase(mount)
        if phase in OPEN_PHASES:
            return _waits_for_operation(phase)
        if phase != "undone":
            if await self.pasture.find(name) is not None:
                self.absences.clear(name)
                await self.pasture.bring_in(name)
                brought_in = run.event(mount, "BroughtIn")
                return Outcome(Requeue(_SOON_S, message="being brought in"), mount, [brought_in])
            if not self.absences.record_missing(name):
                return Requeue(self.absences.delay_s, message="looking whether it is really gone")
            await self.stalls.give_back(mount.spec.yard, mount.spec.operation)
        self.absences.clear(name)
        return Done()

    async def _settle(self, mount: Mount, run: ReconcileContext) -> Result:
        yard, operation = mount.spec.yard, mount.spec.operation
        run.acted = True
        try:
            if not await self.stalls.confirm(yard, operation):
                await self.stalls.take(yard, operation, again=True)
        except Forbidden:
            return Blocked("QuotaExceeded", "its yard has no stall for it any more")
        return Requeue(0, message="its stall is being confirmed")

    async def _turn_out(self, mount: Mount, run: ReconcileContext) -> Result | Outcome[Mount]:
        name, was_there = pasture_name(mount), bool(mount.status.pasture_id)
        if was_there and not self.absences.record_missing(name):
            return Requeue(self.absences.delay_s, message="it is not where it was, looking for it once more")
        try:
            await self.pasture.turn_out(name, mount.spec.breed, mount.spec.paddock)
        except AlreadyExists:
            return Requeue(_SOON_S, message="being turned out")  # an answer was lost, or a read was old: look again
        self.absences.clear(name)
        turned_out = run.event(mount, "TurnedOutAgain" if was_there else "TurnedOut")
        forgotten = replace(mount, status=replace(mount.status, pasture_id="", paddock=""))
        return Outcome(Requeue(_SOON_S, message="being turned out"), forgotten, [turned_out])

    def _seen(self, mount: Mount, found: Grazing) -> Mount:
        conditions = with_health(mount, is_healthy=True, clock=self.clock)
        status = replace(mount.status, pasture_id=found.id, paddock=found.paddock, conditions=conditions)
        return replace(mount, status=status)

    async def _phase(self, mount: Mount) -> Phase:
        """Return how the operation that made a mount stands; one that nobody remembers is long done."""
        try:
            return (await self.store.get(Operation, mount.spec.operation)).phase
        except NotFound:
            return "done"


def _waits_for_operation(phase: Phase) -> Blocked:
    return Blocked("OperationOpen", f"the operation that makes it is {phase}")


def with_health(mount: Mount, *, is_healthy: bool, clock: Clock) -> tuple[Condition, ...]:
    """Return the conditions of a mount that was seen, or missed, in the pasture."""
    health = Condition(
        type="Healthy",
        status="True" if is_healthy else "False",
        reason="Healthy" if is_healthy else "Degraded",
        message="grazing" if is_healthy else "not where it should be",
        last_transition_time=clock.now().replace(microsecond=0),
    )
    return set_condition(mount.status.conditions, health)


@dataclass(frozen=True, slots=True, kw_only=True)
class YardController:
    """Keeps a yard's ledger at the yard's limit."""

    stalls: Stalls

    async def provision(self, yard: Yard, run: ReconcileContext) -> Result:  # noqa: ARG002  the signature of a step
        """Write the limit into the ledger."""
        if await self.stalls.set_limit(yard):
            return Done()
        return Blocked("TooFull", "more mounts stand in it than it is to have stalls")

    async def deprovision(self, yard: Yard, run: ReconcileContext) -> Result:  # noqa: ARG002  the signature of a step
        """Do nothing: what it owns is gone already, or it would not be asked."""
        return Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerController:
    """Settles what was left open in a ledger, and lets it go when nobody holds a stall."""

    store: Store
    clock: Clock
    stalls: Stalls

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        """Look after one ledger."""
        try:
            head = await self.store.get(Ledger, key)
        except NotFound:
            return Done()
        for intent in head.spec.intents:
            if await self._settled(head, intent, run):
                return Requeue(0)
        if head.is_deleting and not head.spec.used and not head.spec.intents:
            await self._let_go(head, run)
            return Done()
        return await self._forget_rows(head, run)

    async def _let_go(self, head: Ledger, run: ReconcileContext) -> None:
        finalizers = tuple(each for each in head.metadata.finalizers if each != KEEPS_LEDGER)
        run.acted = True
        with suppress(NotFound):  # another process that believes to lead was faster
            await self.store.update(replace(head, metadata=replace(head.metadata, finalizers=finalizers)))

    async def _settled(self, head: Ledger, intent: Intent, run: ReconcileContext) -> bool:
        """Bring an intent to its end if whoever began it is over its time; tell whether anything was done."""
        left_s = (intent.deadline - self.clock.now()).total_seconds()
        if left_s > 0:
            run.requeue_after(left_s)
            return False
        if not intent.is_release and await self._is_wanted(intent.operation):
            run.requeue_after(_SOON_S)
            return False
        run.acted = True
        await self.stalls.give_back(head.name, intent.operation)
        return True

    async def _is_wanted(self, operation: str) -> bool:
        """Tell whether an operation is still open, or has a mount whose controller will confirm the stall."""
        try:
            if (await self.store.get(Operation, operation)).is_open:
                return True
        except NotFound:
            pass
        return bool((await self.store.list(Mount, index=("operation", operation), limit=1)).items)

    async def _forget_rows(self, head: Ledger, run: ReconcileContext) -> Result:
        for row in (await self.store.list(Stall, index=("released", head.name))).items:
            assert row.spec.released_at is not None, "a released row says since when"
            left_s = (row.spec.released_at + RELEASED_ROWS_KEEP - self.clock.now()).total_seconds()
            if left_s > 0:
                run.requeue_after(left_s)
            else:
                run.acted = True
                await self.store.delete(Stall, row.name, uid=row.uid, version=row.version)
                return Requeue(0)
        return Done()
