"""Which key is looked at next."""

import asyncio

import uvloop

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import SystemClock
from remuda.reconcile.queue import Queue, Rank
from tests.kit.environment import options, provided_by
from tests.kit.sample_farm.queue import key_of, simulated
from tests.kit.simulation.runner import World

world = provided_by(simulated)
queue = provided_by(simulated, position=1)


async def test_a_key_that_was_added_often_comes_once(queue: Queue) -> None:
    for key in ("a", "b", "a", "a"):
        queue.add(key)
    assert queue.depth == 2
    assert [await key_of(queue.take()), await key_of(queue.take())] == ["a", "b"]
    assert queue.depth == 0


async def test_a_key_is_never_handed_out_twice_at_the_same_time_and_comes_again_if_it_was_added_meanwhile(
    world: World, queue: Queue
) -> None:
    running: set[str] = set()
    seen: list[int] = []
    added = 0

    async def work() -> None:
        while (taken := await queue.take()) is not None:
            key, _ = taken
            assert key not in running
            running.add(key)
            seen.append(added)
            await world.clock.sleep(world.randomness.uniform(0, 2))
            running.remove(key)
            queue.finish(key)

    workers = [asyncio.create_task(work()) for _ in range(4)]
    for _ in range(40):
        added += 1
        queue.add("abc"[world.randomness.randrange(3)])
        await world.clock.sleep(world.randomness.uniform(0, 0.5))
    await world.clock.sleep(10)
    assert seen[-1] == added
    assert queue.is_idle
    queue.close()
    await asyncio.gather(*workers)


async def test_what_a_user_caused_goes_before_a_scan_that_came_first(world: World, queue: Queue) -> None:
    queue.add("scanned", "resync", Rank.RESYNC)
    queue.add("routine", "requeue", Rank.ROUTINE)
    await world.clock.sleep(1)
    queue.add("wanted")
    assert [await key_of(queue.take()) for _ in range(3)] == ["wanted", "routine", "scanned"]


@options(seeds=2)
async def test_a_scan_is_late_and_never_starved(world: World, queue: Queue) -> None:
    queue.add("scanned", "resync", Rank.RESYNC)
    for number in range(10_000):
        queue.add(f"new-{number}")
        queue.add(f"newer-{number}")
        taken = await key_of(queue.take())
        if taken == "scanned":
            break
        await world.clock.sleep(1)
    assert taken == "scanned"
    assert number >= Rank.RESYNC


async def test_an_event_lifts_a_key_that_a_scan_has_added(queue: Queue) -> None:
    queue.add("a", "resync", Rank.RESYNC)
    queue.add("b", "requeue", Rank.ROUTINE)
    queue.add("a")
    taken = await queue.take()
    assert taken is not None
    assert (taken[0], taken[1].cause) == ("a", "event")


async def test_of_several_wakes_the_earliest_counts(world: World, queue: Queue) -> None:
    began = world.clock.monotonic()
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    queue.add_after("b", 5)
    assert await key_of(queue.take()) == "b"
    assert await key_of(queue.take()) == "a"
    assert abs(world.clock.monotonic() - began - 10) < 0.01
    queue.finish("a")
    queue.finish("b")
    await world.clock.sleep(100)
    assert queue.depth == 0


async def test_an_event_takes_the_place_of_a_delayed_wake(world: World, queue: Queue) -> None:
    queue.add_after("a", 10)
    queue.add("a")
    taken = await queue.take()
    assert taken is not None
    assert taken[1].cause == "event"
    queue.finish("a")
    await world.clock.sleep(100)
    assert queue.depth == 0


async def test_failures_are_counted_until_a_key_succeeds(queue: Queue) -> None:
    counts = []
    for has_failed in (True, True, False, True):
        queue.add("a")
        assert await key_of(queue.take()) == "a"
        queue.finish("a", has_failed=has_failed)
        counts.append(queue.failures("a"))
    assert counts == [1, 2, 0, 1]


async def test_only_a_key_with_which_nothing_is_under_way_counts_as_idle(queue: Queue) -> None:
    async def idleness(key: str) -> bool:
        queue.add(key, "resync", Rank.RESYNC)
        taken = await queue.take()
        assert taken is not None
        assert taken[0] == key
        return taken[1].was_idle

    assert await idleness("a")
    queue.finish("a", requeue_s=200)
    assert not await idleness("a")
    queue.finish("a", has_failed=True)
    assert not await idleness("a")
    queue.finish("a")
    assert await idleness("a")


async def test_a_taker_that_is_cancelled_passes_its_turn_on(queue: Queue) -> None:
    first = asyncio.create_task(queue.take())
    second = asyncio.create_task(key_of(queue.take()))
    await asyncio.sleep(0.1)
    queue.add("a")
    first.cancel()
    await asyncio.wait([first])
    if first.cancelled():
        assert await second == "a"
    else:
        second.cancel()


async def test_closing_sends_everybody_home_and_lets_workers_finish(world: World, queue: Queue) -> None:
    queue.add("a")
    assert await key_of(queue.take()) == "a"
    waiting = [asyncio.create_task(queue.take()) for _ in range(3)]
    await world.clock.sleep(1)
    queue.add_after("b", 1)
    queue.close()
    assert await asyncio.gather(*waiting) == [None, None, None]
    queue.add("c")
    queue.finish("a", requeue_s=1)
    await world.clock.sleep(10)
    assert queue.depth == 0
    assert await queue.take() is None


async def test_the_oldest_key_is_known(world: World, queue: Queue) -> None:
    assert queue.oldest_s() == 0
    queue.add("a", "resync", Rank.RESYNC)
    await world.clock.sleep(5)
    queue.add("b")
    await world.clock.sleep(2)
    assert queue.oldest_s() == 7
    await queue.take()
    assert queue.oldest_s() == 7
    await queue.take()
    assert queue.oldest_s() == 0


async def test_a_wake_is_behind_what_a_user_caused_a_little_later(world: World, queue: Queue) -> None:
    queue.add_after("woken", 1)
    await world.clock.sleep(3)
    queue.add("wanted")
    assert [await key_of(queue.take()) for _ in range(2)] == ["wanted", "woken"]


async def test_pauses_differ_by_chance_and_are_never_all_the_same(world: World) -> None:
    backoff = Backoff(first_s=1, longest_s=60)
    for failures, longest_s in ((1, 1), (3, 4), (50, 60)):
        pauses = {backoff.pause_s(failures, world.randomness) for _ in range(20)}
        assert len(pauses) == 20
        assert longest_s / 2 <= min(pauses) < max(pauses) <= longest_s
        assert max(pauses) - min(pauses) > longest_s / 10


def test_delays_that_are_nearly_over_are_kept_beside_each_other_on_the_loop_of_production() -> None:
    async def scenario() -> None:
        queue = Queue(SystemClock())
        queue.add_after("late", 0.0004)
        queue.add_after("soon", 0.0001)
        assert {await key_of(queue.take()), await key_of(queue.take())} == {"late", "soon"}
        queue.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
