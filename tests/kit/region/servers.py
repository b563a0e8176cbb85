"""Servers with all that they stand on, over one store and one simulated cloud, with or without their controllers.

::

    @options(at_work=True)
    async def test_…(region_servers: Yard) -> None:
        server = await region_servers.make_server(await region_servers.make_network())
        await region_servers.rest()

Without controllers, nothing happens but what requests do. With them, time passes in simulation, and nothing is looked
at again but because something happened: `absence_delay` then finds and writes nothing.
"""

import base64
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from remuda.access.principal import AccessList, Principal
from remuda.kernel.conditions import Condition, find_condition
from remuda.operations.recovery import OperationRecovery
from remuda.operations.saga import BoundSaga
from remuda.operations.service import Operations
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.common import server_name
from remuda.providers.contract.provider import Provider
from remuda.providers.contract.servers import CloudPort, CloudServer
from remuda.providers.simulated.catalogue import SimCatalogue, without_delays
from remuda.providers.simulated.faults import Fault, FaultBounds
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
from remuda.region.consumers import ProviderEventListener
from remuda.region.images.counts import ImageCounts
from remuda.region.kinds.networks import Address
from remuda.region.kinds.servers import SERVER, Server
from remuda.region.networks import controller as networks_controllers
from remuda.region.networks import routes as networks_api
from remuda.region.networks import sagas as networks_sagas
from remuda.region.networks.service import Networks
from remuda.region.securitygroups import controller as groups_controllers
from remuda.region.securitygroups import routes as groups_api
from remuda.region.securitygroups.service import SecurityGroups
from remuda.region.servers import controller as servers_control
from remuda.region.servers import routes as servers_api
from remuda.region.servers.actions import ServerActions
from remuda.region.servers.routes import SERVERS
from remuda.region.servers.service import Servers
from remuda.region.servers.status import ServerObserver
from remuda.service import DocumentChecks
from remuda.store.background import BackgroundTasks
from remuda.store.logs import subject_of
from remuda.store.sqlite.store import SqliteStore
from tests.kit.asgi.contract import Reply
from tests.kit.environment import run_inline
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.network_requests import KEY
from tests.kit.region.networks import HOME, OTHER_PROJECT, network
from tests.kit.region.resource_api import (
    ORG,
    PROJECT,
    REGION,
    RegionApi,
    catalogues,
    clouds_over,
    make_region,
    member,
    permission_set,
    registry,
)
from tests.kit.simulation.resync import ResyncFinds
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER, open_simulated

PERMISSIONS = (
    "region:networks:v2 CRUD, region:securitygroups:v2 CRUD, region:sshcertificateauthorities:v2 CRD, "
    "region:servers CRUD"
)
TENANT = member("ann@example.com", ORG, PERMISSIONS)
"""May do all of it, in the whole organization."""
COMPUTE = Principal(subject="unikorn-compute", type="system", access=AccessList(everywhere=permission_set(PERMISSIONS)))
"""The service that acts for tenants."""

STANDARD = "11111111-1111-1111-1111-111111111111"
SMALL = "a1f0c0de-0001-4000-8000-000000000001"
ARM = "a1f0c0de-0003-4000-8000-000000000003"
METAL = "a1f0c0de-0005-4000-8000-000000000005"
PINNED = "a1f0c0de-0006-4000-8000-000000000006"
UBUNTU = "33333333-3333-3333-3333-333333333333"
DEBIAN = "b1f0c0de-0003-4000-8000-000000000003"
ROCKY = "b1f0c0de-0004-4000-8000-000000000004"
FOR_METAL = "b1f0c0de-0005-4000-8000-000000000005"


def encoded(text: str) -> str:
    """Return user data as it is sent."""
    return base64.b64encode(text.encode()).decode()


def wanted(on: str, name: str = "web", /, **spec: Any) -> dict[str, Any]:
    """Return a server on a network as it is asked for; a field that is None is left out."""
    fields = {"networkId": on, "flavorId": STANDARD, "imageId": UBUNTU} | spec
    return {"metadata": {"name": name}, "spec": {key: each for key, each in fields.items() if each is not None}}


def update(name: str = "web", /, **spec: Any) -> dict[str, Any]:
    """Return a server as it is to be from now on."""
    return {"metadata": {"name": name}, "spec": {"flavorId": STANDARD, "imageId": UBUNTU} | spec}


@dataclass(frozen=True, kw_only=True)
class ServersEnvironment:
    """Everything."""

    world: World
    store: SqliteStore
    identity: MemoryIdentity
    cloud: SimulatedCloud
    providers: dict[str, Provider]
    """What does the work in which region: another one may take over."""
    networks: RegionApi[Networks]
    groups: RegionApi[SecurityGroups]
    authorities: RegionApi[Authorities]
    servers: RegionApi[dict[str, Any]]
    drivers: tuple[Controller, ...]
    finds: ResyncFinds

    async def rest(self) -> None:
        """Let everything come to rest."""
        await self.world.clock.sleep(120)

    def at_fault(self, fault: Fault, verb: str, *, after: int = 0) -> None:
        """Have something go wrong with the next call of a verb, or the one after so many."""
        name = f"cloud.{fault}.{verb}"
        counts = self.world.faults.counts
        self.world.faults.at(name, (counts[name].asked if name in counts else 0) + after + 1)

    async def make_network(self, who: Principal = TENANT, **spec: Any) -> str:
        """Make a network and return its id; with controllers at work, it is there then."""
        name = _id_of(await self.networks.ask(who).post(networks_api.NETWORKS, network(**spec)))
        if self.drivers:
            await self.rest()
        return name

    async def make_group(self, on: str) -> str:
        """Make a security group and return its id; with controllers at work, it is there then."""
        body = {"metadata": {"name": "sg"}, "spec": {"networkId": on, "rules": []}}
        name = _id_of(await self.groups.ask(TENANT).post(groups_api.SECURITY_GROUPS, body))
        if self.drivers:
            await self.rest()
        return name

    async def make_authority(self, project: str = PROJECT) -> str:
        """Make an authority and return its id."""
        body = {"metadata": {"name": "ca"}, "spec": {"organizationId": ORG, "projectId": project, "publicKey": KEY}}
        return _id_of(await self.authorities.ask(TENANT).post(authorities_api.AUTHORITIES, body))

    async def make_server(self, on: str, name: str = "web", /, **spec: Any) -> str:
        """Make a server and return its id."""
        return _id_of(await self.servers.ask(TENANT).post(SERVERS, wanted(on, name, **spec)))

    async def put(self, server: str, body: dict[str, Any]) -> None:
        """Change a server."""
        reply = await self.servers.ask(TENANT).put(f"{SERVERS}/{server}", body)
        assert reply.status == 202, reply

    async def replace(self, server: str, **spec: Any) -> None:
        """Have another server in the place of one."""
        body = {"flavorId": STANDARD, "imageId": UBUNTU} | spec
        reply = await self.servers.ask(COMPUTE).post(f"{SERVERS}/{server}/replace", body)
        assert reply.status == 202, reply

    async def delete(self, server: str) -> None:
        """Give a server up."""
        assert (await self.servers.ask(TENANT).delete(f"{SERVERS}/{server}")).status == 202

    async def read(self, server: str) -> Any:
        """Return a server as clients read it."""
        reply = await self.servers.ask(TENANT).get(f"{SERVERS}/{server}")
        assert reply.status == 200, reply
        return reply.json

    async def stored(self, server: str) -> Server:
        """Return a server as it is stored."""
        return await self.store.get(Server, server)

    async def available(self, server: str) -> Condition:
        """Return what the controller says of a server."""
        condition = find_condition((await self.stored(server)).status.conditions, "Available")
        assert condition is not None
        return condition

    async def timeline(self, server: str) -> list[str]:
        """Return the names of what happened to a server, without the conditions."""
        page = await self.store.read("timeline", subject_of(SERVER.qualified, server), limit=1000)
        told = [msgspec.json.decode(entry.data)["event"] for entry in page.entries]
        return [each for each in told if each not in {"ConditionChanged", "FinalizerAdded", "FinalizerRemoved"}]

    async def name_of(self, server: str, number: int = 0) -> str:
        """Return what a server is called at the cloud."""
        return server_name(server, (await self.stored(server)).uid, number)

    def at_cloud(self) -> list[CloudServer]:
        """Return all servers that the cloud has."""
        return self.cloud.operator.servers()

    async def ports(self) -> list[CloudPort]:
        """Return all ports that the cloud has."""
        ports = self.cloud.provider.ports
        assert ports is not None
        return [each async for part in ports.ports() for each in part]

    async def addresses(self) -> list[Address]:
        """Return all addresses that are taken."""
        return list((await self.store.list(Address)).items)

    async def nothing_is_left(self) -> None:
        """See that nothing of any server is anywhere."""
        assert not self.at_cloud()
        assert not await self.ports()
        assert not await self.addresses()
        assert not (await self.store.list(Server)).items

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


def _id_of(reply: Reply) -> str:
    assert reply.status == 201, reply
    return str(reply.json["metadata"]["id"])


@asynccontextmanager
async def open_servers(
    world: World, *, identity: MemoryIdentity, cloud: SimulatedCloud, at_work: bool
) -> AsyncIterator[ServersEnvironment]:
    """Open the store as it was left, and begin as a process does."""
    store, finds = open_simulated(world, registry()), ResyncFinds()
    providers = {REGION: cloud.provider}
    clouds = clouds_over(world, store, providers, CallSettings(deadline_s=20.0))
    ports = ReconcilePorts(store=store, log=store, clock=world.clock, randomness=world.randomness, reporter=finds)
    settings = ControllerSettings(blocked_every_s=10_000, resync=ResyncSettings(interval_s=10_000))
    create_ports = QuotaPorts(store=store, ledger=identity)
    bound = [BoundSaga(saga, create_ports) for module in (networks_sagas, authorities_sagas) for saga in module.SAGAS]
    operations = Operations(store, bound, clock=world.clock, randomness=world.randomness)
    drivers = (
        *networks_controllers.controllers(ports, identity, clouds, settings=settings),
        *groups_controllers.controllers(ports, clouds, settings=settings),
        *authorities_controllers.controllers(ports, identity, settings=settings),
        *servers_control.controllers(
            ports, clouds, documents=DocumentChecks(run_inline), create_attempts=3, settings=settings
        ),
    )
    common: dict[str, Any] = {"store": store, "identity": identity, "providers": clouds, "clock": world.clock}
    networks = Networks(**common, operations=operations)
    groups = SecurityGroups(**common, networks=networks)
    authorities = Authorities(store=store, identity=identity, operations=operations)
    servers = Servers(
        **common, networks=networks, groups=groups, authorities=authorities, documents=DocumentChecks(run_inline)
    )
    looking = ServerObserver(store=store, clock=world.clock, providers=clouds)
    actions = ServerActions(
        store=store, providers=clouds, servers=servers, observer=looking, counts=ImageCounts(store=store)
    )
    region_servers = ServersEnvironment(
        world=world,
        store=store,
        identity=identity,
        cloud=cloud,
        providers=providers,
        networks=RegionApi(world, store, networks, networks_api.ROUTES),
        groups=RegionApi(world, store, groups, groups_api.ROUTES),
        authorities=RegionApi(world, store, authorities, authorities_api.ROUTES),
        servers=RegionApi(world, store, {"servers": servers, "actions": actions}, servers_api.ROUTES),
        drivers=drivers if at_work else (),
        finds=finds,
    )
    tasks = BackgroundTasks(world.clock)
    await OperationRecovery(operations, is_only_process=True).recover()
    try:
        for driver in region_servers.drivers:
            await driver.start()
        by_name = {driver.name: driver for driver in drivers}
        concerned: dict[Any, Controller] = {
            "tenancy": by_name["identities"],
            "network": by_name["networks"],
            "group": by_name["securitygroups"],
            "port": by_name["servers"],
            "server": by_name["servers"],
        }
        if at_work:
            tasks.start("events", ProviderEventListener(cloud.provider, concerned, world.clock).run)
        yield region_servers
        for mounted in (
            region_servers.networks,
            region_servers.groups,
            region_servers.authorities,
            region_servers.servers,
        ):
            mounted.app.assert_documented()
    finally:
        await tasks.stop()
        for driver in region_servers.drivers:
            await driver.stop()
        await clouds.close(grace_s=0)
        await operations.stop()
        await store.close()


def servers_cloud(
    world: World, *, is_instant: bool = True, bounds: FaultBounds | None = None, **catalogue: Any
) -> SimulatedCloud:
    """Return a cloud in memory whose faults are those of the world."""
    offered: SimCatalogue = replace(catalogues()["sim-north"], **catalogue)
    offered = without_delays(offered) if is_instant else offered
    return open_cloud(
        None, offered, clock=world.clock, sealer=SEALER, randomness=world.randomness, faults=world.faults, bounds=bounds
    )


def identity_of_project() -> MemoryIdentity:
    """Return an identity with two projects."""
    return MemoryIdentity({HOME, ProjectRef(ORG, OTHER_PROJECT)})


def run_servers(
    scenario: Callable[[ServersEnvironment], Coroutine[Any, Any, None]],
    *,
    at_work: bool = False,
    is_instant: bool = True,
    **cloud_settings: Any,
) -> None:
    """Run a scenario with a region, and two projects; the settings are those of `yard_cloud`."""

    async def run(world: World) -> None:
        cloud = servers_cloud(world, is_instant=is_instant, **cloud_settings)
        await cloud.start()
        try:
            async with open_servers(
                world, identity=identity_of_project(), cloud=cloud, at_work=at_work
            ) as region_servers:
                await make_region(region_servers.store)
                await scenario(region_servers)
        finally:
            await cloud.stop()

    simulate(run, [1])
