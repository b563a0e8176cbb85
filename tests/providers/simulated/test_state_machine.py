"""How servers are follows from stored times and the clock."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists
from remuda.providers.contract.common import NoCapacity, Rejected, WrongState
from remuda.providers.contract.networks import Tenancy
from remuda.providers.simulated.provider import open_cloud
from tests.kit.environment import options
from tests.kit.providers.conformance import TENANCY, everything, handle_of_port, handle_of_server, port_spec
from tests.kit.providers.simulated_cloud import (
    METAL,
    METAL_IMAGE,
    PINNED,
    PROMPT,
    USUAL,
    Scene,
    bench_of,
    on_file,
    with_capacity,
)
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER

SERVER = handle_of_server()


async def test_a_server_boots_for_two_seconds(scene: Scene) -> None:
    await scene.bench.port()
    made = await scene.servers.create_server(scene.bench.server_spec())
    assert (made.state, made.launched) == ("building", None)
    await scene.sleep(1.9)
    assert await scene.state() == "building"
    await scene.sleep(0.2)
    found = await scene.servers.find_server(SERVER)
    assert found is not None
    assert found.state == "running"
    assert found.launched is not None
    assert found.launched - found.created == timedelta(seconds=2)


async def test_bare_metal_waits_for_its_machine_first(scene: Scene) -> None:
    await scene.bench.port()
    wanted = replace(scene.bench.server_spec(), flavor=METAL, image=METAL_IMAGE)
    assert (await scene.servers.create_server(wanted)).state == "queued"
    await scene.sleep(3.5)
    assert await scene.state() == "building"
    with pytest.raises(WrongState):
        await scene.servers.stop_server(SERVER)
    await scene.sleep(2)
    found = await scene.servers.find_server(SERVER)
    assert found is not None
    assert found.state == "running"
    assert found.launched is not None
    assert found.launched - found.created == timedelta(seconds=5), "though nobody looked just then"


@options(seeds=3)
async def test_what_booted_when_the_process_died_goes_on_booting_and_what_was_removed_is_gone(world: World) -> None:
    path = world.disk.directory.parent / "cloud.db"
    first = on_file(path, world.clock, world.randomness)
    bench, servers = bench_of(first, world.clock), first.provider.servers
    assert servers is not None
    await bench.port(1)
    await bench.port(2)
    await servers.create_server(bench.server_spec(2))
    await world.clock.sleep(3)
    await servers.remove_server(handle_of_server(2))
    made = await servers.create_server(bench.server_spec(1))
    await world.clock.sleep(0.1)
    await first.stop()
    await world.clock.sleep(0.9)
    second = on_file(path, world.clock, world.randomness)
    servers = second.provider.servers
    assert servers is not None
    found = await servers.find_server(SERVER)
    assert found == made, "not yet"
    assert await servers.find_server(handle_of_server(2)) is None
    await world.clock.sleep(1.5)
    found = await servers.find_server(SERVER)
    assert found is not None
    assert found.state == "running"
    assert found.launched == made.created + timedelta(seconds=2)
    await second.stop()


@options(seeds=1)
async def test_whoever_looks_sees_all_that_became_of_a_server_since_nobody_looked(world: World) -> None:
    path = world.disk.directory.parent / "cloud.db"
    cloud = on_file(path, world.clock, world.randomness)
    bench, servers = bench_of(cloud, world.clock), cloud.provider.servers
    assert servers is not None
    await bench.port()
    made = await servers.create_server(replace(bench.server_spec(), flavor=METAL, image=METAL_IMAGE))
    await world.clock.sleep(60)
    found = await servers.find_server(SERVER)
    assert found is not None
    assert (found.state, found.launched) == ("running", made.created + timedelta(seconds=5))
    await cloud.stop()


async def test_a_corrected_wall_clock_makes_no_server_boot_sooner_or_later(scene: Scene) -> None:
    await scene.bench.port()
    await scene.servers.create_server(scene.bench.server_spec())
    scene.world.clock.jump(timedelta(hours=5))
    assert await scene.state() == "building"
    scene.world.clock.jump(timedelta(hours=-10))
    await scene.sleep(2.1)
    assert await scene.state() == "running"


@options(seeds=1)
async def test_time_does_not_run_backwards_over_a_restart(world: World) -> None:
    path = world.disk.directory.parent / "cloud.db"
    first = on_file(path, world.clock, world.randomness)
    bench, servers = bench_of(first, world.clock), first.provider.servers
    assert servers is not None
    await bench.port()
    await servers.create_server(bench.server_spec())
    await first.stop()
    world.clock.jump(timedelta(hours=-5))
    second = on_file(path, world.clock, world.randomness)
    servers = second.provider.servers
    assert servers is not None
    await world.clock.sleep(2.1)
    found = await servers.find_server(SERVER)
    assert found is not None
    assert found.state == "running"
    await second.stop()


async def test_a_server_on_its_way_out_does_nothing_else(scene: Scene) -> None:
    await scene.bench.server()
    await scene.servers.remove_server(SERVER)
    assert await scene.state() == "removing"
    for verb in (
        scene.servers.stop_server(SERVER),
        scene.servers.reboot_server(SERVER, hard=True),
        scene.servers.rebuild_server(SERVER, scene.bench.image),
    ):
        with pytest.raises(WrongState, match="is removing, which does not allow this"):
            await verb
    with pytest.raises(AlreadyExists):
        await scene.servers.create_server(scene.bench.server_spec())
    await scene.bench.gone(SERVER)


async def test_a_server_that_never_ran_cannot_be_rebuilt_and_one_that_failed_later_can(scene: Scene) -> None:
    await scene.bench.port()
    await scene.servers.create_server(scene.bench.server_spec())
    scene.cloud.operator.fail(SERVER.name, "no such luck")
    with pytest.raises(WrongState, match="is failed"):
        await scene.servers.rebuild_server(SERVER, scene.bench.image)
    await scene.servers.remove_server(SERVER)
    await scene.bench.gone(SERVER)
    await scene.bench.server()
    scene.cloud.operator.fail(SERVER.name)
    await scene.servers.rebuild_server(SERVER, scene.bench.other_image)
    rebuilt = await scene.bench.in_state(SERVER, "running")
    assert rebuilt.fault == ""


async def test_flavor_image_and_host_have_to_fit_together(scene: Scene) -> None:
    await scene.bench.port()
    spec = scene.bench.server_spec()
    arm, metal_image = "b1f0c0de-0002-4000-8000-000000000002", "b1f0c0de-0005-4000-8000-000000000005"
    for wanted, why in (
        (replace(spec, image=arm), "a different architecture"),
        (replace(spec, image=metal_image), "does not run on"),
        (replace(spec, flavor=METAL), "does not run on"),
        (replace(spec, flavor=PINNED, image=METAL_IMAGE), "must name its host"),
        (replace(spec, host="nowhere"), "there is no host nowhere for servers of this flavor"),
    ):
        with pytest.raises(Rejected, match=why):
            await scene.servers.create_server(wanted)
    assert await scene.state() == "gone"


@options(seeds=1)
async def test_a_rebuild_needs_an_image_that_fits_and_a_retired_flavor_fits_any(world: World) -> None:
    arm = "b1f0c0de-0002-4000-8000-000000000002"
    path = world.disk.directory.parent / "cloud.db"
    first = on_file(path, world.clock, world.randomness)
    bench = bench_of(first, world.clock)
    await bench.server()
    assert bench.provider.servers is not None
    with pytest.raises(Rejected, match="a different architecture"):
        await bench.provider.servers.rebuild_server(SERVER, arm)
    assert (await bench.in_state(SERVER, "running")).image == bench.image
    await first.stop()
    retired = replace(PROMPT, flavors=tuple(each for each in PROMPT.flavors if each.id != bench.flavor))
    second = on_file(path, world.clock, world.randomness, retired)
    bench = bench_of(second, world.clock)
    assert bench.provider.servers is not None
    await bench.provider.servers.rebuild_server(SERVER, bench.other_image)
    assert (await bench.in_state(SERVER, "running")).image == bench.other_image
    await second.stop()


@options(
    lambda: {"catalogue": replace(PROMPT, flavors=tuple(replace(each, disk_bytes=2**30) for each in PROMPT.flavors))}
)
async def test_an_image_larger_than_the_disk_is_refused(scene: Scene) -> None:
    await scene.bench.port()
    with pytest.raises(Rejected, match="larger than the flavor's disk"):
        await scene.servers.create_server(scene.bench.server_spec())


@options(catalogue=with_capacity(2, 1))
async def test_there_is_capacity_for_so_many_and_a_failed_create_takes_none(scene: Scene) -> None:
    for number in (1, 2, 3):
        await scene.bench.port(number)
    hosts = [(await scene.servers.create_server(scene.bench.server_spec(number))).host for number in (1, 2)]
    assert len(set(hosts)) == 2, "they are spread over the hosts"
    with pytest.raises(NoCapacity):
        await scene.servers.create_server(scene.bench.server_spec(3))
    assert await scene.state(3) == "gone"
    assert await free(scene) == 0
    await scene.servers.remove_server(SERVER)
    await scene.bench.gone(SERVER)
    assert await free(scene) == 1
    assert (await scene.servers.create_server(scene.bench.server_spec(3))).host == hosts[0]


async def test_a_pinned_server_goes_where_it_says_and_nowhere_else(scene: Scene) -> None:
    await scene.bench.port(1)
    await scene.bench.port(2)
    host = "sim-north-sim-metal-gpu-128-02"
    specs = [replace(scene.bench.server_spec(number), flavor=PINNED, image=METAL_IMAGE, host=host) for number in (1, 2)]
    assert (await scene.servers.create_server(specs[0])).host == host
    with pytest.raises(NoCapacity, match=f"the host {host}"):
        await scene.servers.create_server(specs[1])


@options(seeds=1)
async def test_a_host_that_the_catalogue_no_longer_has_keeps_its_servers_and_gets_no_new_one(world: World) -> None:
    path = world.disk.directory.parent / "cloud.db"
    first = on_file(path, world.clock, world.randomness, with_capacity(2, 2))
    bench = bench_of(first, world.clock)
    for number in (1, 2):
        await bench.server(number)
    await first.stop()
    second = on_file(path, world.clock, world.randomness, with_capacity(1, 2))
    bench = bench_of(second, world.clock)
    assert bench.provider.servers is not None
    made = await bench.server(3)
    kept = await everything(bench.provider.servers.server_versions())
    assert len(kept) == 3
    assert made.host.endswith("-01")
    await bench.port(4)
    with pytest.raises(NoCapacity):
        await bench.provider.servers.create_server(bench.server_spec(4))
    await second.stop()


@options(catalogue=replace(PROMPT, public_addresses=("192.0.2.0/30",)))
async def test_public_addresses_come_from_the_pool_until_it_is_empty(scene: Scene) -> None:
    ports = scene.provider.ports
    assert ports is not None
    given = [(await scene.bench.port(number, is_public=True)).public_address for number in (1, 2)]
    assert given == ["192.0.2.1", "192.0.2.2"]
    await scene.bench.port(3)
    with pytest.raises(NoCapacity, match="a public address"):
        await ports.converge_port(port_spec(3, is_public=True))
    kept = await ports.find_port(handle_of_port(3))
    assert kept is not None
    assert not kept.spec.is_public
    await ports.converge_port(port_spec(1))
    assert (await ports.converge_port(port_spec(3, is_public=True))).public_address == "192.0.2.1"


@options(seeds=1)
async def test_a_public_address_that_is_no_longer_offered_stays_with_whoever_has_it(world: World) -> None:
    path = world.disk.directory.parent / "cloud.db"
    given: list[str] = []
    for prefix in ("192.0.2.0/30", "203.0.113.0/30", "192.0.2.0/30"):
        offered = replace(PROMPT, public_addresses=(prefix,))
        cloud = on_file(path, world.clock, world.randomness, offered)
        number = len(given) + 1
        given.append((await bench_of(cloud, world.clock).port(number, is_public=True)).public_address)
        await cloud.stop()
    assert given == ["192.0.2.1", "203.0.113.1", "192.0.2.2"]


@options(catalogue=with_capacity(1, 2000), seeds=1)
async def test_many_servers_are_observed_in_parts(scene: Scene) -> None:
    ports, tenancies, networks = scene.provider.ports, scene.provider.tenancies, scene.provider.networks
    assert ports is not None
    assert tenancies is not None
    assert networks is not None
    await tenancies.converge_tenancy(Tenancy(name=TENANCY, organization="o", project="p"))
    network = await scene.bench.network()
    await networks.remove_network(network.spec.handle)
    wide = replace(network.spec, prefix="10.1.0.0/16")
    await networks.converge_network(wide)
    for number in range(1, 1201):
        await ports.converge_port(port_spec(number, address=f"10.1.{number // 250 + 1}.{number % 250}"))
        await scene.servers.create_server(scene.bench.server_spec(number))
    parts = [part async for part in scene.servers.server_versions()]
    assert [len(part) for part in parts] == [500, 500, 200]
    seen = {each.handle for part in parts for each in part}
    assert seen == {handle_of_server(number) for number in range(1, 1201)}


@options(catalogue=USUAL, seeds=1)
async def test_the_usual_boot_is_a_little_quicker_or_slower_each_time(scene: Scene) -> None:
    waits = set()
    for number in (1, 2, 3):
        server = await scene.bench.server(number)
        assert server.launched is not None
        waits.add((server.launched - server.created).total_seconds())
    assert len(waits) == 3
    assert all(1.8 <= wait <= 2.2 for wait in waits)


class Hasty:
    """A clock whose sleeps end up to half a millisecond too early, as those of a loop do that counts milliseconds."""

    def __init__(self, clock: Clock) -> None:
        self.now, self.monotonic, self._clock = clock.now, clock.monotonic, clock

    async def sleep(self, seconds: float) -> None:
        """Sleep as many whole milliseconds as are nearest; a turn of the loop takes a little, too."""
        await self._clock.sleep(max(0.0001, round(seconds, 3)))


@options(seeds=20)
async def test_a_server_that_has_come_up_is_told_of_even_if_the_timer_rang_too_early(world: World) -> None:
    clock = Hasty(world.clock)
    jittery = replace(PROMPT, times=USUAL.times)
    cloud = open_cloud(None, jittery, clock=clock, sealer=SEALER, randomness=world.randomness)
    await cloud.start()
    bench = bench_of(cloud, clock)
    assert cloud.provider.servers is not None
    assert cloud.provider.events is not None
    await bench.port()
    await cloud.provider.servers.create_server(bench.server_spec())
    heard = cloud.provider.events.events()
    async with asyncio.timeout(3):
        told = await anext(heard)
    assert (told.subject, told.handle) == ("server", SERVER), "though nobody looked"
    found = await cloud.provider.servers.find_server(SERVER)
    assert found is not None
    assert found.state == "running"
    await cloud.stop()


async def free(scene: Scene) -> int | None:
    return next(each.free for each in await scene.provider.catalogue.flavors() if each.id == scene.bench.flavor)
