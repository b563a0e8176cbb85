"""Call policy of a provider: deadlines, bounded concurrency, retries, and unknown outcomes.

**Unknown is not absent.** A write that has not returned by its deadline raises OutcomeUnknown and keeps running; its
key is unknown until it has really ended. Until then another write on that key is rejected at once with Unavailable and
never reaches the provider. Reads are allowed, because they are the way to find out. The same applies if the caller is
cancelled. `on_known` notifies a controller so that it reconciles again. Nothing here ends a call by force, so a write
needs a transport that times out eventually.

**Limits.** At most `slots` calls are in flight; a call past its deadline keeps its slot. At most `queue` more wait in
FIFO order; further calls are rejected at once. A call that is still queued at its deadline is rejected, too: it was
not sent.

**Retries** are made for safe calls only, with exponential backoff and jitter, within the deadline and the retry budget.

**Circuit breaker.** It rejects all calls for a while when the provider is unhealthy. An error that the provider returns
deliberately does not count as unhealthy, nor does a call whose deadline was too short to tell.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from prometheus_client import CollectorRegistry

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OutcomeUnknown, TimedOut, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.providers.circuit_breaker import CallSettings, CircuitBreaker, RetryBudget, is_unhealthy
from remuda.providers.metrics import CallMetrics, CallOutcome


class InFlightKeys:
    """Keys of one provider with a write in flight.

    A key is busy from the request for a write until the write has really ended. It is unknown if its caller stopped
    waiting meanwhile.
    """

    def __init__(self, provider: str, *, show_unknown: Callable[[float], None]) -> None:
        self._provider, self._show_unknown = provider, show_unknown
        self._busy: set[str] = set()
        self._unknown: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []

    def is_busy(self, key: str) -> bool:
        """Return whether a write on this key has not ended."""
        return key in self._busy

    def is_unknown(self, key: str) -> bool:
        """Return whether a write on this key has not ended and its caller no longer waits."""
        return key in self._unknown

    def on_known(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with each key whose outcome becomes known."""
        self._listeners.append(listener)

    def begin(self, key: str) -> None:
        self._busy.add(key)

    def abandon(self, key: str) -> None:
        """Mark a key unknown: the caller stopped waiting for a write that keeps running."""
        self._unknown.add(key)
        self._show_unknown(len(self._unknown))

    def end(self, key: str) -> None:
        """Release a key: its write has really ended, or was never sent."""
        self._busy.discard(key)
        if key in self._unknown:
            self._unknown.discard(key)
            self._show_unknown(len(self._unknown))
            for listener in self._listeners:
                self._notify(listener, key)

    def _notify(self, listener: Callable[[str], None], key: str) -> None:
        try:
            listener(key)
        except Exception:  # noqa: BLE001  the other listeners are still called
            structlog.get_logger().exception("listener failed", provider=self._provider, key=key)


class CallRejected(Unavailable):
    """Raised for a call that was not sent and could not have helped; retry after the time that the message names."""

    def __init__(self, message: str, outcome: CallOutcome) -> None:
        super().__init__(message)
        self.outcome = outcome


class CallSlots:
    """Bounded concurrency with a bounded FIFO queue."""

    def __init__(self, provider: str, *, slots: int, queue: int, show_waiting: Callable[[float], None]) -> None:
        self._provider, self._queue = provider, queue
        self._free = asyncio.Semaphore(slots)
        self._waiting = 0
        self._show_waiting = show_waiting

    async def acquire(self, within_s: float) -> None:
        """Acquire a slot, or raise CallRejected if the queue is full or no slot becomes free in time."""
        if not self._free.locked():
            await self._free.acquire()
            return
        if self._waiting >= self._queue:
            raise CallRejected(f"Too many calls are waiting for {self._provider}. Try again later.", "full")
        self._add_waiting(+1)
        try:
            async with asyncio.timeout(within_s):
                await self._free.acquire()
        except TimeoutError:
            message = f"The call was not sent: all slots to {self._provider} were busy for {within_s:g} s. Retry later."
            raise CallRejected(message, "not_sent") from None
        finally:
            self._add_waiting(-1)

    def release(self) -> None:
        self._free.release()

    def _add_waiting(self, change: int) -> None:
        self._waiting += change
        self._show_waiting(self._waiting)


ResultT = TypeVar("ResultT")
Request = Callable[[], Awaitable[ResultT]]

_CANCEL_TIMEOUT_S = 5.0


@dataclass(slots=True)
class _Sent:
    """A call in flight."""

    key: str
    method: str
    is_safe: bool
    epoch: int
    began: float
    is_abandoned: bool = False


class Calls:
    """Entry point of all calls to one provider."""

    def __init__(
        self,
        provider: str,
        methods: Iterable[str],
        *,
        clock: Clock,
        randomness: Randomness,
        settings: CallSettings | None = None,
        metrics: CallMetrics | None = None,
        is_unhealthy: Callable[[BaseException], bool] = is_unhealthy,
    ) -> None:
        self.provider, self.methods = provider, frozenset(methods)
        self._clock, self._randomness = clock, randomness
        self._settings = settings = settings or CallSettings()
        self._metrics = (metrics or CallMetrics(CollectorRegistry())).of(provider)
        self._is_unhealthy = is_unhealthy
        self._slots = CallSlots(
            provider, slots=settings.slots, queue=settings.queue, show_waiting=self._metrics.waiting.set
        )
        self._budget = RetryBudget(clock, share=settings.retry_share)
        self._backoff = Backoff(settings.pause_s, settings.deadline_s)
        self._breaker = CircuitBreaker(clock, randomness, settings.breaker)
        self._metrics.export_breaker(lambda: self._breaker.state)
        self._keys = InFlightKeys(provider, show_unknown=self._metrics.unknown.set)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closing = False

    async def call(
        self,
        key: str,
        method: str,
        request: Request[ResultT],
        *,
        deadline_s: float | None = None,
        safe: bool = False,
        once: bool = False,
    ) -> ResultT:
        """Return the provider's result, or raise its error.

        `key` identifies the object of the call, `method` is a declared method. A `safe` call changes nothing at the
        provider and is retried where that may help, unless it can be made only `once`.
        """
        if method not in self.methods:
            raise ValueError(f"{method} is not a declared method of {self.provider}")
        limit_s = self._settings.deadline_s if deadline_s is None else deadline_s
        until = self._clock.monotonic() + limit_s
        self._budget.add_call()
        retries = 0
        while True:
            try:
                return await self._send(key, method, request, until=until, limit_s=limit_s, is_safe=safe)
            except Exception as error:
                pause_s = self._backoff.pause_s(retries + 1, self._randomness)
                if not safe or once or not self._admit_retry(error, retries, until - pause_s):
                    if isinstance(error, Unavailable):
                        error.provider_problem = _problem(error)
                    raise
            await self._clock.sleep(pause_s)
            self._metrics.count_retry(method)
            retries += 1

    def is_unknown(self, key: str) -> bool:
        """Return whether the outcome of the last write on this key is unknown, because it has not ended."""
        return self._keys.is_unknown(key)

    def on_known(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with each key whose outcome becomes known."""
        self._keys.on_known(listener)

    async def close(self, grace_s: float = 10.0) -> None:
        """Reject new calls, wait for those in flight, and cancel the rest after the grace period."""
        self._is_closing = True
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=grace_s)
            for task in left:
                task.cancel()
            if left:
                structlog.get_logger().warning("provider calls cancelled", provider=self.provider, calls=len(left))
                await asyncio.wait(left, timeout=_CANCEL_TIMEOUT_S)

    async def _send(
        self, key: str, method: str, request: Request[ResultT], *, until: float, limit_s: float, is_safe: bool
    ) -> ResultT:
        try:
            epoch = await self._admit(key, until=until, is_safe=is_safe)
        except CallRejected as error:
            self._metrics.count(method, error.outcome)
            raise
        sent = _Sent(key, method, is_safe, epoch, self._clock.monotonic())
        task = asyncio.create_task(self._perform(sent, request), name=f"{self.provider} {method} {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.wait((task,), timeout=max(0.0, until - self._clock.monotonic()))
        except asyncio.CancelledError:
            self._abandon(sent, task)
            self._breaker.record_abandoned(epoch)
            raise
        if task.done():
            return task.result()
        self._abandon(sent, task)
        is_silent = self._clock.monotonic() - sent.began >= self._settings.unresponsive_after_s
        (self._breaker.record_failure if is_silent else self._breaker.record_abandoned)(epoch)
        raise TimedOut(limit_s) if is_safe else OutcomeUnknown(f"{method} of {key} at {self.provider}")

    async def _admit(self, key: str, *, until: float, is_safe: bool) -> int:
        """Mark the key busy and wait for a slot; return the breaker's epoch."""
        self._check(key, is_safe=is_safe)
        if not is_safe:
            self._keys.begin(key)
        try:
            await self._slots.acquire(max(0.0, until - self._clock.monotonic()))
            return self._enter()
        except BaseException:
            if not is_safe:
                self._keys.end(key)
            raise

    def _enter(self) -> int:
        """Check again with the slot acquired: the state may have changed while the call was queued."""
        epoch = None if self._is_closing else self._breaker.admit()
        if epoch is None:
            self._slots.release()
            raise self._stopping() if self._is_closing else self._broken()
        self._metrics.in_flight.inc()
        return epoch

    def _check(self, key: str, *, is_safe: bool) -> None:
        if self._is_closing:
            raise self._stopping()
        if not is_safe and self._keys.is_busy(key):
            raise CallRejected(
                f"An earlier call for {key} at {self.provider} is still running. Wait until it ends.", "busy"
            )
        if self._breaker.is_rejecting:
            raise self._broken()

    async def _perform(self, sent: _Sent, request: Request[ResultT]) -> ResultT:
        outcome: CallOutcome = "done"
        try:
            return await request()
        except asyncio.CancelledError:
            outcome = "unhealthy"
            raise OutcomeUnknown(f"{sent.method} of {sent.key} at {self.provider}") from None
        except (TimeoutError, ConnectionError):
            outcome = "unhealthy"
            if sent.is_safe:
                raise Unavailable(f"{self.provider} did not respond to {sent.method} of {sent.key}.") from None
            raise OutcomeUnknown(f"{sent.method} of {sent.key} at {self.provider}") from None
        except Exception as error:
            outcome = "unhealthy" if self._is_unhealthy(error) else "failed"
            raise
        finally:
            self._end(sent, outcome)

    def _end(self, sent: _Sent, outcome: CallOutcome) -> None:
        self._slots.release()
        self._metrics.in_flight.dec()
        self._metrics.observe_duration(sent.method, self._clock.monotonic() - sent.began)
        if not sent.is_abandoned:
            self._metrics.count(sent.method, outcome)
            (self._breaker.record_failure if outcome == "unhealthy" else self._breaker.record_success)(sent.epoch)
        if not sent.is_safe:
            self._keys.end(sent.key)

    def _abandon(self, sent: _Sent, task: asyncio.Task[Any]) -> None:
        """Stop waiting for a call that keeps running."""
        if task.done():
            return
        sent.is_abandoned = True
        self._metrics.count(sent.method, "unknown")
        task.add_done_callback(_retrieve_exception)
        if not sent.is_safe:
            self._keys.abandon(sent.key)

    def _admit_retry(self, error: Exception, retries: int, until: float) -> bool:
        if isinstance(error, CallRejected) or not self._is_unhealthy(error):
            return False
        return retries < self._settings.retries and self._clock.monotonic() < until and self._budget.take()

    def _broken(self) -> CallRejected:
        wait = f"{self._breaker.retry_after_s:.0f} s"
        return CallRejected(f"{self.provider} is failing, so calls to it are paused. Try again in {wait}.", "broken")

    def _stopping(self) -> CallRejected:
        return CallRejected(f"This process is shutting down its calls to {self.provider}. Try again.", "stopping")


def _problem(error: Unavailable) -> str:
    """Return what is wrong with the provider, for all users. There are few texts, since each change is reported."""
    outcome = error.outcome if isinstance(error, CallRejected) else ""
    if isinstance(error, OutcomeUnknown) or outcome == "busy":
        return (
            "the provider did not respond in time: the request may still take effect, and will be checked and retried"
        )
    if outcome in {"full", "not_sent"}:
        return "the provider is busy, and the request will be retried"
    return "the provider is failing or cannot be reached, and the request will be retried"


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve an exception that no caller waits for, so that asyncio does not log it; the metrics have counted it."""
    if not task.cancelled():
        task.exception()
