"""Limits of attempts at passwords, at codes, and at logins that a provider has to confirm."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from remuda.http.failures import AuthenticationFailures
from remuda.http.ratelimit import RateLimit, RateLimiter, anonymous
from remuda.http.verification_queue import Pacing
from remuda.kernel.clock import Clock

_WINDOW_S = 60
_PACING = Pacing(interval_s=1.0, most_waiting=20)


class Attempts:
    """Limits of attempts.

    Each address has a limit of failures for all accounts, beyond which its attempts are verified one after the other,
    those at different accounts in turn; `FailedLogins` delays attempts at one account. A known browser has a limit of
    its own instead of both.
    """

    def __init__(self, *, clock: Clock, per_minute: int) -> None:
        limit = RateLimit(quota=per_minute, window_s=_WINDOW_S, name="attempts")
        self._failures, self._browsers = AuthenticationFailures(limit, clock, pacing=_PACING), RateLimiter(limit, clock)

    @asynccontextmanager
    async def password(self, account: str, *, peer: str, browser: str) -> AsyncIterator[None]:
        """Verify a password in the block, or raise OverLimit. `browser` is the id of a known browser, or empty."""
        if browser:
            self._browsers.take(f"{browser} {account}")
            yield
            return
        async with self._failures.attempt(_password(peer), subject=account):
            yield

    def fail_password(self, *, peer: str, browser: str) -> None:
        """Count a wrong password, or raise OverLimit."""
        if not browser:
            self._failures.count(_password(peer))

    @asynccontextmanager
    async def provider(self, peer: str, *, subject: str) -> AsyncIterator[None]:
        """Complete a login at a provider in the block, or raise OverLimit."""
        async with self._failures.attempt(_provider(peer), subject=subject):
            yield

    def fail_provider(self, peer: str) -> None:
        """Count a login that a provider did not confirm, or raise OverLimit."""
        self._failures.count(_provider(peer))

    @asynccontextmanager
    async def code(self, peer: str, *, subject: str = "") -> AsyncIterator[None]:
        """Verify a user code, or the second factor of a user, in the block, or raise OverLimit."""
        async with self._failures.attempt(_code(peer), subject=subject):
            yield

    def fail_code(self, peer: str) -> None:
        """Count a wrong code, or raise OverLimit."""
        self._failures.count(_code(peer))


def _password(peer: str) -> str:
    return f"password {anonymous((peer, 0))}"


def _provider(peer: str) -> str:
    return f"provider {anonymous((peer, 0))}"


def _code(peer: str) -> str:
    return f"code {anonymous((peer, 0))}"
