"""What a provider has of ours that is nobody's is found, and removed only where our timeline says that it may be."""

from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from remuda.app import registry
from remuda.providers.contract.common import Handle
from remuda.providers.contract.servers import CloudPortSpec, CloudServerSpec
from remuda.reconcile.ports import ReconcilePorts
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.catalogue.seed import seed_regions
from remuda.region.kinds.orphans import Orphan
from remuda.region.kinds.servers import Server
from remuda.store.sqlite.store import open_store
from tests.kit.environment import options
from tests.kit.region.environment import NORTH, STANDARD, UBUNTU, RegionEnvironment, running, unwatched
from tests.kit.region.monitor import Monitored, monitor_over
from tests.kit.simulation.store import SEALER


def port(tenancy: str, name: str, network: Handle, address: str) -> CloudPortSpec:
    return CloudPortSpec(handle=Handle(tenancy, name), network=network.name, address=address, mac="02:00:00:00:00:01")


async def deleted_server(monitored: Monitored, network: str) -> Server:
    """Make a server, delete it, and return what its object was."""
    region = monitored.region
    server = await region.server(network)
    await monitored.settled(server)
    stored = await region.store.get(Server, server)
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    await region.until_gone(f"/api/v2/servers/{server}")
    return stored


async def test_a_lost_store_makes_orphans_of_everything_and_nothing_is_removed(tmp_path: Path) -> None:
    async with running(tmp_path) as region:
        network = await region.network()
        servers = [await region.server(network, f"server-{number}") for number in range(3)]
        for server in servers:
            await region.until(f"/api/v2/servers/{server}", "provisioned")
        ports = region.app.ports
        store = open_store(tmp_path / "another.db", registry(), SEALER)
        try:
            await seed_regions(store, ports.settings.regions, now=ports.clock.now())
            clouds = ProviderRegistry(store, region.clouds, clock=ports.clock, randomness=ports.randomness)
            control = ReconcilePorts(store=store, log=store)
            watch = monitor_over(control, store, clouds, CollectorRegistry(), list[str]().append).region_tasks(NORTH)
            cloud = await clouds.get(NORTH)
            for _ in range(4):
                await watch.orphans.scan(cloud)
            found = (await store.list(Orphan)).items
            kept = [one.handle.name for one in region.north.operator.servers()]
            await clouds.close()
        finally:
            await store.close()
        assert {each.spec.provider_name for each in found if each.spec.subject == "server"} == set(kept)
        assert {each.spec.object_id for each in found if each.spec.subject == "server"} == set(servers)
        assert {each.spec.cause for each in found} == {"ObjectUnknown"}
        assert sorted({each.spec.subject for each in found}) == ["network", "port", "server", "tenancy"]


@options(settings=unwatched())
async def test_what_has_its_object_is_no_orphan(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    await monitored.settled(await region.server(await region.network()))
    assert await monitored.look(times=3) == []
    assert monitored.sample("orphans", subject="server") == 0


@options(settings=unwatched())
async def test_a_port_that_a_late_call_put_back_is_told_to_the_controller_of_its_server(
    region: RegionEnvironment,
) -> None:
    monitored = Monitored(region)
    server = await region.server(await region.network())
    await monitored.settled(server)
    await monitored.look()
    assert monitored.woken == []
    await region.app.running_controllers["servers"].stop()  # which the provider would tell sooner
    ports = monitored.provider.ports
    assert ports is not None
    (found,) = [each async for part in ports.ports() for each in part]
    for other in ({"sources": ("10.9.0.0/16",)}, {"is_public": not found.spec.is_public}):
        monitored.woken.clear()
        await ports.converge_port(replace(found.spec, **other))
        await monitored.watch.orphans.scan(await monitored.cloud())
        assert monitored.woken == [server], other
    assert await monitored.orphans() == [], "it has its object all the same"


@options(settings=unwatched())
async def test_what_came_after_its_object_was_released_is_recorded_after_two_looks_and_removed(
    region: RegionEnvironment,
) -> None:
    monitored = Monitored(region)
    network = await region.network()
    gone = await deleted_server(monitored, network)
    place, provider = await monitored.place(network), monitored.provider
    assert provider.ports is not None
    assert provider.servers is not None
    late = port(place.tenancy, f"port-{gone.name}.{gone.uid}", place, "10.0.200.1")
    await provider.ports.converge_port(late)
    name = f"server-{gone.name}.{gone.uid}.0"
    await provider.servers.create_server(
        CloudServerSpec(
            handle=Handle(place.tenancy, name),
            hostname="late",
            flavor=STANDARD,
            image=UBUNTU,
            port=late.handle.name,
        )
    )
    assert await monitored.look() == []
    assert await monitored.look() == [("port", "ObjectDeleted"), ("server", "ObjectDeleted")]
    assert monitored.sample("orphans", subject="port") == 1
    await monitored.look(times=3)
    assert await monitored.orphans() == []
    assert region.north.operator.servers() == []
    assert await provider.ports.find_port(late.handle) is None
    assert monitored.sample("orphans", subject="port") == 0


@options(settings=unwatched())
async def test_many_orphans_at_once_are_kept_for_an_operator(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    gone = await deleted_server(monitored, network)
    place, provider = await monitored.place(network), monitored.provider
    assert provider.ports is not None
    for number in range(25):
        name = f"port-{gone.name}.{gone.uid}.{number}"
        await provider.ports.converge_port(port(place.tenancy, name, place, f"10.0.200.{number + 1}"))
    await monitored.look(times=4)
    left = [each async for part in provider.ports.ports() for each in part]
    assert len(left) == 5
    assert [(each.spec.subject, each.spec.cause) for each in await monitored.orphans()] == [
        ("port", "ObjectDeleted")
    ] * 5
    assert (await monitored.operator.post("/api/v2/recovery/deletions/resume")).status == 202
    await monitored.look(times=3)
    assert await monitored.orphans() == []


@options(settings=unwatched())
async def test_a_server_that_another_has_replaced_waits_for_an_operator(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    server = await region.server(network)
    await monitored.settled(server)
    stored = await region.store.get(Server, server)
    place, provider = await monitored.place(network), monitored.provider
    assert provider.ports is not None
    assert provider.servers is not None
    other = port(place.tenancy, f"port-{server}.{stored.uid}.9", place, "10.0.200.1")
    await provider.ports.converge_port(other)
    handle = Handle(place.tenancy, f"server-{server}.{stored.uid}.9")
    spec = CloudServerSpec(handle=handle, hostname="old", flavor=STANDARD, image=UBUNTU, port=other.handle.name)
    await provider.servers.create_server(spec)
    assert ("server", "Superseded") in await monitored.look(times=4)
    assert await provider.servers.find_server(handle) is not None


@options(settings=unwatched())
async def test_a_foreign_name_is_an_orphan_whose_object_nobody_knows(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    place = await monitored.place(network)
    assert monitored.provider.ports is not None
    await monitored.provider.ports.converge_port(port(place.tenancy, "by-hand", place, "10.0.200.1"))
    assert await monitored.look(times=2) == [("port", "ObjectUnknown")]
    await monitored.provider.ports.remove_port(Handle(place.tenancy, "by-hand"))
    assert await monitored.look(times=2) == []
