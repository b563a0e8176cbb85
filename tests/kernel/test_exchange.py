"""One request with its attempts: pauses, the deadline, and what is known of its effect."""

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from remuda.kernel.backoff import Backoff
from remuda.kernel.errors import NotFound, OutcomeUnknown, RemudaError, ServerUnreachable, TimedOut, TooMany
from remuda.kernel.exchange import NotSent, RequestSender, ResponseLost, Retries, RetryableResponse
from tests.kit.environment import options, provided_by
from tests.kit.simulation.runner import World, simulate

NOT_SENT, LOST = NotSent("nobody listens"), ResponseLost("cut off")
BY_A_PROXY = RetryableResponse(ServerUnreachable("cloud", "502"), is_lost=True)
MISSING = NotFound("horse", "h")


def asked_to_wait(seconds: float) -> RetryableResponse:
    error: Any = TooMany.__new__(TooMany)
    RemudaError.__init__(error, "slower")
    error.retry_after_s = seconds
    return RetryableResponse(error)


class Script:
    """A server that fails in these ways, one after the other, and then responds."""

    def __init__(self, world: World, *failures: Exception, takes_s: float = 0.0) -> None:
        self._world, self._failures, self._takes_s = world, list(failures), takes_s
        self.times: list[float] = []

    async def __call__(self) -> str:
        self.times.append(self._world.clock.monotonic())
        await self._world.clock.sleep(self._takes_s)
        if self._failures:
            raise self._failures.pop(0)
        return "done"


def run(
    act: Callable[[World, RequestSender], Awaitable[None]],
    *,
    attempts: int | None = 3,
    total_s: float = 60.0,
    is_attempt_limited: bool = False,
) -> None:
    async def scenario(world: World) -> None:
        retries = Retries(
            attempts=attempts,
            total_s=total_s,
            is_attempt_limited=is_attempt_limited,
            backoff=Backoff(1.0, 4.0),
            clock=world.clock,
            randomness=world.randomness,
        )
        await act(world, RequestSender("cloud", retries))

    simulate(scenario, 3)


world = provided_by(run)
sender = provided_by(run, position=1)


@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("failure", [NOT_SENT, LOST, BY_A_PROXY], ids=lambda each: type(each).__name__)
async def test_a_request_is_sent_again_after_growing_pauses(
    world: World, sender: RequestSender, failure: Exception, *, is_read: bool
) -> None:
    script = Script(world, failure, failure)
    assert await sender.send(script, name="create", is_read=is_read) == "done"
    first, second, third = script.times
    assert 0.5 <= second - first <= 1.0
    assert 1.0 <= third - second <= 2.0


@pytest.mark.parametrize(
    ("failures", "is_read", "error"),
    [
        ([NOT_SENT] * 3, False, ServerUnreachable),
        ([LOST] * 3, True, ServerUnreachable),
        ([LOST] * 3, False, OutcomeUnknown),
        ([LOST, NOT_SENT, NOT_SENT], False, OutcomeUnknown),
        ([BY_A_PROXY] * 3, False, OutcomeUnknown),
        ([asked_to_wait(0)] * 3, False, TooMany),
    ],
    ids=["not sent", "a lost read", "a lost write", "lost, then not sent", "lost by a proxy", "rejected"],
)
async def test_when_the_attempts_are_used_up_the_error_says_what_is_known(
    world: World, sender: RequestSender, failures: list[Exception], error: type[Exception], *, is_read: bool
) -> None:
    script = Script(world, *failures)
    with pytest.raises(error):
        await sender.send(script, name="create", is_read=is_read)
    assert len(script.times) == 3


async def test_a_write_that_cannot_be_repeated_is_sent_again_only_while_it_has_had_no_effect(
    world: World, sender: RequestSender
) -> None:
    script = Script(world, NOT_SENT, LOST)
    with pytest.raises(OutcomeUnknown, match="create at cloud"):
        await sender.send(script, name="create", is_read=False, is_repeatable=False)
    assert len(script.times) == 2


async def test_an_error_that_no_attempt_changes_is_the_result_also_after_a_loss(
    world: World, sender: RequestSender
) -> None:
    script = Script(world, LOST, MISSING)
    with pytest.raises(NotFound) as caught:
        await sender.send(script, name="delete", is_read=False)
    assert caught.value is MISSING


async def test_the_pause_that_a_server_asks_for_is_kept_unless_it_is_too_long(
    world: World, sender: RequestSender
) -> None:
    script = Script(world, asked_to_wait(5))
    await sender.send(script, name="create", is_read=False)
    assert script.times[1] - script.times[0] >= 5
    script = Script(world, asked_to_wait(100))
    with pytest.raises(TooMany):
        await sender.send(script, name="create", is_read=False)
    assert len(script.times) == 1


@pytest.mark.parametrize(("is_read", "error"), [(True, TimedOut), (False, OutcomeUnknown)])
@options(total_s=10.0)
async def test_all_attempts_have_one_deadline(
    world: World, sender: RequestSender, error: type[Exception], *, is_read: bool
) -> None:
    script, began = Script(world, NOT_SENT, takes_s=6.0), world.clock.monotonic()
    with pytest.raises(error):
        await sender.send(script, name="create", is_read=is_read)
    assert len(script.times) == 2
    assert world.clock.monotonic() - began == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("failure", "is_read", "error"),
    [(NOT_SENT, False, ServerUnreachable), (LOST, True, ServerUnreachable), (LOST, False, OutcomeUnknown)],
)
async def test_without_retries_a_request_is_sent_once(
    world: World, failure: Exception, error: type[Exception], *, is_read: bool
) -> None:
    script = Script(world, failure)
    with pytest.raises(error):
        await RequestSender("cloud").send(script, name="create", is_read=is_read)
    assert len(script.times) == 1


@options(attempts=None, is_attempt_limited=True)
async def test_a_transport_that_limits_its_attempts_is_asked_until_the_time_of_the_call_has_passed(
    world: World, sender: RequestSender
) -> None:
    script = Script(world, *[RetryableResponse(MISSING, retry_after_s=2.0)] * 100)
    with pytest.raises(NotFound):
        await sender.send(script, name="list", is_read=True, total_s=30.0)
    assert 4 < len(script.times) < 15
    assert all(later - earlier >= 2.5 for earlier, later in pairwise(script.times))
    slow, began = Script(world, takes_s=40.0), world.clock.monotonic()
    assert await sender.send(slow, name="list", is_read=True, total_s=0.0) == "done"
    assert world.clock.monotonic() - began == pytest.approx(40.0)
