"""Exchange of a request and its response: the attempts, and what is known of the effect when all have failed.

An attempt raises `NotSent` or `ResponseLost` when no response came, and `RetryableResponse` for a response after which
another attempt may succeed. Every other error is the result. A request is sent again after the pause that the server
asks for, or a longer pause each time with jitter, until the attempts or the time are used up. A write whose response
was lost, and to which no later attempt got one, is OutcomeUnknown.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OutcomeUnknown, RemudaError, ServerUnreachable, TimedOut
from remuda.kernel.randomness import Randomness

ResponseT = TypeVar("ResponseT")


class AttemptFailed(Exception):  # noqa: N818  its subclasses are named after what happened
    """Raised when another attempt may succeed."""

    is_lost = False
    """The server may have carried out the request."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    retry_after_s = 0.0
    """The pause that the server asked for."""

    def error(self, server: str) -> RemudaError:
        """Return the error for the caller when no other attempt follows."""
        return ServerUnreachable(server, self.reason)


class NotSent(AttemptFailed):
    """Raised when the request did not leave: it has had no effect."""


class ResponseLost(AttemptFailed):
    """Raised when the request may have left and no whole response came."""

    is_lost = True


class RetryableResponse(AttemptFailed):
    """Raised for a response that asks for another attempt, or that only says that the real response was lost."""

    def __init__(self, error: RemudaError, *, is_lost: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(str(error))
        self._error, self.is_lost = error, is_lost
        self.retry_after_s = getattr(error, "retry_after_s", 0.0) if retry_after_s is None else retry_after_s

    def error(self, server: str) -> RemudaError:  # noqa: ARG002  the response has said it
        """Return the error that the server responded with."""
        return self._error


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The attempts of one request: their number, their time and the pauses between them."""

    attempts: int | None = None
    """None for as many as the time allows."""
    total_s: float
    """For a request with all its attempts."""
    is_attempt_limited: bool = False
    """Whether the transport limits the time of an attempt itself. Then `total_s` only decides on further attempts."""
    backoff: Backoff
    clock: Clock
    randomness: Randomness

    def pause_s(self, failures: int, retry_after_s: float = 0.0) -> float:
        """Return the pause after so many failures, at least as long as the server asked for."""
        return retry_after_s + self.backoff.pause_s(failures, self.randomness)


class RequestSender:
    """Sends requests to one server: each once, or as `retries` says."""

    def __init__(self, server: str, retries: Retries | None = None) -> None:
        self._server, self._retries = server, retries

    async def send(
        self,
        attempt: Callable[[], Awaitable[ResponseT]],
        *,
        name: str,
        is_read: bool,
        is_repeatable: bool = True,
        total_s: float | None = None,
    ) -> ResponseT:
        """Return the first response, or raise the last error. `total_s` replaces the time of the retry policy."""
        retries = self._retries
        if retries is None:
            return await self._send_once(attempt, name=name, is_read=is_read)
        clock, is_lost = retries.clock, False
        total_s = retries.total_s if total_s is None else total_s
        deadline = clock.monotonic() + total_s
        for failures in count(1):
            try:
                if retries.is_attempt_limited:
                    return await attempt()
                return await _within(deadline - clock.monotonic(), attempt, total_s)
            except AttemptFailed as failure:
                error, is_lost = failure.error(self._server), is_lost or failure.is_lost
                pause_s = retries.pause_s(failures, failure.retry_after_s)
            is_last = failures == retries.attempts or clock.monotonic() + pause_s >= deadline
            if is_lost and (is_last or not is_repeatable) and not is_read:
                raise self._unknown(name)
            if is_last:
                raise error
            await clock.sleep(pause_s)
        raise AssertionError("attempts are used up before they are counted up")

    async def _send_once(self, attempt: Callable[[], Awaitable[ResponseT]], *, name: str, is_read: bool) -> ResponseT:
        try:
            return await attempt()
        except AttemptFailed as failure:
            raise (self._unknown(name) if failure.is_lost and not is_read else failure.error(self._server)) from None

    def _unknown(self, name: str) -> OutcomeUnknown:
        return OutcomeUnknown(f"{name} at {self._server}")


async def _within(left_s: float, attempt: Callable[[], Awaitable[ResponseT]], total_s: float) -> ResponseT:
    try:
        async with asyncio.timeout(left_s):
            return await attempt()
    except TimeoutError:
        raise RetryableResponse(TimedOut(total_s), is_lost=True) from None
