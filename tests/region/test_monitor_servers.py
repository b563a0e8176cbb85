"""The monitor sees what no event told, counts servers, and says what a region runs out of."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import IPv4Address
from typing import Any

import msgspec
import pytest

from remuda.kernel.conditions import find_condition
from remuda.providers.contract.common import Handle
from remuda.providers.contract.servers import CloudServer
from remuda.region.kinds.networks import Network, TakenVlan, VLANAllocation, VLANAllocationSpec, vlans_name
from remuda.region.kinds.regions import NetworksConfig, ProviderNetworksConfig, Region, RegionOpenstack
from remuda.region.kinds.servers import (
    DRIFTED,
    Rebuild,
    ReplacementStatus,
    Server,
    ServerImage,
    ServerSpec,
    ServerStatus,
    is_drifted,
)
from remuda.region.networks.ipam import allocate_specific_address
from remuda.region.networks.rules import plan_of
from remuda.region.servers.status import with_drift
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.environment import NORTH, RegionEnvironment, unwatched
from tests.kit.region.monitor import Monitored

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@options(settings=unwatched())
async def test_m24_a_change_that_no_event_told_is_seen_by_the_monitor(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    server = await region.server(await region.network())
    await monitored.settled(server)
    await region.app.running_controllers["servers"].stop()
    task = asyncio.create_task(monitored.monitor.run())
    await region.clock.sleep(301)
    region.north.operator.stop(server)
    await region.clock.sleep(301)
    assert (await region.store.get(Server, server)).status.phase == "Stopped"
    region.north.operator.vanish(server)
    await region.clock.sleep(301)
    assert monitored.woken == [server]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@options(settings=unwatched())
async def test_what_happened_while_nobody_looked_is_seen_by_the_first_poll_after_the_start(
    region: RegionEnvironment,
) -> None:
    network = await region.network()
    servers = [await region.server(network, name) for name in ("stopped", "vanished", "as-it-was")]
    for server in servers:
        await Monitored(region).settled(server)
    await region.app.running_controllers["servers"].stop()

    async def live(monitored: Monitored, seconds: float) -> None:
        task = asyncio.create_task(monitored.monitor.run())
        await region.clock.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    await live(Monitored(region), 310)
    region.north.operator.stop(servers[0])
    region.north.operator.vanish(servers[1])
    again = Monitored(region)
    await live(again, 5)
    assert (await region.store.get(Server, servers[0])).status.phase == "Stopped"
    assert again.woken == [servers[1]]


@options(settings=unwatched())
async def test_m24_a_server_is_counted_by_its_phase_and_timed_once_when_it_comes_and_goes(
    region: RegionEnvironment,
) -> None:
    monitored = Monitored(region)
    network = await region.network()
    first = await region.server(network, "first")
    await monitored.settled(first)
    task = asyncio.create_task(monitored.monitor.run())
    await region.clock.sleep(1)
    assert monitored.sample("servers", phase="running") == 1
    second = await region.server(network, "second")
    await monitored.settled(second)
    await region.clock.sleep(60)
    assert monitored.sample("servers", phase="running") == 2
    assert monitored.sample("server_running_seconds_count") == 1
    assert monitored.sample("server_scheduling_seconds_count") == 1
    assert 1 <= (monitored.sample("server_running_seconds_sum") or 0) <= 30
    assert (await region.root.delete(f"/api/v2/servers/{second}")).status == 202
    await region.until_gone(f"/api/v2/servers/{second}")
    await region.clock.sleep(1)
    assert monitored.sample("servers", phase="running") == 1
    assert monitored.sample("server_deletion_seconds_count") == 1
    await region.clock.sleep(301)
    assert monitored.sample("orphans", subject="server") == 0
    assert (monitored.sample("flavor_free", flavor="sim-small-1") or 0) > 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert monitored.sample("servers", phase="running") is None


@options(settings=unwatched())
async def test_a_network_that_runs_low_is_told_of_until_it_is_full(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    network = await region.store.get(Network, await region.network(prefix="10.0.0.0/24"))
    pool = list(plan_of(network).dhcp_pool)
    free = int(0.1 * len(pool))
    await monitored.watch.capacity.measure(await monitored.cloud())
    assert (monitored.sample("networks_low"), monitored.sample("networks_exhausted")) == (0, 0)
    await take(region, network, pool[free:])
    await monitored.watch.capacity.measure(await monitored.cloud())
    assert monitored.sample("networks_low") == 1
    assert monitored.sample("networks_exhausted") == 0
    assert monitored.sample("networks_low_free_addresses") == free
    await take(region, network, pool[:free])
    await monitored.watch.capacity.measure(await monitored.cloud())
    assert monitored.sample("networks_exhausted") == 1
    assert monitored.sample("networks_low_free_addresses") == 0


async def take(region: RegionEnvironment, network: Network, addresses: Sequence[IPv4Address]) -> None:
    for address in addresses:
        holder = Network(metadata=Metadata(name="holder", uid="uid"), spec=network.spec)
        assert await allocate_specific_address(region.store, network, holder, address) is not None


@options(settings=unwatched())
async def test_vlans_are_counted_where_there_are_any(region: RegionEnvironment) -> None:
    monitored = Monitored(region)
    await monitored.watch.capacity.measure(await monitored.cloud())
    assert monitored.sample("vlans_free") is None
    found = await region.store.get(Region, NORTH)
    networks = NetworksConfig(provider_networks=ProviderNetworksConfig(physical_network="physnet"))
    spec = msgspec.structs.replace(found.spec, openstack=RegionOpenstack(endpoint="", network=networks))
    found = await region.store.update(msgspec.structs.replace(found, spec=spec))
    taken = tuple(TakenVlan(id=each, physical_network_id="net") for each in range(1, 11))
    metadata = Metadata(name=vlans_name(found.spec.provider, found.name))
    await region.store.create(VLANAllocation(metadata=metadata, spec=VLANAllocationSpec(allocations=taken)))
    await monitored.watch.capacity.measure(await monitored.cloud())
    assert (monitored.sample("vlans_taken"), monitored.sample("vlans_free")) == (10, 4084)


def at_cloud(**changes: Any) -> CloudServer:
    """Return a server as a provider has it."""
    handle = Handle("tenancy", "server-id.uid.0")
    found = CloudServer(
        handle=handle, id="1", state="running", flavor="small", image="linux", port="port", version="1", created=NOW
    )
    return replace(found, **changes)


def ours(**status: Any) -> Server:
    """Return a server that was made small, of linux."""
    return Server(
        metadata=Metadata(name="id", uid="uid"),
        spec=ServerSpec(flavor_id="small", image=ServerImage(id="linux")),
        status=ServerStatus(applied_image_id="linux", **status),
    )


def test_a_server_that_became_another_by_itself_says_so_until_it_is_as_it_was() -> None:
    assert with_drift(ours(), at_cloud(), NOW) == ours()
    drifted = with_drift(ours(), at_cloud(flavor="large", image="bsd"), NOW)
    found = find_condition(drifted.status.conditions, DRIFTED)
    assert found is not None
    assert (found.status, found.message) == ("True", "its flavor is large, its image is bsd")
    assert is_drifted(drifted)
    assert with_drift(drifted, at_cloud(flavor="large", image="bsd"), NOW) == drifted
    repaired = with_drift(drifted, at_cloud(), NOW)
    assert not is_drifted(repaired)
    assert find_condition(repaired.status.conditions, DRIFTED) is not None


@pytest.mark.parametrize(
    "status",
    [
        {"rebuild": Rebuild(target_image_id="bsd", state="Initiated")},
        {"replacement": ReplacementStatus(started=1, completed=0)},
    ],
)
def test_what_we_change_ourselves_is_no_drift(status: dict[str, Any]) -> None:
    changed = with_drift(ours(**status), at_cloud(flavor="large", image="bsd"), NOW)
    assert changed == ours(**status)


def test_a_request_another_image_is_no_drift() -> None:
    server = ours()
    wished = msgspec.structs.replace(server, spec=msgspec.structs.replace(server.spec, image=ServerImage(id="bsd")))
    assert with_drift(wished, at_cloud(), NOW) == wished


@options(settings=unwatched())
async def test_what_is_under_way_is_looked_at_often_only_where_the_provider_tells_nothing(
    region: RegionEnvironment,
) -> None:
    assert (await region.app.providers.get(NORTH)).wait_s == 30
    clouds: Any = region.clouds.clouds
    clouds[NORTH].provider = replace(clouds[NORTH].provider, events=None)
    assert (await region.app.providers.get(NORTH)).wait_s == 2
    server = await region.server(await region.network())
    began = region.clock.monotonic()
    await Monitored(region).settled(server)
    assert region.clock.monotonic() - began < 15
