"""The search for orphans in one region: what its provider has of ours, held against our objects.

Something that is nobody's in two looks in a row is recorded. It is removed only if our own timeline tells that its
object was let go (a call took effect after everybody had forgotten it), and no more of it than the breaker of mass
destruction lets pass. Everything else waits for an operator: whoever has lost the store would lose the rest as well.
A record goes when the thing is gone, looked for twice, or has its object again.

What has its object and is not as that wants it, where nobody else would notice (a port), is told to the controller.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import structlog
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.providers.contract.common import Handle, InUse
from remuda.providers.contract.provider import EventSubject
from remuda.reconcile.deletion_guard import DeletionGuard, DeletionGuardSettings, DeletionLimit
from remuda.reconcile.leader import Pace
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.results import ReconcileContext
from remuda.region.catalogue.provider_registry import Cloud
from remuda.region.kinds.orphans import Orphan, Why, claimed, new_orphan
from remuda.region.kinds.servers import Server
from remuda.region.monitor.inventory import Holding, Owners, find_holding, holdings_of
from remuda.region.monitor.metrics import MonitorMetrics
from remuda.region.networks.ipam import give_held_back
from remuda.resources.conventions import REGION
from remuda.resources.crud import find
from remuda.store.objects import Resource

_PAGE = 100
_FEW = DeletionLimit(always=20)


def orphan_breaker(ports: ReconcilePorts) -> DeletionGuard:
    """Return what keeps orphans from being removed by the dozen: they are counted against the servers there are."""
    return DeletionGuard("orphans", Server, ports=ports, settings=DeletionGuardSettings(group=_FEW, overall=_FEW))


@dataclass(slots=True, kw_only=True)
class OrphanSearch:
    """Looks for orphans, region by region."""

    ports: ReconcilePorts
    owners: Owners
    breaker: DeletionGuard
    metrics: MonitorMetrics
    pace: Pace
    wake: Callable[[str], None]
    """Tells the controller of servers whom to look after."""
    _suspects: set[tuple[EventSubject, Handle]] = field(default_factory=set, init=False)
    """What was nobody's in the last look."""

    async def look(self, cloud: Cloud) -> None:
        """Look at everything once. A look that fails on the way has not been."""
        suspects: set[tuple[EventSubject, Handle]] = set()
        for holding in holdings_of(cloud.provider):
            async with aclosing(holding.parts()) as parts:
                async for part in parts:
                    for handle, thing in part:
                        await self.pace.step()
                        owner = await self.owners.owner_of(holding, handle)
                        if not isinstance(owner, Resource):
                            suspects.add((holding.subject, handle))
                            await self._meet(cloud, holding, handle, owner)
                        elif not holding.is_as_wanted(thing, owner):
                            self.wake(owner.name)
        self._suspects = suspects
        await self._review(cloud)

    async def _meet(self, cloud: Cloud, holding: Holding, handle: Handle, why: Why) -> None:
        """Record something that is nobody's, if it was so before, and remove it, if that is ours to decide."""
        wanted = new_orphan(cloud.region.name, holding.subject, handle, why, self.ports.clock.now())
        record = await find(self.ports.store, Orphan, wanted.name)
        if record is None:
            if (holding.subject, handle) not in self._suspects or await holding.find(handle) is None:
                return
            record = await self._create(wanted)
        elif record.spec.why != why:
            record = await self.ports.store.update(replace(record, spec=replace(record.spec, why=why)))
        if why == "ObjectLetGo":
            await self._remove(holding, record)

    async def _create(self, wanted: Orphan) -> Orphan:
        run = self._run(wanted)
        run.log.warning(
            "orphan found", subject=wanted.spec.subject, name=wanted.spec.provider_name, why=wanted.spec.why
        )
        with suppress(AlreadyExists):  # another process that believes to lead was faster
            return await self.ports.store.create(wanted, log=[run.event(wanted, "Found", why=wanted.spec.why)])
        return await self.ports.store.get(Orphan, wanted.name)

    async def _remove(self, holding: Holding, record: Orphan) -> None:
        now = self.ports.clock.now()
        if record.spec.is_claimed("adoption", now):
            return
        with suppress(Conflict):  # another process counts, or an operator is at it: at the next look
            if await self.breaker.allow(record, self._run(record)) is None:
                if not record.spec.is_claimed("removal", now):
                    await self.ports.store.update(claimed(record, "removal", now))
                with suppress(InUse):  # what stands on it goes first
                    await holding.remove(record.spec.handle)

    async def _review(self, cloud: Cloud) -> None:
        """Drop the records of what is gone or has its object again, and count the others."""
        counts: Counter[str] = Counter()
        after: str | None = None
        while True:
            page = await self.ports.store.list(Orphan, labels={REGION: cloud.region.name}, limit=_PAGE, after=after)
            for record in page.items:
                await self.pace.step()
                if await self._is_over(cloud, record):
                    await self._drop(record)
                else:
                    counts[record.spec.subject] += 1
            after = page.next
            if after is None:
                break
        self.metrics.show_orphans(cloud.region.name, counts)

    async def _is_over(self, cloud: Cloud, record: Orphan) -> bool:
        holding = find_holding(cloud.provider, record.spec.subject)
        if holding is None:
            return False
        handle, key = record.spec.handle, ("orphan", record.name)
        is_owned = await self.owners.why_orphaned(holding, handle) is None
        if await holding.find(handle) is not None:
            cloud.absences.clear(key)
            return is_owned
        if not cloud.absences.record_missing(key):
            return False
        if not is_owned and record.spec.holds_address:  # else it is its object's, which gives it back itself
            await give_held_back(self.ports.store, record.spec.object_id, record.spec.object_uid)
        return True

    async def _drop(self, record: Orphan) -> None:
        run, spec = self._run(record), record.spec
        with suppress(NotFound, Conflict):  # an operator was faster
            await self.ports.store.delete(Orphan, record.name, uid=record.uid, log=[run.event(record, "Over")])
        structlog.get_logger().info("orphan over", subject=spec.subject, name=spec.provider_name)

    def _run(self, record: Orphan) -> ReconcileContext:
        ports = self.ports
        return ReconcileContext(
            controller="orphans",
            key=record.name,
            cause="resync",
            registry=ports.store.registry,
            randomness=ports.randomness,
        )
