"""Controller of regions: reports whether their clouds respond, and completes their removal.

A region is removed when it is empty, and when no request can be running that read it before its deletion was
requested: such a request could still create something.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import InUse
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Lifecycle
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import RECHECK_S, Done, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.catalogue.seed import is_empty
from remuda.region.kinds.filestorage import FileStorageClass
from remuda.region.kinds.orphans import PollDigest
from remuda.region.kinds.regions import Region
from remuda.region.ports import RegionConnector
from remuda.region.regions.rules import is_managed
from remuda.resources.conventions import CONTROLLER_FINALIZER, REGION
from remuda.resources.crud import find
from remuda.store.contract import Store

_ROUNDING = timedelta(seconds=1)
"""Times of deletions are stored in whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionController:
    """Provisions and deprovisions a region."""

    store: Store
    clock: Clock
    providers: ProviderRegistry
    connector: RegionConnector
    removal_delay: timedelta

    async def provision(self, region: Region, context: ReconcileContext) -> Result:  # noqa: ARG002  as in `ReconcileFunction`
        """Read something at the cloud: an error becomes the status of the region."""
        await self.providers.of_region(region).uncached_flavors()
        return Done()

    async def deprovision(self, region: Region, context: ReconcileContext) -> Result:
        """Wait until nothing is in the region, and nothing can be created; then remove what it has at the cloud."""
        context.acted = True
        if not await is_empty(self.store, region.name):
            return Requeue(RECHECK_S, "Deprovisioning", "something is still in it")
        requested = region.metadata.deletion_timestamp
        assert requested is not None, "a region that is being deleted has a deletion time"
        left = requested + _ROUNDING + self.removal_delay - self.clock.now()
        if left > timedelta(0):
            return Requeue(left.total_seconds(), "Deprovisioning", "requests that began before may still be running")
        try:
            await self.connector.release(region.name, region.spec)
        except InUse:
            message = "its cloud still has images that were imported: delete them there"
            return Requeue(RECHECK_S, "Deprovisioning", message)
        classes = (await self.store.list(FileStorageClass, labels={REGION: region.name})).items
        digest = await find(self.store, PollDigest, region.name)
        for each in (*classes, *(() if digest is None else (digest,))):
            with suppress(NotFound):  # it was deleted meanwhile
                await self.store.delete(type(each), each.name, uid=each.uid)
        return Done()


def controllers(
    ports: ReconcilePorts,
    providers: ProviderRegistry,
    connector: RegionConnector,
    *,
    removal_delay: timedelta,
    settings: ControllerSettings,
) -> Sequence[Controller]:
    regions = RegionController(
        store=ports.store,
        clock=ports.clock,
        providers=providers,
        connector=connector,
        removal_delay=removal_delay,
    )
    lifecycle = Lifecycle(
        Region,
        provision=regions.provision,
        deprovision=regions.deprovision,
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
        paused=lambda region: not is_managed(region),
    )
    return (Controller("regions", lifecycle, kind=Region, ports=ports, sources=(Source(Region),), settings=settings),)
