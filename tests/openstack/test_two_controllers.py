"""Two processes whose controllers work on one region at once, as after a lease that was lost while a call ran."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from remuda.app.connector import Connector
from remuda.app.openstack import OpenStackRegions
from remuda.app.region_providers import OpenProvider, OpenRegion, RegionProviders
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.outbound.addresses import SystemResolver
from remuda.region.app import RegionApp
from remuda.region.kinds.regions import Region
from remuda.region.kinds.servers import Server
from remuda.store.background import BackgroundTasks
from remuda.store.sqlite.store import SqliteStore
from tests.kit.identity.environment import expect
from tests.kit.region.environment import RegionEnvironment, running
from tests.openstack.plane.api import Session
from tests.openstack.plane.configuration import PASSWORD, REGION
from tests.openstack.plane.plane import Plane
from tests.openstack.regions import LOOPBACK, Domain, domain_of_its_own

pytestmark = pytest.mark.openstack

SERVERS = 4
WITHIN_S = 600.0


@pytest.fixture
def domain(plane: Plane) -> Iterator[Domain]:
    with domain_of_its_own(plane) as found:
        yield found


def regions_of(store: SqliteStore) -> OpenStackRegions:
    return OpenStackRegions(
        store=store, clock=SystemClock(), randomness=SystemRandomness(), resolve=SystemResolver(), targets=LOOPBACK
    )


def opener(store: SqliteStore) -> OpenRegion:
    async def open_region(region: Region) -> OpenProvider:
        return await regions_of(store).open(region.spec)

    return open_region


def test_m26_two_controllers_create_one_server_for_each_and_leave_none(domain: Domain, tmp_path: Path) -> None:
    async def walk() -> None:
        connections: list[OpenStackRegions] = []

        async def openstack() -> OpenStackRegions:
            return connections[0]

        connector = Connector(catalogues={}, openstack=openstack)
        async with running(tmp_path, opener=opener, connector=connector) as region:
            connections.append(regions_of(region.store))
            async with asyncio.timeout(WITHIN_S):
                await at_once(region, domain)

    asyncio.run(walk())


async def at_once(region: RegionEnvironment, domain: Domain) -> None:
    ports = region.app.ports
    providers = RegionProviders(
        {}, opener(region.store), store=region.store, clock=region.clock, randomness=ports.randomness
    )
    other = RegionApp(replace(ports, providers=providers, metrics=CollectorRegistry()))
    background = BackgroundTasks(region.clock)
    background.start("providers of the other process", providers.run)
    await other.start()
    try:
        await create_and_delete(region, domain)
    finally:
        await other.stop()
        await background.stop()
        await providers.close()


async def create_and_delete(region: RegionEnvironment, domain: Domain) -> None:
    account = {"domainName": domain.name, "userName": "manager", "password": PASSWORD}
    section = {"endpoint": domain.plane.configuration.auth_url, "region": REGION, **account}
    body = {"metadata": {"name": "berlin"}, "spec": {"type": "openstack", "openstack": section}}
    name = expect(await region.root.post("/api/v2/platform/regions", body), 201)["metadata"]["id"]
    network = await region.network(regionId=name)
    await reached(region, f"/api/v2/networks/{network}", "provisioned")
    flavors = expect(await region.root.get(f"/api/v2/regions/{name}/flavors"), 200)
    images = expect(await region.root.get(f"/api/v2/regions/{name}/images"), 200)
    flavor = next(each["metadata"]["id"] for each in flavors if each["metadata"]["name"] == "m1.small")
    image = next(each["metadata"]["id"] for each in images if each["metadata"]["name"] == "debian-12")
    made = [
        await region.server(network, name=f"server-{number}", flavorId=flavor, imageId=image)
        for number in range(SERVERS)
    ]
    for each in made:
        await reached(region, f"/api/v2/servers/{each}", "provisioned")
    at_cloud = {(await region.store.get(Server, each)).status.provider_id for each in made}
    assert len(at_cloud) == SERVERS
    assert {each["id"] for each in servers_of(domain)} == at_cloud, "one server for each"
    for each in made:
        assert (await region.root.delete(f"/api/v2/servers/{each}")).status == 202
    for each in made:
        await gone(region, f"/api/v2/servers/{each}")
    assert servers_of(domain) == []
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
    await gone(region, f"/api/v2/networks/{network}")


def servers_of(domain: Domain) -> list[Any]:
    """Return the servers of all projects of the domain, as the administrator sees them."""
    admin = Session.admin(domain.plane.configuration)
    projects = {each["id"] for each in admin.get("keystone", f"/projects?domain_id={domain.id}")["projects"]}
    found = admin.get("nova", "/servers/detail?all_tenants=1")["servers"]
    return [each for each in found if each["tenant_id"] in projects]


async def reached(region: RegionEnvironment, path: str, status: str) -> None:
    """Wait until something has this status; the time limit is that of the test."""
    while expect(await region.root.get(path), 200)["metadata"]["provisioningStatus"] != status:
        await region.clock.sleep(0.5)


async def gone(region: RegionEnvironment, path: str) -> None:
    while (await region.root.get(path)).status != 404:
        await region.clock.sleep(0.5)
