"""What opens the breaker, and what says nothing about the provider."""

import asyncio

import pytest

from remuda.kernel.errors import OutcomeUnknown, TimedOut, Unavailable
from remuda.kernel.randomness import SeededRandomness
from remuda.providers.calls import CallRejected
from remuda.providers.circuit_breaker import BREAKER_STATES, CallSettings, CircuitBreaker, CircuitBreakerSettings
from tests.kit.environment import options
from tests.kit.providers.manual_time import ManualTime
from tests.kit.providers.slow_provider import Cloud

SETTINGS = CircuitBreakerSettings(failures_in_a_row=3, open_s=10, longest_open_s=40)
QUICK = CallSettings(breaker=SETTINGS, unresponsive_after_s=2)
KEYS = ("a", "b", "c")


class Breakable:
    """A breaker with a clock moved by hand."""

    def __init__(self) -> None:
        self.time = ManualTime()
        self.breaker = CircuitBreaker(self.time, SeededRandomness(0), SETTINGS)

    def admit(self) -> int:
        epoch = self.breaker.admit()
        assert epoch is not None
        return epoch

    def fail(self, *epochs: int) -> None:
        for epoch in epochs:
            self.breaker.record_failure(epoch)


def test_a_failure_of_a_call_that_began_before_the_breaker_opened_does_not_hold_it_open() -> None:
    it = Breakable()
    late, *others = [it.admit() for _ in range(4)]
    it.fail(*others)
    left_s = it.breaker.retry_after_s
    assert left_s > 0
    it.time.time += left_s / 2
    it.fail(late)
    assert it.breaker.retry_after_s == pytest.approx(left_s / 2)


def test_failures_of_calls_that_began_before_the_breaker_opened_do_not_open_it_after_it_closed() -> None:
    it = Breakable()
    late = [it.admit() for _ in range(3)]
    it.fail(*(it.admit() for _ in range(3)))
    it.time.time += SETTINGS.open_s
    it.breaker.record_success(it.admit())
    assert it.breaker.state == "closed"
    it.fail(*late)
    assert it.breaker.state == "closed"


def test_each_probe_that_fails_leaves_the_provider_alone_for_longer() -> None:
    it = Breakable()
    it.fail(*(it.admit() for _ in range(3)))
    for longest_s in (10, 20, 40, 40):
        assert longest_s / 2 <= it.breaker.retry_after_s <= longest_s
        it.time.time += longest_s
        it.fail(it.admit())


@options(settings=QUICK)
async def test_a_provider_that_does_not_answer_by_the_deadline_is_ill(cloud: Cloud) -> None:
    for key in KEYS:
        with pytest.raises(OutcomeUnknown):
            await cloud.make(key, takes_s=100, deadline_s=3)
    with pytest.raises(CallRejected, match="calls to it are paused"):
        await cloud.make("d")


@options(settings=QUICK)
async def test_a_read_that_is_not_answered_by_the_deadline_says_so_too(cloud: Cloud) -> None:
    for key in KEYS:
        with pytest.raises(TimedOut):
            await cloud.look(key, takes_s=100, deadline_s=3)
    with pytest.raises(CallRejected, match="calls to it are paused"):
        await cloud.look("d")


@options(settings=QUICK)
async def test_callers_who_hardly_wait_do_not_make_a_provider_ill(cloud: Cloud) -> None:
    for number in range(20):
        with pytest.raises(OutcomeUnknown):
            await cloud.make(f"key-{number}", takes_s=1, deadline_s=0.01)
        await cloud.world.clock.sleep(1)
    assert await cloud.make("z") == "z is there"


@options(settings=CallSettings(slots=1, breaker=SETTINGS, unresponsive_after_s=2))
async def test_callers_who_waited_long_for_a_slot_do_not_either(cloud: Cloud) -> None:
    for key in KEYS:
        under_way = asyncio.create_task(cloud.make("first", takes_s=9.5))
        await cloud.world.clock.sleep(0.1)
        with pytest.raises(OutcomeUnknown):
            await cloud.make(key, takes_s=1, deadline_s=10)
        await under_way
        await cloud.world.clock.sleep(1)
    assert await cloud.make("z") == "z is there"


@options(settings=QUICK)
async def test_a_probe_whose_caller_hardly_waits_gives_way_to_another(cloud: Cloud) -> None:
    for key in KEYS:
        with pytest.raises(OutcomeUnknown):
            await cloud.make(key, takes_s=100, deadline_s=3)
    await cloud.world.clock.sleep(SETTINGS.open_s)
    with pytest.raises(OutcomeUnknown):
        await cloud.make("d", takes_s=1, deadline_s=0.01)
    assert await cloud.make("e") == "e is there"


@options(settings=QUICK)
async def test_the_state_is_shown_as_it_is_when_somebody_looks(cloud: Cloud) -> None:
    def shown() -> list[str]:
        return [state for state in BREAKER_STATES if cloud.sample("breaker", state=state)]

    assert shown() == ["closed"]
    for key in KEYS:
        with pytest.raises(Unavailable):
            await cloud.make(key, takes_s=100, deadline_s=3)
    assert shown() == ["open"]
    await cloud.world.clock.sleep(SETTINGS.open_s)
    assert shown() == ["half_open"], "although nobody has called"
    await cloud.make("d")
    assert shown() == ["closed"]
