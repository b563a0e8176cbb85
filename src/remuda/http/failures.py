"""Failed authentications of each address.

A failure counts against its address (`client_network`). Beyond the limit failures get 429. A valid credential is never
rejected for the failures of others at its address, so the limit applies after the verification. A signature of ours,
and a credential of 256 random bits that is found by its hash, are recognized at once (`Authenticator.is_genuine`,
`Route.is_genuine`). Any other verification costs something and tells a guesser something, so an address over its limit
is slowed down before: its credentials are verified one after the other, some time apart, and those of different
subjects take turns. If too many wait at one address, one is rejected: the newest of the subject with most of them, or
else the youngest subject. Rejections are sent some time apart, too, so that every rejected subject keeps its entry in
the queue of the address (`VerificationQueue`), and gets its turn when it comes back.
"""

import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from remuda.http.ratelimit import OverLimit, RateLimit, RateLimiter
from remuda.http.responses import Header
from remuda.http.verification_queue import Pacing, VerificationQueue
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError, RemudaError, Unauthenticated

_FAILED_GRANTS = {"invalid_grant", "invalid_client"}
_UNAUTHORIZED = 401
_TOTAL_ENTRIES = 100_000
"""Number of entries that the queues of all addresses share."""


def is_failed_authentication(error: RemudaError) -> bool:
    """Return whether an error says that a credential is not valid."""
    if isinstance(error, OAuthError):
        return error.status == _UNAUTHORIZED or error.error in _FAILED_GRANTS
    return isinstance(error, Unauthenticated)


class AuthenticationFailures:
    """Counter of the failed authentications of each address, which slows down those over the limit."""

    def __init__(self, limit: RateLimit, clock: Clock, *, pacing: Pacing | None = None) -> None:
        self._limiter, self._clock = RateLimiter(limit, clock), clock
        self._pacing = pacing or Pacing()
        self._in_progress: Counter[str] = Counter()
        self._queues: dict[str, VerificationQueue] = {}
        """By address, the order in which its credentials are verified while it is over its limit."""

    @property
    def has_any(self) -> bool:
        """Whether any address failed recently, or verifies credentials that may fail."""
        return bool(len(self._limiter) or self._in_progress)

    def is_over(self, address: str) -> bool:
        """Return whether an address has failed too often, if the attempts in progress fail, too."""
        return not self._limiter.has_quota(address, 1 + self._in_progress.get(address, 0))

    def count(self, address: str) -> tuple[Header, ...]:
        """Count a failure and return the response headers; raise OverLimit if there were too many before it."""
        return self._limiter.take(address)

    async def admit(self, address: str, *, subject: str = "") -> None:
        """Return when a credential of an address may be verified; raise OverLimit if it has to try again."""
        if not self.is_over(address):
            return
        queue = self._queue(address)
        share = max(_TOTAL_ENTRIES // len(self._queues), self._pacing.most_waiting)
        if not await queue.wait(subject, most_entries=share):
            raise OverLimit(max(1, math.ceil(self._pacing.retry_after_s)), ())

    def _queue(self, address: str) -> VerificationQueue:
        """Return the queue of an address, as the one that was used last, and forget the queues that are over."""
        queue = self._queues.pop(address, None)
        if queue is None:
            queue = VerificationQueue(self._clock, self._pacing)
        while self._queues and self._queues[first := next(iter(self._queues))].is_over:
            del self._queues[first]
        self._queues[address] = queue
        return queue

    @asynccontextmanager
    async def attempt(self, address: str, *, subject: str) -> AsyncIterator[None]:
        """Verify a credential in the block, which begins as with `admit`. Many at once are like many failures."""
        await self.admit(address, subject=subject)
        self._in_progress[address] += 1
        try:
            yield
        finally:
            self._in_progress[address] -= 1
            if not self._in_progress[address]:
                del self._in_progress[address]
