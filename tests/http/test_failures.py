"""Failed authentications of an address: counted, slowed down, and no reason to reject a valid credential."""

import asyncio
from typing import Any

import pytest

from remuda.http.failures import AuthenticationFailures, is_failed_authentication
from remuda.http.ratelimit import OverLimit, RateLimit
from remuda.http.verification_queue import Pacing
from remuda.kernel.errors import Forbidden, OAuthError, RemudaError, Unauthenticated
from tests.kit.simulation.runner import World, simulate

LIMIT = RateLimit(quota=3, window_s=60, name="failures")
PACING = Pacing(interval_s=1.0, most_waiting=4)


def over(world: World) -> AuthenticationFailures:
    """Return failures of which the address `here` has as many as it may have."""
    failures = AuthenticationFailures(LIMIT, world.clock, pacing=PACING)
    for _ in range(3):
        failures.count("here")
    with pytest.raises(OverLimit):
        failures.count("here")
    return failures


def simulated(scenario: Any) -> None:
    async def run(world: World) -> None:
        await scenario(world)

    simulate(run, [0])


def test_m27_a_credential_of_an_address_over_its_limit_is_slowed_down_and_not_rejected() -> None:
    async def scenario(world: World) -> None:
        failures, began = over(world), world.clock.monotonic()
        await failures.admit("elsewhere")
        assert world.clock.monotonic() == began
        await asyncio.gather(*(failures.admit("here") for _ in range(3)))
        assert world.clock.monotonic() == pytest.approx(began + 3)

    simulated(scenario)


def test_credentials_of_one_address_take_turns_by_subject() -> None:
    async def scenario(world: World) -> None:
        failures, order = over(world), list[str]()

        async def attempt(subject: str) -> None:
            await failures.admit("here", subject=subject)
            order.append(subject)

        attempts = []
        for subject in ("ann", "ann", "ann", "ben"):
            attempts.append(asyncio.create_task(attempt(subject)))
            await world.clock.sleep(0.01)
        await asyncio.gather(*attempts)
        assert order == ["ann", "ann", "ben", "ann"]

    simulated(scenario)


def test_only_if_too_many_wait_at_an_address_a_credential_is_rejected_at_once() -> None:
    async def scenario(world: World) -> None:
        failures = over(world)
        done = await asyncio.gather(*(failures.admit("here") for _ in range(8)), return_exceptions=True)
        rejected = [each for each in done if isinstance(each, OverLimit)]
        assert len(rejected) == 3, "one is admitted, and four wait"
        assert all(each.retry_after_s >= 1 for each in rejected)
        await failures.admit("here")

    simulated(scenario)


def test_m27_the_many_attempts_of_others_at_an_address_reject_no_credential() -> None:
    async def scenario(world: World) -> None:
        failures = over(world)
        attempts = {f"guess {number}": "thief" for number in range(8)} | {"ann": "ann"}
        waiting = []
        for subject in attempts.values():
            waiting.append(asyncio.create_task(failures.admit("here", subject=subject)))
            await world.clock.sleep(0.01)
        done = dict(zip(attempts, await asyncio.gather(*waiting, return_exceptions=True), strict=True))
        assert done["ann"] is None, "she takes the place of the thief's newest attempt that waits"
        rejected = [name for name, result in done.items() if isinstance(result, OverLimit)]
        assert rejected == ["guess 4", "guess 5", "guess 6", "guess 7"]

    simulated(scenario)


def test_while_every_subject_has_as_many_that_wait_a_further_one_is_rejected() -> None:
    async def scenario(world: World) -> None:
        failures = over(world)
        waiting = (failures.admit("here", subject=subject) for subject in "abcdef")
        done = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in done if each] == [OverLimit]

    simulated(scenario)


def test_many_attempts_at_once_are_like_many_failures() -> None:
    async def scenario(world: World) -> None:
        failures = AuthenticationFailures(LIMIT, world.clock, pacing=PACING)
        began = list[float]()

        async def attempt() -> None:
            async with failures.attempt("here", subject="ann"):
                began.append(world.clock.monotonic())
                await world.clock.sleep(10)

        await asyncio.gather(*(attempt() for _ in range(5)))
        assert began == pytest.approx([began[0]] * 3 + [began[0] + 1, began[0] + 2])

    simulated(scenario)


def test_an_address_is_not_over_its_limit_when_its_quota_is_back() -> None:
    async def scenario(world: World) -> None:
        failures = over(world)
        assert failures.is_over("here")
        await world.clock.sleep(21)
        assert not failures.is_over("here")

    simulated(scenario)


@pytest.mark.parametrize(
    ("error", "is_failure"),
    [
        (Unauthenticated("token is invalid"), True),
        (OAuthError("access_denied", "the client is unknown", 401), True),
        (OAuthError("invalid_grant", "refresh_token is unknown"), True),
        (OAuthError("invalid_client", "code_verifier does not match"), True),
        (OAuthError("authorization_pending", "not yet"), False),
        (OAuthError("invalid_request", "client_id is missing"), False),
        (Forbidden("no"), False),
    ],
)
def test_an_error_that_says_that_a_credential_is_wrong_is_a_failed_authentication(
    error: RemudaError, *, is_failure: bool
) -> None:
    assert is_failed_authentication(error) == is_failure
