"""Controller of quota records, and retention of released allocations.

The controller completes expired intents, removes the entries of deleted projects, and removes the finalizer of the
record of a deleted organization.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from remuda.identity.kinds.quotas import LEDGER_FINALIZER, Allocation, Quota
from remuda.identity.kinds.tenancy import Project
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.quota_state import without_project
from remuda.identity.quotas.writer import Apply
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, OwnerRejected
from remuda.reconcile.controller import Controller
from remuda.reconcile.leader import Leader
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source
from remuda.resources.conventions import organization_of
from remuda.resources.crud import exists, without_finalizer
from remuda.store.contract import Store

_RETRY_S = 10.0
"""The event of a record may arrive before that of its allocation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRecordController:
    """Reconciles one quota record."""

    store: Store
    clock: Clock
    ledger: Ledger

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        """Do one step, if there is one."""
        try:
            return await self._reconcile(await self.store.get(Quota, key), context)
        except (NotFound, OwnerRejected):  # the record was removed with its organization
            return Done()

    async def _reconcile(self, record: Quota, context: ReconcileContext) -> Result:
        if await self._expire_next(record, context) or await self._remove_deleted_project(record, context):
            return Requeue(0)
        if record.is_deleting and not record.spec.totals and not record.spec.intents:
            await self._remove_finalizer(record, context)
        return Done()

    async def _remove_finalizer(self, record: Quota, context: ReconcileContext) -> None:
        """Remove the finalizer of a record without usage when no allocation is active: empty ones are not counted."""
        if (await self.store.list_names(Allocation, index=("active", record.name), limit=1)).items:
            context.requeue_after(_RETRY_S)
            return
        if LEDGER_FINALIZER in record.metadata.finalizers:
            context.acted = True
            await self.store.update(without_finalizer(record, LEDGER_FINALIZER))

    async def _expire_next(self, record: Quota, context: ReconcileContext) -> bool:
        """Complete the first intent after its deadline, or requeue for the deadline of the next one."""
        intent = min(record.spec.intents, key=lambda intent: intent.deadline, default=None)
        if intent is None:
            return False
        remaining_s = (intent.deadline - self.clock.now()).total_seconds()
        if remaining_s > 0:
            context.requeue_after(remaining_s)
            return False
        context.acted = True
        await self.ledger.intents.complete_latest(record.name, intent)
        return True

    async def _remove_deleted_project(self, record: Quota, context: ReconcileContext) -> bool:
        """Remove the entry of a deleted project. A project with usage cannot be deleted."""
        for each in record.spec.projects:
            if each.totals or await exists(self.store, Project, each.project):
                continue
            context.acted = True
            await self._remove_project(record.name, each.project)
            return True
        return False

    async def _remove_project(self, organization: str, project: str) -> None:
        async def validate(_: Quota) -> tuple[Apply, None]:
            return lambda spec: without_project(spec, project), None

        await self.ledger.writer.write(organization, validate, key=project)


def _relevant(record: Quota) -> Any:
    """Return the parts of a record that require a reconcile."""
    spec = record.spec
    deadline = min((intent.deadline for intent in spec.intents), default=None)
    return record.is_deleting, deadline, bool(spec.totals), hash(tuple(each.project for each in spec.projects))


def controllers(ports: ReconcilePorts, ledger: Ledger, *, settings: ControllerSettings) -> Sequence[Controller]:
    """Return the controllers. They share the ledger of the API, so that their writes are batched, too."""
    return (
        Controller(
            "quotas",
            QuotaRecordController(store=ports.store, clock=ports.clock, ledger=ledger),
            kind=Quota,
            ports=ports,
            sources=(
                Source(Quota, when=_relevant),
                Source(Project, when=lambda project: project.is_deleting, keys=lambda each: (organization_of(each),)),
            ),
            settings=settings,
        ),
    )


_MIN_RETENTION = timedelta(days=1)
_LOOKBACK = timedelta(days=400)
"""Allocations that ended in this time before the retention are deleted, even if no process ran for so long."""
_PAGE = 100


class UsageRetention:
    """Deletes allocations that were released longer ago than the retention, while this process leads.

    They are found by the day on which they ended. Tombstones that keep late writers out are among them, so the
    retention is at least one day.
    """

    def __init__(
        self, store: Store, *, clock: Clock, leader: Leader, retention: timedelta, interval_s: float = 3600.0
    ) -> None:
        self._store, self._clock, self._leader, self._every_s = store, clock, leader, interval_s
        self._retention = max(retention, _MIN_RETENTION)

    async def run(self) -> None:
        """Delete expired allocations at each interval, until the task is cancelled."""
        while True:
            await self._clock.sleep(self._every_s)
            if self._leader.is_leading:
                await self.delete_expired()

    async def delete_expired(self) -> int:
        """Delete the allocations that are due, and return their number."""
        latest = self._clock.now() - self._retention
        deleted = 0
        for days in range(_LOOKBACK.days + 1):
            day = (latest - timedelta(days=days)).date().isoformat()
            deleted += await self._delete_day(day)
        return deleted

    async def _delete_day(self, day: str) -> int:
        deleted, after = 0, None
        while True:
            page = await self._store.list(Allocation, index=("ended", day), limit=_PAGE, after=after)
            for allocation in page.items:
                deleted += await self._delete(allocation)
            after = page.next
            if after is None:
                return deleted

    async def _delete(self, allocation: Allocation) -> bool:
        if allocation.spec.ended is None or allocation.spec.ended + self._retention > self._clock.now():
            return False
        try:
            await self._store.delete(Allocation, allocation.name, uid=allocation.uid, version=allocation.version)
        except (Conflict, NotFound):
            return False  # it was renewed, or another process deleted it
        return True
