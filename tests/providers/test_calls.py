"""Calls end in time for the caller, and are known to be under way until they have really ended."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.kernel.errors import NotFound, OutcomeUnknown, ServerUnreachable, TimedOut, Unavailable
from remuda.providers.calls import CallRejected
from remuda.providers.circuit_breaker import CallSettings, is_unhealthy
from tests.kit.environment import options
from tests.kit.providers.slow_provider import NEVER_BREAKS, Cloud

ILL = ServerUnreachable("cloud", "cable")
TWO_SLOTS = CallSettings(slots=2, queue=2, breaker=NEVER_BREAKS)


async def test_a_call_returns_what_the_provider_answers_and_raises_what_it_raises(cloud: Cloud) -> None:
    assert await cloud.make("a") == "a is there"
    with pytest.raises(NotFound):
        await cloud.make("a", error=NotFound("Server", "a"))
    assert not cloud.calls.is_unknown("a")


async def test_a_verb_has_to_be_declared(cloud: Cloud) -> None:
    with pytest.raises(ValueError, match="burn"):
        await cloud.calls.call("a", "burn", cloud.work("a", 1, None, is_effect=True))
    assert not cloud.asked


async def test_an_effect_past_its_deadline_is_unknown_until_it_has_really_ended(cloud: Cloud) -> None:
    clock, known = cloud.world.clock, list[tuple[str, float]]()
    cloud.calls.on_known(lambda key: known.append((key, clock.monotonic())))
    with pytest.raises(OutcomeUnknown, match="make of a at cloud"):
        await cloud.make("a", takes_s=100, deadline_s=10)
    assert clock.monotonic() == 10
    assert cloud.calls.is_unknown("a")
    assert cloud.sample("unknown_keys") == 1
    with pytest.raises(Unavailable, match="is still running"):
        await cloud.make("a")
    assert cloud.asked == ["a"], "the second never reached the provider"
    assert clock.monotonic() == 10, "and was refused at once"
    assert await cloud.look("a") == "a is there", "looking is how one finds out"
    assert await cloud.make("b") == "b is there"
    await clock.sleep(100)
    assert known == [("a", 100)]
    assert not cloud.calls.is_unknown("a")
    assert cloud.sample("unknown_keys") == 0
    assert await cloud.make("a") == "a is there"


async def test_an_error_says_what_is_wrong_with_the_provider_and_names_nothing_internal(cloud: Cloud) -> None:
    problems = set[str]()
    for key, named in list[tuple[str, dict[str, Any]]]([("a", {"takes_s": 100}), ("a", {}), ("b", {"error": ILL})]):
        with pytest.raises(Unavailable) as caught:
            await cloud.make(key, deadline_s=10, **named)
        problems.add(caught.value.provider_problem)
    with pytest.raises(TimedOut) as late:
        await cloud.look("c", takes_s=100, deadline_s=10)
    problems.add(late.value.provider_problem)
    assert len(problems) == 2, "so that a controller does not report another cause at each attempt"
    assert all(problem.startswith("the provider ") for problem in problems)
    assert not any("cable" in problem or "cloud" in problem for problem in problems)
    with pytest.raises(NotFound):
        await cloud.make("d", error=NotFound("Server", "d"))


@pytest.mark.parametrize(
    "lost", [TimeoutError("read"), ConnectionResetError("cable")], ids=lambda error: type(error).__name__
)
async def test_a_lost_connection_leaves_the_outcome_of_an_effect_unknown_and_a_read_can_be_repeated(
    cloud: Cloud, lost: OSError
) -> None:
    with pytest.raises(OutcomeUnknown, match="make of a at cloud"):
        await cloud.make("a", error=lost)
    assert not cloud.calls.is_unknown("a"), "nothing waits for it any more, so the next attempt looks at once"
    with pytest.raises(Unavailable, match="cloud did not respond to look of b") as caught:
        await cloud.look("b", error=lost)
    assert caught.value.retry


async def test_an_effect_that_fails_after_its_deadline_is_known_again_too(cloud: Cloud) -> None:
    with pytest.raises(OutcomeUnknown):
        await cloud.make("a", takes_s=100, error=ILL, deadline_s=10)
    await cloud.world.clock.sleep(100)
    assert not cloud.calls.is_unknown("a")


async def test_an_effect_whose_caller_goes_away_is_unknown_until_it_has_ended(cloud: Cloud) -> None:
    known: list[str] = []
    cloud.calls.on_known(known.append)
    caller = asyncio.create_task(cloud.make("a", takes_s=100))
    await cloud.world.clock.sleep(1)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    assert cloud.calls.is_unknown("a")
    with pytest.raises(Unavailable):
        await cloud.make("a")
    await cloud.world.clock.sleep(100)
    assert known == ["a"]
    assert await cloud.make("a") == "a is there"


async def test_a_listener_that_fails_keeps_nobody_from_hearing(cloud: Cloud) -> None:
    def fail(_key: str) -> None:
        raise RuntimeError("bad listener")

    known: list[str] = []
    cloud.calls.on_known(fail)
    cloud.calls.on_known(known.append)
    with pytest.raises(OutcomeUnknown):
        await cloud.make("a", takes_s=100, deadline_s=10)
    with capture_logs() as logs:
        await cloud.world.clock.sleep(100)
    assert known == ["a"]
    assert [(line["event"], line["key"]) for line in logs] == [("listener failed", "a")]


async def test_two_effects_on_one_key_never_run_at_once(cloud: Cloud) -> None:
    one, other = await asyncio.gather(cloud.make("a"), cloud.make("a"), return_exceptions=True)
    assert sorted([isinstance(one, Unavailable), isinstance(other, Unavailable)]) == [False, True]
    assert cloud.asked == ["a"]


async def test_a_read_past_its_deadline_has_timed_out_and_nothing_is_unknown(cloud: Cloud) -> None:
    with pytest.raises(TimedOut):
        await cloud.look("a", takes_s=100, deadline_s=10)
    assert not cloud.calls.is_unknown("a")
    assert await cloud.make("a") == "a is there"


async def test_something_cancelled_within_a_call_leaves_its_outcome_unknown_but_ended(cloud: Cloud) -> None:
    async def cancel_within() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    with pytest.raises(OutcomeUnknown):
        await cloud.calls.call("a", "make", cancel_within)
    assert not cloud.calls.is_unknown("a")


@options(settings=TWO_SLOTS)
async def test_no_more_calls_are_under_way_than_there_are_slots_and_late_ones_keep_theirs(cloud: Cloud) -> None:
    clock = cloud.world.clock
    late = await asyncio.gather(
        cloud.make("a", takes_s=100, deadline_s=10),
        cloud.look("b", takes_s=100, deadline_s=10),
        return_exceptions=True,
    )
    assert [type(error) for error in late] == [OutcomeUnknown, TimedOut]
    assert await cloud.make("c", deadline_s=200) == "c is there"
    assert clock.monotonic() == 101, "it had to wait until a late one had ended"
    assert cloud.most_under_way == 2


@options(settings=TWO_SLOTS)
async def test_who_comes_first_is_served_first_and_who_comes_too_late_is_refused_at_once(cloud: Cloud) -> None:
    callers = []
    for key in "abcd":
        callers.append(asyncio.create_task(cloud.make(key, takes_s=5)))
        await cloud.world.clock.sleep(0.1)
    with pytest.raises(Unavailable, match="Too many calls are waiting"):
        await cloud.make("e")
    assert cloud.sample("waiting") == 2
    await asyncio.wait(callers)
    assert cloud.asked == ["a", "b", "c", "d"]
    assert cloud.sample("waiting") == 0
    assert await cloud.make("e") == "e is there"


@options(settings=TWO_SLOTS)
async def test_a_call_that_waits_past_its_deadline_was_not_sent(cloud: Cloud) -> None:
    callers = [asyncio.create_task(cloud.make(key, takes_s=20)) for key in "ab"]
    await cloud.world.clock.sleep(0.1)
    with pytest.raises(CallRejected, match=r"was not sent: all slots to cloud were busy for 10 s") as caught:
        await cloud.make("c", deadline_s=10)
    assert caught.value.outcome == "not_sent"
    assert "busy" in caught.value.provider_problem
    assert not cloud.calls.is_unknown("c")
    await asyncio.wait(callers)
    assert sorted(cloud.asked) == ["a", "b"]
    assert await cloud.make("c") == "c is there"


@options(settings=TWO_SLOTS)
async def test_a_caller_that_goes_away_while_it_waits_leaves_its_place(cloud: Cloud) -> None:
    callers = [asyncio.create_task(cloud.make(key, takes_s=5)) for key in "ab"]
    await cloud.world.clock.sleep(0.1)
    impatient = asyncio.create_task(cloud.make("c"))
    await cloud.world.clock.sleep(0.1)
    impatient.cancel()
    await asyncio.wait([impatient, *callers])
    assert sorted(cloud.asked) == ["a", "b"]
    assert await cloud.make("c") == "c is there"
    assert cloud.sample("in_flight") == 0


def test_what_says_that_a_provider_is_ill() -> None:
    assert all(is_unhealthy(error) for error in (ILL, OutcomeUnknown("x"), TimeoutError(), ConnectionResetError()))
    assert not any(is_unhealthy(error) for error in (NotFound("Server", "a"), ValueError(), KeyError()))
