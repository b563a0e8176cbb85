"""Networks, security groups and authorities over one store and one simulated cloud, with or without their controllers.

Without them, nothing happens but what requests do. With them, time passes in simulation, and nothing is looked at
again but because something happened: `absence_delay` then finds and writes nothing.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from remuda.access.principal import Principal
from remuda.http.audit import STREAM, AuditRecord, subject_of_organization
from remuda.kernel.conditions import Condition, find_condition
from remuda.operations.recovery import OperationRecovery
from remuda.operations.saga import BoundSaga
from remuda.operations.service import Operations
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.catalogue import without_delays
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.quota.ports import ProjectRef
from remuda.quota.sagas import QuotaPorts
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.resync import ResyncSettings
from remuda.region.authorities import controller as authorities_controllers
from remuda.region.authorities import routes as authorities_api
from remuda.region.authorities import sagas as authorities_sagas
from remuda.region.authorities.service import Authorities
from remuda.region.networks import controller as networks_controllers
from remuda.region.networks import routes as networks_api
from remuda.region.networks import sagas as networks_sagas
from remuda.region.networks.service import Networks
from remuda.region.securitygroups import controller as groups_controllers
from remuda.region.securitygroups import routes as groups_api
from remuda.region.securitygroups.service import SecurityGroups
from remuda.store.objects import Resource
from remuda.store.sqlite.store import SqliteStore
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.resource_api import (
    ORG,
    OTHER_REGION,
    PROJECT,
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
    "HOME",
    "OTHER_PROJECT",
    "TENANT",
    "NetworksEnvironment",
    "network",
    "open_networks",
    "run_networks",
    "simulated_cloud",
]

HOME = ProjectRef(ORG, PROJECT)
OTHER_PROJECT = "a0000000-0000-4000-8000-00000000000b"
ABSENT = "e0000000-0000-4000-8000-00000000000e"
TENANT = member(
    "ann@example.com",
    ORG,
    "region:networks:v2 CRUD, region:networks:v2/references CRUD, region:securitygroups:v2 CRUD, "
    "region:sshcertificateauthorities:v2 CRD",
)
"""May do all of it, in the whole organization."""


def network(**spec: Any) -> dict[str, Any]:
    """Return a network as it is asked for; a field that is None is left out."""
    fields = {
        "organizationId": ORG,
        "projectId": PROJECT,
        "regionId": REGION,
        "prefix": "10.0.0.0/24",
        "dnsNameservers": ["8.8.8.8"],
    } | spec
    return {"metadata": {"name": "net"}, "spec": {name: each for name, each in fields.items() if each is not None}}


@dataclass(frozen=True, kw_only=True)
class NetworksEnvironment:
    """Everything."""

    world: World
    store: SqliteStore
    identity: MemoryIdentity
    cloud: SimulatedCloud
    providers: dict[str, Provider]
    """What does the work in which region: another one may take over."""
    operations: Operations
    networks: RegionApi[Networks]
    groups: RegionApi[SecurityGroups]
    authorities: RegionApi[Authorities]
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
        """Make a network and return its id."""
        reply = await self.networks.ask(who).post(networks_api.NETWORKS, network(**spec))
        assert reply.status == 201, reply
        name: str = reply.json["metadata"]["id"]
        return name

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

    async def at_cloud(self) -> dict[str, list[str]]:
        """Return the names of all that the cloud has."""
        provider = self.provider
        assert provider.tenancies is not None
        assert provider.networks is not None
        assert provider.security_groups is not None
        return {
            "tenancies": [each.name async for part in provider.tenancies.tenancies() for each in part],
            "networks": [each.spec.handle.name async for part in provider.networks.networks() for each in part],
            "groups": [each.handle.name async for part in provider.security_groups.groups() for each in part],
        }

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


@asynccontextmanager
async def open_networks(
    world: World, *, identity: MemoryIdentity, cloud: SimulatedCloud, at_work: bool, wrapped: Any = None
) -> AsyncIterator[NetworksEnvironment]:
    """Open the store as it was left, and begin as a process does; requests and controllers have it as it is wrapped."""
    store, finds = open_simulated(world, registry()), ResyncFinds()
    seen = store if wrapped is None else wrapped(store)
    providers = {REGION: cloud.provider}
    clouds = clouds_over(world, seen, providers)
    ports = ReconcilePorts(store=seen, log=store, clock=world.clock, randomness=world.randomness, reporter=finds)
    settings = ControllerSettings(blocked_every_s=10_000, resync=ResyncSettings(interval_s=10_000))
    create_ports = QuotaPorts(store=seen, ledger=identity)
    bound = [BoundSaga(saga, create_ports) for module in (networks_sagas, authorities_sagas) for saga in module.SAGAS]
    operations = Operations(seen, bound, clock=world.clock, randomness=world.randomness)
    drivers = (
        *networks_controllers.controllers(ports, identity, clouds, settings=settings),
        *groups_controllers.controllers(ports, clouds, settings=settings),
        *authorities_controllers.controllers(ports, identity, settings=settings),
    )
    common: dict[str, Any] = {"store": seen, "identity": identity}
    networks = Networks(**common, clock=world.clock, providers=clouds, operations=operations)
    groups = SecurityGroups(**common, clock=world.clock, providers=clouds, networks=networks)
    region_networks = NetworksEnvironment(
        world=world,
        store=store,
        identity=identity,
        cloud=cloud,
        providers=providers,
        operations=operations,
        networks=RegionApi(world, store, networks, networks_api.ROUTES),
        groups=RegionApi(world, store, groups, groups_api.ROUTES),
        authorities=RegionApi(world, store, Authorities(**common, operations=operations), authorities_api.ROUTES),
        drivers=drivers if at_work else (),
        finds=finds,
    )
    await OperationRecovery(operations, is_only_process=True).recover()
    for driver in region_networks.drivers:
        await driver.start()
    try:
        yield region_networks
        for api in (region_networks.networks, region_networks.groups, region_networks.authorities):
            api.app.assert_documented()
    finally:
        for driver in region_networks.drivers:
            await driver.stop()
        await operations.stop()
        await store.close()


def simulated_cloud(world: World, **settings: Any) -> SimulatedCloud:
    """Return a cloud in memory that does everything at once, and whatever else the settings say."""
    catalogue = without_delays(catalogues()["sim-north"])
    return open_cloud(None, catalogue, clock=world.clock, sealer=SEALER, randomness=world.randomness, **settings)


def run_networks(
    scenario: Callable[[NetworksEnvironment], Coroutine[Any, Any, None]],
    *,
    limits: Mapping[str, int] | None = None,
    at_work: bool = False,
    seeds: int = 1,
    rates: Mapping[str, float] | None = None,
) -> None:
    """Run a scenario with a region for everybody, one that only strangers see, and one project."""

    async def run(world: World) -> None:
        identity = MemoryIdentity({HOME, ProjectRef(ORG, OTHER_PROJECT)}, limits=limits)
        cloud = simulated_cloud(world, faults=world.faults) if rates else simulated_cloud(world)
        async with open_networks(world, identity=identity, cloud=cloud, at_work=at_work) as region_networks:
            await make_region(region_networks.store)
            await make_region(region_networks.store, OTHER_REGION, called="hidden", organizations=[ABSENT])
            await scenario(region_networks)
        await cloud.stop()

    simulate(run, seeds, rates=rates)
