"""Search for orphans: resources of ours at the provider of a region that belong to no object.

A resource without an object in two consecutive scans is recorded. It is deleted only if the timeline shows that its
object was deleted (a call took effect late), and within the limits of the deletion guard. Every other orphan waits for
an operator, since a store that has lost objects must not lose their resources as well. A record is dropped when the
absence of the orphan is confirmed, or when it belongs to an object again.
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
from remuda.region.catalogue.provider_registry import RegionProvider
from remuda.region.kinds.orphans import Orphan, OrphanCause, claimed, new_orphan
from remuda.region.kinds.servers import Server
from remuda.region.monitor.inventory import Inventory, Owners, find_inventory, inventories_of
from remuda.region.monitor.metrics import MonitorMetrics
from remuda.region.networks.ipam import release_address_of
from remuda.resources.conventions import REGION
from remuda.resources.crud import find
from remuda.store.objects import Resource

_PAGE = 100
_LIMIT = DeletionLimit(always=20)


def orphan_guard(ports: ReconcilePorts) -> DeletionGuard:
    """Return the deletion guard of orphans, which limits them in proportion to the number of servers."""
    return DeletionGuard("orphans", Server, ports=ports, settings=DeletionGuardSettings(group=_LIMIT, overall=_LIMIT))


@dataclass(slots=True, kw_only=True)
class OrphanSearch:
    """Scan of one region."""

    ports: ReconcilePorts
    owners: Owners
    guard: DeletionGuard
    metrics: MonitorMetrics
    pace: Pace
    enqueue: Callable[[str], None]
    """Enqueues a server whose resource differs from its object and has no version that a poll compares (a port)."""
    _suspects: set[tuple[EventSubject, Handle]] = field(default_factory=set, init=False)
    """Resources without an object in the last scan."""

    async def scan(self, cloud: RegionProvider) -> None:
        """Compare all resources with their objects once. A scan that fails does not count."""
        suspects: set[tuple[EventSubject, Handle]] = set()
        for inventory in inventories_of(cloud.provider):
            async with aclosing(inventory.pages()) as pages:
                async for page in pages:
                    for handle, found in page:
                        await self.pace.step()
                        owner = await self.owners.owner_of(inventory, handle)
                        if not isinstance(owner, Resource):
                            suspects.add((inventory.subject, handle))
                            await self._handle_suspect(cloud, inventory, handle, owner)
                        elif not inventory.is_as_desired(found, owner):
                            self.enqueue(owner.name)
        self._suspects = suspects
        await self._review(cloud)

    async def _handle_suspect(
        self, cloud: RegionProvider, inventory: Inventory, handle: Handle, cause: OrphanCause
    ) -> None:
        """Record a resource that was a suspect before, and delete it if its object was deleted."""
        new = new_orphan(cloud.region.name, inventory.subject, handle, cause, self.ports.clock.now())
        record = await find(self.ports.store, Orphan, new.name)
        if record is None:
            if (inventory.subject, handle) not in self._suspects or await inventory.find(handle) is None:
                return
            record = await self._create(new)
        elif record.spec.cause != cause:
            record = await self.ports.store.update(replace(record, spec=replace(record.spec, cause=cause)))
        if cause == "ObjectDeleted":
            await self._delete(inventory, record)

    async def _create(self, new: Orphan) -> Orphan:
        run = self._context(new)
        run.log.warning("orphan found", subject=new.spec.subject, name=new.spec.provider_name, cause=new.spec.cause)
        with suppress(AlreadyExists):  # another process, whose leadership has ended, was first
            return await self.ports.store.create(new, log=[run.event(new, "Found", cause=new.spec.cause)])
        return await self.ports.store.get(Orphan, new.name)

    async def _delete(self, inventory: Inventory, record: Orphan) -> None:
        now = self.ports.clock.now()
        if record.spec.is_claimed("adoption", now):
            return
        with suppress(Conflict):  # another process or an operator has written: the next scan retries
            if await self.guard.admit_deletion(record, self._context(record)) is None:
                if not record.spec.is_claimed("removal", now):
                    await self.ports.store.update(claimed(record, "removal", now))
                with suppress(InUse):  # what uses it is deleted first
                    await inventory.remove(record.spec.handle)

    async def _review(self, cloud: RegionProvider) -> None:
        """Drop the records of orphans that are gone or belong to an object again, and count the others."""
        counts: Counter[str] = Counter()
        after: str | None = None
        while True:
            page = await self.ports.store.list(Orphan, labels={REGION: cloud.region.name}, limit=_PAGE, after=after)
            for record in page.items:
                await self.pace.step()
                if await self._resolve(cloud, record):
                    await self._drop(record)
                else:
                    counts[record.spec.subject] += 1
            after = page.next
            if after is None:
                break
        self.metrics.show_orphans(cloud.region.name, counts)

    async def _resolve(self, cloud: RegionProvider, record: Orphan) -> bool:
        """Release the address of an orphan whose absence is confirmed; return whether its record can be dropped."""
        inventory = find_inventory(cloud.provider, record.spec.subject)
        if inventory is None:
            return False
        handle, key = record.spec.handle, ("orphan", record.name)
        is_owned = await self.owners.orphan_cause(inventory, handle) is None
        if await inventory.find(handle) is not None:
            cloud.absence.clear(key)
            return is_owned
        if not cloud.absence.record_missing(key):
            return False
        if not is_owned and record.spec.has_address:  # else the controller of its object releases it
            await release_address_of(self.ports.store, record.spec.object_id, record.spec.object_uid)
        return True

    async def _drop(self, record: Orphan) -> None:
        run, spec = self._context(record), record.spec
        with suppress(NotFound, Conflict):  # an operator was first
            await self.ports.store.delete(Orphan, record.name, uid=record.uid, log=[run.event(record, "Resolved")])
        structlog.get_logger().info("orphan resolved", subject=spec.subject, name=spec.provider_name)

    def _context(self, record: Orphan) -> ReconcileContext:
        ports = self.ports
        return ReconcileContext(
            controller="orphans",
            key=record.name,
            cause="resync",
            registry=ports.store.registry,
            randomness=ports.randomness,
        )
