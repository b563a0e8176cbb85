"""Verification queues: whoever comes back when told is verified, whatever floods the address."""

import asyncio
from collections.abc import Sequence
from itertools import count

import pytest

from remuda.http.failures import AuthenticationFailures
from remuda.http.ratelimit import OverLimit, RateLimit
from remuda.http.verification_queue import ENTRY_S, MAX_ENTRIES, Pacing, VerificationQueue
from tests.kit.simulation.runner import World, simulate

PACING = Pacing(interval_s=1.0, most_waiting=4)
ROUND_TRIP_S = 0.1


class Queue:
    """The queue of one address, and who was verified in which order."""

    def __init__(self, world: World) -> None:
        self.clock, self.queue = world.clock, VerificationQueue(world.clock, PACING)
        self.verified: list[str] = []
        self._tasks: list[asyncio.Task[bool]] = []

    async def try_once(self, subject: str) -> bool:
        is_admitted = await self.queue.wait(subject)
        if is_admitted:
            self.verified.append(subject)
        return is_admitted

    def begin(self, subject: str) -> None:
        """Send an attempt, and do not wait for it."""
        self._tasks.append(asyncio.create_task(self.try_once(subject)))

    async def flood(self, name: str, *, per_second: int) -> None:
        """Try with new subjects for ever, none of which comes back."""
        number = 0
        while True:
            for _ in range(per_second):
                number += 1
                self.begin(f"{name} {number}")
            await self.clock.sleep(1)

    async def insist(self, subject: str) -> int:
        """Come back as told until verified, and return the number of attempts."""
        attempts = 1
        while not await self.try_once(subject):
            attempts += 1
            await self.clock.sleep(PACING.retry_after_s)
        return attempts

    async def end(self, *tasks: asyncio.Task[object]) -> None:
        for task in (*tasks, *self._tasks):
            task.cancel()
        await asyncio.gather(*tasks, *self._tasks, return_exceptions=True)


def test_m27_whoever_comes_back_is_verified_at_the_second_attempt_however_many_new_subjects_flood_the_address() -> None:
    async def scenario(world: World) -> None:
        queue = Queue(world)
        flood = asyncio.create_task(queue.flood("guess", per_second=50))
        await world.clock.sleep(5.5)
        assert await queue.insist("ann") == 2
        assert len(queue.verified) <= 5 + 1 + 2 * PACING.most_waiting
        await queue.end(flood)

    simulate(scenario, [0])


def test_m27_whoever_comes_back_waits_only_for_those_that_were_there_before_also_if_all_come_back() -> None:
    async def scenario(world: World) -> None:
        queue = Queue(world)
        before = [asyncio.create_task(queue.insist(f"before {number}")) for number in range(30)]
        await world.clock.sleep(0.5)
        ann = asyncio.create_task(queue.insist("ann"))
        await world.clock.sleep(0.5)
        after = [asyncio.create_task(queue.insist(f"after {number}")) for number in range(100)]
        await ann
        ahead = queue.verified[: queue.verified.index("ann")]
        assert len(ahead) <= 30 + 2 * PACING.most_waiting, "and for those that waited while she was told to come back"
        await queue.end(*before, *after)

    simulate(scenario, [0])


def test_a_place_is_lost_when_its_subject_does_not_come_back() -> None:
    async def scenario(world: World) -> None:
        queue = Queue(world)
        for number in range(20):
            queue.begin(f"guess {number}")
        await world.clock.sleep(0.5)
        assert len(queue.queue) == 20
        await world.clock.sleep(ENTRY_S + 1)
        assert await queue.try_once("ann")
        assert len(queue.queue) == 0
        await world.clock.sleep(ENTRY_S + 1)
        assert queue.queue.is_over
        await queue.end()

    simulate(scenario, [0])


class Flood:
    """Connections of one address, each of which sends a new subject whenever it has a response."""

    def __init__(self, world: World, *, connections: int) -> None:
        self.clock, self.queue = world.clock, VerificationQueue(world.clock, Pacing())
        self.rejected = self.most_entries = 0
        self._tasks = [asyncio.create_task(self._send_always(number)) for number in range(connections)]

    async def _send_always(self, connection: int) -> None:
        for number in count():
            self.rejected += not await self.queue.wait(f"guess {connection} {number}")
            self.most_entries = max(self.most_entries, len(self.queue))
            await self.clock.sleep(ROUND_TRIP_S)

    async def insist(self, subject: str) -> int:
        """Come back as told until verified, but four times at most, and return the number of attempts."""
        for attempt in range(1, 5):
            if await self.queue.wait(subject):
                return attempt
            await self.clock.sleep(Pacing().retry_after_s)
        return 5

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.mark.parametrize("connections", [650, 2_000])
def test_m27_whoever_comes_back_has_an_entry_however_many_new_subjects_each_connection_sends(
    connections: int,
) -> None:
    async def scenario(world: World) -> None:
        flood, began = Flood(world, connections=connections), world.clock.monotonic()
        await world.clock.sleep(45)
        started = world.clock.monotonic()
        attempts = await asyncio.gather(*(flood.insist(victim) for victim in ("ann", "ben", "cat")))
        assert max(attempts) == 2, attempts
        now, rejection_s = world.clock.monotonic(), 2 * ENTRY_S / MAX_ENTRIES
        assert now - started <= 2 * Pacing().retry_after_s + connections * rejection_s + 1
        assert flood.rejected <= (now - began) / rejection_s
        assert flood.most_entries <= MAX_ENTRIES
        await flood.end()

    simulate(scenario, [0])


def test_m27_a_rejection_waits_behind_the_others_of_its_address_and_an_entry_found_does_not() -> None:
    async def scenario(world: World) -> None:
        queue = Queue(world)
        for number in range(PACING.most_waiting + 1):
            queue.begin(f"waits {number}")
        await world.clock.sleep(0.1)
        assert not await queue.try_once("ann")
        await world.clock.sleep(PACING.retry_after_s)
        for number in range(1_000):
            queue.begin(f"guess {number}")
        await world.clock.sleep(0.1)
        began = world.clock.monotonic()
        assert await queue.try_once("ann")
        assert world.clock.monotonic() - began <= (PACING.most_waiting + 1) * PACING.interval_s
        await queue.end()

    simulate(scenario, [0])


def test_a_queue_has_a_bounded_number_of_entries_and_of_rejections_that_wait() -> None:
    async def scenario(world: World) -> None:
        queue = Queue(world)
        for number in range(6_000):
            queue.begin(f"guess {number}")
        await world.clock.sleep(0)
        assert len(queue.queue) == PACING.most_waiting + 1
        assert not await queue.try_once("ann"), "at once: too many rejections wait"
        await world.clock.sleep(3 * ENTRY_S / 2)
        assert len(queue.queue) <= 1.1 * MAX_ENTRIES / 2
        await queue.end()

    simulate(scenario, [0])


def test_m27_a_flood_at_one_address_takes_no_place_at_another() -> None:
    async def scenario(world: World) -> None:
        failures = AuthenticationFailures(RateLimit(quota=1, name="failures"), world.clock, pacing=PACING)
        for address in ("here", "there"):
            failures.count(address)
        flood = [asyncio.create_task(failures.admit("here", subject=f"guess {number}")) for number in range(1_000)]
        await world.clock.sleep(0.1)
        began = world.clock.monotonic()
        await failures.admit("there", subject="ann")
        assert world.clock.monotonic() - began == PACING.interval_s
        rejected = await _rejections(flood)
        assert len(rejected) == 1_000 - PACING.most_waiting - 1
        assert all(each.retry_after_s <= ENTRY_S / 2 for each in rejected)

    simulate(scenario, [0])


async def _rejections(tasks: Sequence[asyncio.Task[None]]) -> list[OverLimit]:
    done = await asyncio.gather(*tasks, return_exceptions=True)
    return [each for each in done if isinstance(each, OverLimit)]
