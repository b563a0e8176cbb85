"""Safe calls are repeated, within bounds; a provider that is ill is left alone."""

import asyncio
from collections.abc import Callable

import pytest

from remuda.kernel.errors import NotFound, OutcomeUnknown, ServerUnreachable, Unavailable
from remuda.providers.calls import CallRejected
from remuda.providers.circuit_breaker import CallSettings, CircuitBreakerSettings
from tests.kit.environment import options
from tests.kit.providers.slow_provider import NEVER_BREAKS, Cloud

ILL = ServerUnreachable("cloud", "cable")
QUICK = CallSettings(breaker=CircuitBreakerSettings(failures_in_a_row=3, open_s=10, longest_open_s=40), retries=0)


def failing_first(cloud: Cloud, times: int, error: Exception = ILL) -> Callable[[], "asyncio.Future[str]"]:
    """Return an effect that fails so often before it works."""
    left = [error] * times

    def act() -> asyncio.Future[str]:
        return asyncio.ensure_future(cloud.work("a", 1, left.pop() if left else None, is_effect=False)())

    return act


async def test_a_safe_call_is_repeated_after_a_growing_pause(cloud: Cloud) -> None:
    assert await cloud.calls.call("a", "look", failing_first(cloud, 3), safe=True) == "a is there"
    assert len(cloud.asked) == 4
    paused_s = cloud.world.clock.monotonic() - 4
    assert 0.1 + 0.2 + 0.4 <= paused_s <= 0.2 + 0.4 + 0.8
    assert cloud.sample("retries_total", method="look") == 3


async def test_a_safe_call_is_not_repeated_for_ever(cloud: Cloud) -> None:
    with pytest.raises(ServerUnreachable):
        await cloud.calls.call("a", "look", failing_first(cloud, 4), safe=True)
    assert len(cloud.asked) == 4


async def test_an_effect_is_never_repeated(cloud: Cloud) -> None:
    with pytest.raises(ServerUnreachable):
        await cloud.calls.call("a", "make", failing_first(cloud, 1))
    assert len(cloud.asked) == 1


async def test_a_provider_that_says_no_is_not_asked_again(cloud: Cloud) -> None:
    with pytest.raises(NotFound):
        await cloud.calls.call("a", "look", failing_first(cloud, 1, NotFound("Server", "a")), safe=True)
    assert len(cloud.asked) == 1


@options(settings=CallSettings(slots=1, queue=0, breaker=NEVER_BREAKS))
async def test_a_call_that_was_refused_is_not_recreated(cloud: Cloud) -> None:
    under_way = asyncio.create_task(cloud.make("a", takes_s=1))
    await cloud.world.clock.sleep(0.01)
    with pytest.raises(CallRejected, match="Too many calls are waiting"):
        await cloud.look("b")
    assert cloud.world.clock.monotonic() == pytest.approx(0.01), "it is told at once"
    assert cloud.sample("retries_total", method="look") == 0
    await under_way


async def test_no_retry_begins_past_the_deadline(cloud: Cloud) -> None:
    with pytest.raises(ServerUnreachable):
        await cloud.calls.call("a", "look", failing_first(cloud, 9), safe=True, deadline_s=1.01)
    assert len(cloud.asked) == 1


@options(settings=CallSettings(breaker=NEVER_BREAKS, retries=1))
async def test_retries_stay_within_the_budget(cloud: Cloud) -> None:
    for _ in range(200):
        with pytest.raises(ServerUnreachable):
            await cloud.look("a", takes_s=0, error=ILL)
    retries = cloud.sample("retries_total", method="look")
    seconds = cloud.world.clock.monotonic()
    assert 20 <= retries <= 0.1 * 200 + 0.1 * seconds + 10
    assert len(cloud.asked) == 200 + retries


async def make_ill(cloud: Cloud) -> None:
    for _ in range(3):
        with pytest.raises(ServerUnreachable):
            await cloud.make("a", error=ILL, takes_s=0)


@options(settings=QUICK)
async def test_an_ill_provider_is_left_alone_and_probed_after_a_while(cloud: Cloud) -> None:
    await make_ill(cloud)
    assert cloud.sample("breaker", state="open") == 1
    for ask in (cloud.make, cloud.look):
        with pytest.raises(Unavailable, match="calls to it are paused"):
            await ask("b")
    assert len(cloud.asked) == 3, "effects and reads alike are refused without asking"
    await cloud.world.clock.sleep(11)
    probe = asyncio.create_task(cloud.look("b"))
    await cloud.world.clock.sleep(0.5)
    with pytest.raises(Unavailable, match="calls to it are paused"):
        await cloud.look("c")
    assert await probe == "b is there"
    assert await cloud.make("c") == "c is there"
    assert cloud.sample("breaker", state="closed") == 1
    assert cloud.sample("calls_total", method="look", outcome="broken") == 2


@options(settings=QUICK)
async def test_a_probe_that_fails_or_is_late_opens_the_breaker_again(cloud: Cloud) -> None:
    await make_ill(cloud)
    await cloud.world.clock.sleep(11)
    with pytest.raises(ServerUnreachable):
        await cloud.make("b", error=ILL)
    with pytest.raises(Unavailable, match="calls to it are paused"):
        await cloud.make("c")
    await cloud.world.clock.sleep(21)
    with pytest.raises(OutcomeUnknown):
        await cloud.make("d", takes_s=100, deadline_s=5)
    with pytest.raises(Unavailable, match="calls to it are paused"):
        await cloud.make("e")


@options(settings=QUICK)
async def test_a_probe_whose_caller_goes_away_gives_way_to_another(cloud: Cloud) -> None:
    await make_ill(cloud)
    await cloud.world.clock.sleep(11)
    probe = asyncio.create_task(cloud.make("b", takes_s=100))
    await cloud.world.clock.sleep(1)
    probe.cancel()
    await asyncio.wait([probe])
    assert await cloud.make("c") == "c is there"


@options(settings=QUICK)
async def test_a_provider_that_says_no_is_well(cloud: Cloud) -> None:
    for _ in range(20):
        with pytest.raises(NotFound):
            await cloud.make("a", error=NotFound("Server", "a"))
    assert await cloud.make("a") == "a is there"


@options(settings=CallSettings(slots=1, breaker=QUICK.breaker))
async def test_those_who_waited_when_the_breaker_opened_are_refused(cloud: Cloud) -> None:
    callers = [asyncio.create_task(cloud.make(key, error=ILL)) for key in "abcdef"]
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert len(cloud.asked) == 3
    assert sum("calls to it are paused" in str(result) for result in results) == 3


@options(seeds=1)
async def test_the_times_of_calls_that_took_as_long_as_they_may_can_be_told_apart(cloud: Cloud) -> None:
    for takes_s in (15, 29, 100):
        await cloud.make("a", takes_s=takes_s, deadline_s=200)
    within = [cloud.sample("call_seconds_bucket", method="make", le=le) for le in ("10.0", "20.0", "30.0", "120.0")]
    assert within == [0, 1, 2, 3]


@options(seeds=1)
async def test_what_alerts_watch_is_there_from_the_start_and_methods_from_their_first_call(cloud: Cloud) -> None:
    outcomes = ("failed", "unhealthy", "unknown", "busy", "full", "broken", "stopping", "not_sent")
    assert [cloud.sample("failures_total", outcome=outcome) for outcome in outcomes] == [0] * len(outcomes)
    assert methods(cloud) == set()
    with pytest.raises(NotFound):
        await cloud.look("a", error=NotFound("server", "a"))
    assert methods(cloud) == {"look"}
    assert cloud.sample("failures_total", outcome="failed") == 1
    assert [cloud.sample("breaker", state=state) for state in ("closed", "open", "half_open")] == [1, 0, 0]


def methods(cloud: Cloud) -> set[str]:
    samples = [sample.labels for family in cloud.registry.collect() for sample in family.samples]
    return {labels["method"] for labels in samples if "method" in labels}
