"""Scans and the queue: a key that a scan adds comes no later than without it, and no earlier than it should."""

from remuda.reconcile.queue import Queue, Rank
from tests.kit.environment import options, provided_by
from tests.kit.sample_farm.queue import key_of, simulated
from tests.kit.simulation.runner import World

world = provided_by(simulated)
queue = provided_by(simulated, position=1)


async def test_a_key_keeps_its_place_when_a_scan_adds_it_again(queue: Queue) -> None:
    queue.add("wanted")
    queue.add("routine", "requeue", Rank.ROUTINE)
    queue.add("wanted", "resync", Rank.RESYNC)
    assert [await key_of(queue.take()) for _ in range(2)] == ["wanted", "routine"]


@options(seeds=2)
async def test_a_scan_makes_no_key_come_later_than_it_would_have(world: World, queue: Queue) -> None:
    async def busy() -> list[str | None]:
        """Return the order in which a worker gets to keys while users keep it busy for 20 s."""
        taken = []
        for second in range(20):
            queue.add(f"user-{second}-a")
            queue.add(f"user-{second}-b")
            taken.append(await key_of(queue.take()))
            await world.clock.sleep(1)
        return taken

    queue.add_after("delayed", 1)
    queue.add("running")
    assert await key_of(queue.take()) == "running"
    for key in ("delayed", "running"):
        queue.add(key, "resync", Rank.RESYNC)
    queue.finish("running", requeue_s=1)
    taken = await busy()
    assert {"delayed", "running"} <= set(taken)


async def test_a_scan_does_not_shorten_the_pause_after_a_failure_but_takes_the_place_of_a_far_wake(
    world: World, queue: Queue
) -> None:
    for key, has_failed in (("failing", True), ("far", False)):
        queue.add(key)
        await queue.take()
        queue.finish(key, requeue_s=200, has_failed=has_failed)
    for key in ("failing", "far"):
        queue.add(key, "resync", Rank.RESYNC)
    assert await key_of(queue.take()) == "far"
    assert queue.depth == 0
    began = world.clock.monotonic()
    assert await key_of(queue.take()) == "failing"
    assert world.clock.monotonic() - began > 199


async def test_what_was_lost_while_a_worker_has_the_key_is_looked_at_after_it(queue: Queue) -> None:
    queue.add("a")
    await queue.take()
    queue.add("a", "start", Rank.RESYNC)
    queue.finish("a")
    assert await key_of(queue.take()) == "a"


async def test_keys_that_scans_have_added_are_counted_until_a_worker_has_them(queue: Queue) -> None:
    queue.add("user")
    for key in ("a", "b"):
        queue.add(key, "resync", Rank.RESYNC)
    assert (queue.depth, queue.resynced) == (3, 2)
    queue.add("a")
    counts = []
    for _taken in range(3):
        await queue.take()
        counts.append(queue.resynced)
    assert counts == [2, 1, 0]
