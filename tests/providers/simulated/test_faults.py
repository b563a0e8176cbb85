"""Each fault does what it says, and no more."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from remuda.kernel.errors import AlreadyExists, NotFound, Unavailable
from remuda.kernel.randomness import SeededRandomness
from remuda.providers.contract.common import Handle, InUse, WrongState, balancer_name
from remuda.providers.contract.loadbalancers import CloudLoadBalancerSpec
from remuda.providers.contract.provider import CloudEvent
from remuda.providers.contract.servers import CloudServerVersion
from remuda.providers.simulated.faults import FAULTS, CloudFailed, FaultBounds, RandomFaults, RateLimited
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from tests.kit.environment import options
from tests.kit.providers.conformance import NETWORK, TENANCY, everything, handle_of_port, handle_of_server, port_spec
from tests.kit.providers.simulated_cloud import PROMPT, USUAL, Scene, bench_of
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER

SERVER = handle_of_server()
SLOWLY = USUAL
"""A cloud that takes time to answer."""


@options(catalogue=SLOWLY)
async def test_an_effect_goes_on_when_whoever_asked_for_it_gives_up(scene: Scene) -> None:
    await scene.bench.port()
    asking = asyncio.create_task(scene.servers.create_server(scene.bench.server_spec()))
    await scene.sleep(0.001)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert scene.cloud.is_busy
    assert await scene.bench.in_state(SERVER, "running")
    assert not scene.cloud.is_busy


@options(rates={})
async def test_an_error_means_that_nothing_was_done(scene: Scene) -> None:
    await scene.bench.port()
    scene.world.faults.at("cloud.error.create_server", 1)
    with pytest.raises(CloudFailed):
        await scene.servers.create_server(scene.bench.server_spec())
    assert await scene.state() == "gone"
    await scene.servers.create_server(scene.bench.server_spec())


@options(rates={})
async def test_an_error_may_also_mean_that_it_was_done(scene: Scene) -> None:
    await scene.bench.port()
    scene.world.faults.at("cloud.error_after_write.create_server", 1)
    with pytest.raises(CloudFailed):
        await scene.servers.create_server(scene.bench.server_spec())
    assert await scene.state() == "building"
    with pytest.raises(AlreadyExists):
        await scene.servers.create_server(scene.bench.server_spec())


@options(rates={})
async def test_an_answer_may_come_far_too_late_though_it_was_done_at_once(scene: Scene) -> None:
    await scene.bench.port()
    scene.world.faults.at("cloud.timeout_after_write.create_server", 1)
    asking = asyncio.create_task(scene.servers.create_server(scene.bench.server_spec()))
    await scene.sleep(1)
    assert not asking.done()
    assert await scene.state() == "building"
    assert (await asking).handle == SERVER
    assert scene.world.clock.monotonic() >= 60


@options(rates={})
async def test_a_slow_call_is_done_late(scene: Scene) -> None:
    await scene.bench.port()
    scene.world.faults.at("cloud.slow.create_server", 1)
    began = scene.world.clock.monotonic()
    await scene.servers.create_server(scene.bench.server_spec())
    assert 0 < scene.world.clock.monotonic() - began <= FaultBounds().slow_s


@options(rates={})
async def test_who_asks_too_often_is_told_so(scene: Scene) -> None:
    await scene.bench.port()
    for verb, asked in (
        ("find_server", scene.servers.find_server(SERVER)),
        ("create_server", scene.servers.create_server(scene.bench.server_spec())),
    ):
        scene.world.faults.at(f"cloud.rate_limited.{verb}", 1)
        with pytest.raises(RateLimited) as rejection:
            await asked
        assert isinstance(rejection.value, Unavailable)
    assert await scene.state() == "gone"


@options(rates={})
async def test_a_stale_read_shows_what_was_and_never_anything_older_than_its_bound(scene: Scene) -> None:
    faults, ports = scene.world.faults, scene.provider.ports
    assert ports is not None
    await scene.bench.port()
    await scene.sleep(10)
    faults.at("cloud.stale.find_port", 1)
    faults.at("cloud.stale.find_port", 2)
    await ports.converge_port(port_spec(is_public=True))
    await ports.converge_port(replace(port_spec(is_public=True), sources=("192.0.2.0/24",)))
    was = await ports.find_port(handle_of_port())
    assert was is not None
    assert not was.spec.is_public
    await scene.sleep(FaultBounds().stale_s)
    now = await ports.find_port(handle_of_port())
    assert now is not None
    assert now.spec.sources == ("192.0.2.0/24",)
    assert scene.provider.lag_s == FaultBounds().stale_s


@options(rates={})
async def test_a_stale_list_lacks_what_is_new_and_has_what_is_gone(scene: Scene) -> None:
    first = await scene.bench.server(1)
    await scene.sleep(10)
    await scene.bench.port(2)
    await scene.servers.create_server(scene.bench.server_spec(2))
    scene.cloud.operator.vanish(first.handle.name)
    scene.world.faults.at("cloud.stale.server_versions", 1)
    assert await everything(scene.servers.server_versions()) == [CloudServerVersion(first.handle, first.version)]
    assert [each.handle for each in await everything(scene.servers.server_versions())] == [handle_of_server(2)]


@options(rates={})
async def test_what_was_made_is_not_to_be_seen_yet_but_it_is_there(scene: Scene) -> None:
    await scene.bench.port()
    scene.world.faults.at("cloud.not_visible_yet.server", 1)
    await scene.servers.create_server(scene.bench.server_spec())
    assert await scene.servers.find_server(SERVER) is None
    assert await everything(scene.servers.server_versions()) == []
    with pytest.raises(AlreadyExists):
        await scene.servers.create_server(scene.bench.server_spec())
    await scene.sleep(FaultBounds().stale_s)
    assert await scene.state() == "running"


@options(rates={})
async def test_a_list_may_have_a_row_twice(scene: Scene) -> None:
    await scene.bench.port()
    ports = scene.provider.ports
    assert ports is not None
    scene.world.faults.at("cloud.duplicate_rows.ports", 1)
    assert [each.spec.handle for each in await everything(ports.ports())] == [handle_of_port()] * 2
    assert len(await everything(ports.ports())) == 1


@options(rates={})
async def test_an_event_may_be_lost(scene: Scene) -> None:
    await scene.bench.server()
    assert scene.provider.events is not None
    heard = scene.provider.events.events()
    scene.world.faults.at("cloud.dropped_event", 1)
    scene.cloud.operator.stop(SERVER.name)
    await scene.servers.start_server(SERVER)
    assert await anext(heard) == CloudEvent("server", SERVER)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(heard), 60)


@options(catalogue=SLOWLY, seeds=1)
async def test_without_a_menu_nothing_goes_wrong_and_reads_are_never_old(scene: Scene) -> None:
    for number in range(1, 21):
        await scene.bench.server(number)
    assert scene.provider.lag_s == 0
    assert len(await everything(scene.servers.server_versions())) == 20


@options(catalogue=replace(PROMPT, faults={"rate_limited.converge_tenancy": 1.0}))
async def test_a_catalogue_may_ask_for_faults_at_a_rate(scene: Scene) -> None:
    faults = RandomFaults(SeededRandomness(1), {"error": 0.5, "slow.create_server": 1.0})
    fired = [faults.fires("cloud.error") for _ in range(100)]
    assert 20 < sum(fired) < 80
    assert faults.fires("cloud.slow.create_server")
    assert not faults.fires("cloud.slow")
    with pytest.raises(RateLimited):
        await scene.bench.tenancy()


RATES = {f"cloud.{fault}": 0.15 for fault in FAULTS}


async def busy_life(world: World) -> list[str]:
    """Make, change and remove things under every fault, as somebody who only tries again; return all that was seen."""
    cloud = open_cloud(None, SLOWLY, clock=world.clock, sealer=SEALER, randomness=world.randomness, faults=world.faults)
    await cloud.start()
    world.invariants.append(lambda: check_books(cloud))
    bench, seen = bench_of(cloud, world.clock), list[str]()
    provider = cloud.provider
    servers, ports, balancers, events = provider.servers, provider.ports, provider.load_balancers, provider.events
    assert servers is not None
    assert ports is not None
    assert balancers is not None
    assert events is not None
    heard = events.events()

    async def insist(ask: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                seen.append(f"{world.clock.monotonic():.6f} {await asyncio.wait_for(ask(), 30)}")
            except (Unavailable, TimeoutError, InUse) as error:
                seen.append(type(error).__name__)
                await world.clock.sleep(0.1)
            except (AlreadyExists, WrongState, NotFound) as error:
                seen.append(type(error).__name__)
                return
            else:
                return

    async def life(number: int) -> None:
        handle, balancer = handle_of_server(number), balancer_spec(number)
        await insist(lambda: ports.converge_port(port_spec(number, is_public=number % 2 == 0)))
        await insist(lambda: servers.create_server(bench.server_spec(number)))
        await insist(lambda: balancers.converge_balancer(balancer))
        await insist(lambda: servers.stop_server(handle))
        if number == 1:
            with suppress(NotFound):
                cloud.operator.vanish(handle.name)
        await insist(lambda: servers.rebuild_server(handle, bench.other_image))
        await insist(lambda: servers.remove_server(handle))
        await insist(lambda: balancers.remove_balancer(balancer.handle))
        await insist(lambda: everything(servers.server_versions()))
        await insist(lambda: ports.remove_port(port_spec(number).handle))

    await insist(bench.network)
    await asyncio.gather(*map(life, range(1, 6)))
    world.faults.stop()
    while cloud.is_busy:
        await world.clock.sleep(10)
    await world.clock.sleep(10)
    for left in (servers.server_versions(), ports.ports(), balancers.balancers()):
        assert await everything(left) == [], "what was told to go is gone"
    await cloud.stop()
    world.invariants.clear()
    return [*seen, str(await anext(heard))]


def balancer_spec(number: int) -> CloudLoadBalancerSpec:
    handle = Handle(TENANCY, balancer_name(f"f0000000-0000-4000-8000-{number:012d}", "uid-5"))
    return CloudLoadBalancerSpec(
        handle=handle, network=NETWORK.name, address=f"10.1.0.{200 + number}", mac="02:00:0a:01:00:c8", is_public=True
    )


def check_books(cloud: SimulatedCloud) -> None:
    """What the cloud counts and what it has agree, after every step."""
    storage = cloud._context.storage

    def count(what: str) -> int:
        ((number,),) = storage.rows(f"SELECT {what}")
        return int(number or 0)

    assert count("sum(used) FROM hosts") == count("count(*) FROM servers")
    assert count("count(*) FROM addresses") == count("count(*) FROM ports") + count("count(*) FROM balancers")
    assert count("count(holder) FROM public_addresses") <= count("count(*) FROM addresses")
    assert count("count(*) FROM servers s LEFT JOIN ports p USING (tenancy) WHERE p.name = s.port") == count(
        "count(*) FROM servers"
    ), "every server has its port"


@options(seeds=20, rates=RATES)
async def test_under_all_faults_who_tries_again_gets_there(world: World) -> None:
    await busy_life(world)


def test_a_seed_repeats_a_whole_run() -> None:
    runs: list[Sequence[str]] = []

    async def scenario(world: World) -> None:
        runs.append(await busy_life(world))

    for _ in range(2):
        simulate(scenario, 5, rates=RATES)
    assert runs[:5] == runs[5:]
    assert runs[0] != runs[1]
    assert TENANCY in " ".join(runs[0])
