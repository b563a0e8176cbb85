"""Networks, load balancers and file storage over one store and one simulated cloud, with their controllers or without.

Without them, nothing happens but what requests do. With them, time passes in simulation, and nothing is looked at
again but because something happened: `absence_delay` then finds and writes nothing.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from remuda.access.principal import Principal
from remuda.http.audit import STREAM, AuditRecord, subject_of_organization
from remuda.kernel.conditions import Condition, find_condition
from remuda.operations.recovery import OperationRecovery
from remuda.operations.saga import BoundSaga
from remuda.operations.service import Operations
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.catalogue import SimCatalogue, without_delays
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.quota.ports import ProjectRef
from remuda.quota.sagas import QuotaPorts
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.resync import ResyncSettings
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.consumers import ProviderEventListener
from remuda.region.filestorage import controller as storage_controllers
from remuda.region.filestorage import routes as storage_api
from remuda.region.filestorage import sagas as storage_sagas
from remuda.region.filestorage.classes import StorageClassSync
from remuda.region.filestorage.service import FileStorageService
from remuda.region.loadbalancers import controller as balancers_controllers
from remuda.region.loadbalancers import routes as balancers_api
from remuda.region.loadbalancers import sagas as balancers_sagas
from remuda.region.loadbalancers.service import LoadBalancers
from remuda.region.networks import controller as networks_controllers
from remuda.region.networks import routes as networks_api
from remuda.region.networks import sagas as networks_sagas
from remuda.region.networks.service import Networks
from remuda.store.background import BackgroundTasks
from remuda.store.objects import Resource
from remuda.store.sqlite.store import SqliteStore
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.networks import ABSENT, HOME, OTHER_PROJECT, network
from tests.kit.region.resource_api import (
    ORG,
    OTHER_REGION,
    REGION,
    RegionApi,
    catalogues,
    clouds_over,
    make_region,
    member,
    registry,
)
from tests.kit.simulation.resync import ResyncFinds
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER, open_simulated

__all__ = [
    "ABSENT",
    "ENDPOINTS",
    "HOME",
    "OTHER_PROJECT",
    "TENANT",
    "StorageEnvironment",
    "open_storage",
    "run_storage",
]

ENDPOINTS = "region:networks:v2 CRUD, region:loadbalancers:v2 CRUD, region:filestorage:v2 CRUD"
TENANT = member("ann@example.com", ORG, ENDPOINTS)
"""May do all of it, in the whole organization."""


@dataclass(frozen=True, kw_only=True)
class StorageEnvironment:
    """Everything."""

    world: World
    store: SqliteStore
    identity: MemoryIdentity
    cloud: SimulatedCloud
    clouds: ProviderRegistry
    keeper: StorageClassSync
    networks: RegionApi[Networks]
    balancers: RegionApi[LoadBalancers]
    storages: RegionApi[FileStorageService]
    drivers: tuple[Controller, ...]
    finds: ResyncFinds

    @property
    def provider(self) -> Provider:
        """The cloud, past all that we do about its calls."""
        return self.cloud.provider

    async def rest(self) -> None:
        """Let everything come to rest."""
        await self.world.clock.sleep(60)

    async def make_network(self, who: Principal = TENANT, **spec: Any) -> str:
        """Make a network and return its id; with controllers at work, it is there then."""
        name = await _made(self.networks.ask(who).post(networks_api.NETWORKS, network(**spec)))
        await self.rest()
        return name

    async def make_balancer(self, body: Any, who: Principal = TENANT) -> str:
        """Make a load balancer and return its id."""
        return await _made(self.balancers.ask(who).post(balancers_api.LOAD_BALANCERS, body))

    async def make_storage(self, body: Any, who: Principal = TENANT) -> str:
        """Make file storage and return its id."""
        return await _made(self.storages.ask(who).post(storage_api.FILE_STORAGE, body))

    async def available(self, kind: type[Resource], name: str) -> Condition:
        """Return what a controller says of an object."""
        found: Any = await self.store.get(kind, name)
        condition = find_condition(found.status.conditions, "Available")
        assert condition is not None
        return condition

    async def audited(self) -> list[tuple[str, str, str, int]]:
        """Return what was audited in the organization: what was asked, about what, and how it ended."""
        page = await self.store.read(STREAM, subject_of_organization(ORG))
        records = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in page.entries]
        return [(each.operation.method, each.resource.type, each.resource.id, each.result.status) for each in records]

    async def confirm_absence(self) -> None:
        """See that a full look at what has settled finds and writes nothing."""
        before = await self.versions()
        for driver in self.drivers:
            await driver.resync()
        await self.rest()
        assert not self.finds.found
        assert await self.versions() == before

    async def versions(self) -> dict[tuple[str, str], str]:
        """Return the version of everything that is stored."""
        kinds = [kind.type for kind in self.store.registry.kinds]
        return {
            (kind.__name__, each.name): each.version for kind in kinds for each in (await self.store.list(kind)).items
        }


async def _made(asking: Coroutine[Any, Any, Any]) -> str:
    reply = await asking
    assert reply.status == 201, reply
    return str(reply.json["metadata"]["id"])


@asynccontextmanager
async def open_storage(
    world: World, identity: MemoryIdentity, cloud: SimulatedCloud, *, at_work: bool
) -> AsyncIterator[StorageEnvironment]:
    """Open the store as it was left, and begin as a process does."""
    store, finds = open_simulated(world, registry()), ResyncFinds()
    clouds = clouds_over(world, store, {REGION: cloud.provider})
    ports = ReconcilePorts(store=store, log=store, clock=world.clock, randomness=world.randomness, reporter=finds)
    settings = ControllerSettings(blocked_every_s=10_000, resync=ResyncSettings(interval_s=10_000))
    create_ports = QuotaPorts(store=store, ledger=identity)
    bound = [
        BoundSaga(saga, create_ports)
        for module in (networks_sagas, balancers_sagas, storage_sagas)
        for saga in module.SAGAS
    ]
    operations = Operations(store, bound, clock=world.clock, randomness=world.randomness)
    drivers = (
        *networks_controllers.controllers(ports, identity, clouds, settings=settings),
        *balancers_controllers.controllers(ports, identity, clouds, settings=settings),
        *storage_controllers.controllers(ports, identity, clouds, settings=settings),
    )
    given: dict[str, Any] = {
        "store": store,
        "clock": world.clock,
        "identity": identity,
        "providers": clouds,
        "operations": operations,
    }
    networks = Networks(**given)
    region_storage = StorageEnvironment(
        world=world,
        store=store,
        identity=identity,
        cloud=cloud,
        clouds=clouds,
        keeper=StorageClassSync(store, clouds, clock=world.clock),
        networks=RegionApi(world, store, networks, networks_api.ROUTES),
        balancers=RegionApi(world, store, LoadBalancers(**given, networks=networks), balancers_api.ROUTES),
        storages=RegionApi(world, store, FileStorageService(**given), storage_api.ROUTES),
        drivers=drivers if at_work else (),
        finds=finds,
    )
    tasks = BackgroundTasks(world.clock)
    await OperationRecovery(operations, is_only_process=True).recover()
    try:
        for driver in region_storage.drivers:
            await driver.start()
        by_name = {driver.name: driver for driver in drivers}
        concerned = {"balancer": by_name["loadbalancers"], "storage": by_name["filestorages"]}
        if at_work:
            tasks.start("events", ProviderEventListener(cloud.provider, concerned, world.clock).run)  # type: ignore[arg-type]  # they are subjects
        yield region_storage
        for api in (region_storage.networks, region_storage.balancers, region_storage.storages):
            api.app.assert_documented()
    finally:
        await tasks.stop()
        for driver in region_storage.drivers:
            await driver.stop()
        await operations.stop()
        await store.close()


def run_storage(
    scenario: Callable[[StorageEnvironment], Coroutine[Any, Any, None]],
    *,
    limits: Mapping[str, int] | None = None,
    at_work: bool = True,
    is_instant: bool = True,
    seeds: int = 1,
    rates: Mapping[str, float] | None = None,
    **catalogue: Any,
) -> None:
    """Run a scenario with a region for everybody, one that only strangers see, and two projects."""

    async def run(world: World) -> None:
        offered: SimCatalogue = replace(catalogues()["sim-north"], **catalogue)
        identity = MemoryIdentity({HOME, ProjectRef(ORG, OTHER_PROJECT)}, limits=limits)
        cloud = open_cloud(
            None,
            without_delays(offered) if is_instant else offered,
            clock=world.clock,
            sealer=SEALER,
            randomness=world.randomness,
            faults=world.faults if rates else None,
        )
        await cloud.start()
        try:
            async with open_storage(world, identity, cloud, at_work=at_work) as region_storage:
                await make_region(region_storage.store)
                await make_region(region_storage.store, OTHER_REGION, called="hidden", organizations=[ABSENT])
                await scenario(region_storage)
        finally:
            await cloud.stop()

    simulate(run, seeds, rates=rates)
