"""What looks after the ledger: intents whose time is over, heads that go, what is left of projects that went.

Forgets rows that were released so long ago that nobody may ask for them any more.

They are found by the day on which they ended. A name that was taken to keep late writers out is among them, so nothing
is forgotten within a day, whatever an operator says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from remuda.identity.kinds.quotas import KEEPS_LEDGER, Allocation, Quota
from remuda.identity.kinds.tenancy import Project
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.quota_state import forgotten
from remuda.identity.quotas.writer import Apply
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, OwnerRejected
from remuda.reconcile.controller import Controller
from remuda.reconcile.leader import Leader
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source
from remuda.resources.conventions import organization_of
from remuda.resources.crud import exists
from remuda.store.contract import Store

_A_WHILE_S = 10.0
"""The head has an event when a row is released, but that may be seen before the row's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerController:
    """Looks after one head at a time."""

    store: Store
    clock: Clock
    ledger: Ledger

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        """Do one thing, if there is one to do."""
        try:
            return await self._look_after(await self.store.get(Quota, key), run)
        except (NotFound, OwnerRejected):  # it is gone, or went in this very moment, with its organization
            return Done()

    async def _look_after(self, head: Quota, run: ReconcileContext) -> Result:
        if await self._closes(head, run) or await self._forgets(head, run):
            return Requeue(0)
        if head.is_deleting and not head.spec.totals and not head.spec.intents:
            await self._let_go(head, run)
        return Done()

    async def _let_go(self, head: Quota, run: ReconcileContext) -> None:
        """Let a head go that counts nothing, when no row is living either: one that holds nothing is not counted."""
        if (await self.store.list_names(Allocation, index=("living", head.name), limit=1)).items:
            run.requeue_after(_A_WHILE_S)
            return
        finalizers = tuple(each for each in head.metadata.finalizers if each != KEEPS_LEDGER)
        if finalizers != head.metadata.finalizers:
            run.acted = True
            await self.store.update(replace(head, metadata=replace(head.metadata, finalizers=finalizers)))

    async def _closes(self, head: Quota, run: ReconcileContext) -> bool:
        """End the first intent whose time is over, and ask to be woken when that of the next one is."""
        intent = min(head.spec.intents, key=lambda intent: intent.deadline, default=None)
        if intent is None:
            return False
        left_s = (intent.deadline - self.clock.now()).total_seconds()
        if left_s > 0:
            run.requeue_after(left_s)
            return False
        run.acted = True
        await self.ledger.settling.close(head.name, intent)
        return True

    async def _forgets(self, head: Quota, run: ReconcileContext) -> bool:
        """Drop what is left of a project that is gone. One that holds something cannot be."""
        for each in head.spec.projects:
            if each.totals or await exists(self.store, Project, each.project):
                continue
            run.acted = True
            await self._forget(head.name, each.project)
            return True
        return False

    async def _forget(self, organization: str, project: str) -> None:
        async def judge(_: Quota) -> tuple[Apply, None]:
            return lambda spec: forgotten(spec, project), None

        await self.ledger.heads.write(organization, judge, about=project)


def _what_matters(head: Quota) -> Any:
    """Let through what gives the controller work: intents, the mark, and what is left of projects and totals."""
    spec = head.spec
    deadline = min((intent.deadline for intent in spec.intents), default=None)
    return head.is_deleting, deadline, bool(spec.totals), hash(tuple(each.project for each in spec.projects))


def drivers(ports: ReconcilePorts, ledger: Ledger, *, settings: ControllerSettings) -> Sequence[Controller]:
    """Return the room's controllers, which use the same ledger as its service: what they write is combined, too."""
    return (
        Controller(
            "quotas",
            LedgerController(store=ports.store, clock=ports.clock, ledger=ledger),
            kind=Quota,
            ports=ports,
            sources=(
                Source(Quota, when=_what_matters),
                Source(Project, when=lambda project: project.is_deleting, keys=lambda each: (organization_of(each),)),
            ),
            settings=settings,
        ),
    )


_AT_LEAST = timedelta(days=1)
_LOOKS_BACK = timedelta(days=400)
"""So long can no process have run, and what ended in that time is forgotten all the same."""
_PAGE = 100


class Retention:
    """Looks for such rows now and then, if this process leads."""

    def __init__(
        self, store: Store, *, clock: Clock, leader: Leader, usage_kept: timedelta, every_s: float = 3600.0
    ) -> None:
        self._store, self._clock, self._leader, self._every_s = store, clock, leader, every_s
        self._kept = max(usage_kept, _AT_LEAST)

    async def keep(self) -> None:
        """Look for ever: a duty."""
        while True:
            await self._clock.sleep(self._every_s)
            if self._leader.is_leading:
                await self.forget()

    async def forget(self) -> int:
        """Forget what is due, and return how many rows that were."""
        last = self._clock.now() - self._kept
        forgotten = 0
        for days in range(_LOOKS_BACK.days + 1):
            day = (last - timedelta(days=days)).date().isoformat()
            forgotten += await self._forget_day(day)
        return forgotten

    async def _forget_day(self, day: str) -> int:
        forgotten, after = 0, None
        while True:
            page = await self._store.list(Allocation, index=("ended", day), limit=_PAGE, after=after)
            for row in page.items:
                forgotten += await self._forget(row)
            after = page.next
            if after is None:
                return forgotten

    async def _forget(self, row: Allocation) -> bool:
        if row.spec.ended is None or row.spec.ended + self._kept > self._clock.now():
            return False
        try:
            await self._store.delete(Allocation, row.name, uid=row.uid, version=row.version)
        except (Conflict, NotFound):
            return False  # it was renewed, or somebody else was faster
        return True
