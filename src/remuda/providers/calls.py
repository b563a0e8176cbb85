"""Calls to a provider: each with a deadline, none twice at once, and no more than the provider bears.

**Unknown is not absent.** An effect that is not back by its deadline raises OutcomeUnknown and goes on; its key is
unknown until it has really ended. Meanwhile another effect on that key is refused at once with Unavailable and never
reaches the provider; reads pass, for that is how one finds out. The same holds if the caller goes away. `when_known`
tells a controller to look again. Since nothing here ends a call by force, an effect needs a transport that gives up
some day.

**Bounds.** At most `slots` calls are under way; a call past its deadline keeps its slot. At most `queue` more wait,
first come first served; the rest is refused at once. A call that waits past its deadline was not sent: TimedOut.

**Retries** are for safe calls alone, with a growing random pause, within the deadline and the retry budget.

**The breaker** refuses everything for a while when the provider is ill. A provider that says no is well, and one that
was given no time to answer may be.

Keys: what has an effect under way, and of what nobody knows what became.

A key is busy from the moment its effect is asked for until that has really ended. It is unknown if meanwhile nobody
waits for the effect any more.

Slots: so many calls at once, so many more that wait, first come first served.
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
from remuda.providers.circuit_breaker import Breaker, CallSettings, RetryBudget, is_ill
from remuda.providers.metrics import CallMetrics, Outcome


class Keys:
    """The keys of one provider."""

    def __init__(self, provider: str, *, show_unknown: Callable[[float], None]) -> None:
        self._provider, self._show_unknown = provider, show_unknown
        self._busy: set[str] = set()
        self._unknown: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []

    def is_busy(self, key: str) -> bool:
        """Tell whether an effect on this key has not ended."""
        return key in self._busy

    def is_unknown(self, key: str) -> bool:
        """Tell whether nobody waits for the effect on this key, which has not ended."""
        return key in self._unknown

    def when_known(self, listener: Callable[[str], None]) -> None:
        """Have `listener` told of each key that was unknown and no longer is."""
        self._listeners.append(listener)

    def take(self, key: str) -> None:
        """An effect is asked for."""
        self._busy.add(key)

    def leave(self, key: str) -> None:
        """Nobody waits for the effect any more, and it goes on."""
        self._unknown.add(key)
        self._show_unknown(len(self._unknown))

    def free(self, key: str) -> None:
        """The effect has really ended, or was never sent."""
        self._busy.discard(key)
        if key in self._unknown:
            self._unknown.discard(key)
            self._show_unknown(len(self._unknown))
            for listener in self._listeners:
                self._tell(listener, key)

    def _tell(self, listener: Callable[[str], None], key: str) -> None:
        try:
            listener(key)
        except Exception:  # noqa: BLE001  the others want to hear it too
            structlog.get_logger().exception("listener failed", provider=self._provider, key=key)


class Refused(Unavailable):
    """Raised for a call that was not sent and could not have helped; wait as long as the sentence says."""

    def __init__(self, sentence: str, outcome: Outcome) -> None:
        super().__init__(sentence)
        self.outcome = outcome


class Slots:
    """Bounded concurrency with a bounded queue."""

    def __init__(self, provider: str, *, slots: int, queue: int, show_waiting: Callable[[float], None]) -> None:
        self._provider, self._queue = provider, queue
        self._free = asyncio.Semaphore(slots)
        self._waiting = 0
        self._show_waiting = show_waiting

    async def take(self, within_s: float) -> None:
        """Take a slot, or raise Refused if too many wait already, or TimedOut if none gets free in time."""
        if not self._free.locked():
            await self._free.acquire()
            return
        if self._waiting >= self._queue:
            raise Refused(f"Too many calls wait for {self._provider}: try again later.", "full")
        self._wait(+1)
        try:
            async with asyncio.timeout(within_s):
                await self._free.acquire()
        except TimeoutError:
            raise TimedOut(within_s) from None
        finally:
            self._wait(-1)

    def give(self) -> None:
        self._free.release()

    def _wait(self, change: int) -> None:
        self._waiting += change
        self._show_waiting(self._waiting)


ResultT = TypeVar("ResultT")
Effect = Callable[[], Awaitable[ResultT]]

_CUT_OFF_S = 5.0


@dataclass(slots=True)
class _Sent:
    """A call that is under way."""

    key: str
    verb: str
    is_safe: bool
    epoch: int
    began: float
    is_left: bool = False


class Calls:
    """All calls to one provider go through one of these."""

    def __init__(
        self,
        provider: str,
        verbs: Iterable[str],
        *,
        clock: Clock,
        randomness: Randomness,
        settings: CallSettings | None = None,
        metrics: CallMetrics | None = None,
        is_ill: Callable[[BaseException], bool] = is_ill,
    ) -> None:
        self.provider, self.verbs = provider, frozenset(verbs)
        self._clock, self._randomness = clock, randomness
        self._settings = settings = settings or CallSettings()
        self._metrics = (metrics or CallMetrics(CollectorRegistry())).of(provider, sorted(self.verbs))
        self._is_ill = is_ill
        self._slots = Slots(
            provider, slots=settings.slots, queue=settings.queue, show_waiting=self._metrics.waiting.set
        )
        self._budget = RetryBudget(clock, share=settings.retry_share)
        self._backoff = Backoff(settings.pause_s, settings.deadline_s)
        self._breaker = Breaker(clock, randomness, settings.breaker)
        self._metrics.show(lambda: self._breaker.state)
        self._keys = Keys(provider, show_unknown=self._metrics.unknown.set)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closing = False

    async def call(
        self,
        key: str,
        verb: str,
        effect: Effect[ResultT],
        *,
        deadline_s: float | None = None,
        safe: bool = False,
        once: bool = False,
    ) -> ResultT:
        """Return what the provider answers, or raise what it raises.

        `key` is what the call is about, `verb` one of those declared. A `safe` call changes nothing at the provider,
        and is made again where that may help, unless it can be made only `once`.
        """
        if verb not in self.verbs:
            raise ValueError(f"{verb} is not a declared verb of {self.provider}")
        limit_s = self._settings.deadline_s if deadline_s is None else deadline_s
        until = self._clock.monotonic() + limit_s
        self._budget.pay_in()
        retries = 0
        while True:
            try:
                return await self._send(key, verb, effect, until=until, limit_s=limit_s, is_safe=safe)
            except Exception as error:
                pause_s = self._backoff.pause_s(retries + 1, self._randomness)
                if not safe or once or not self._may_retry(error, retries, until - pause_s):
                    raise
            await self._clock.sleep(pause_s)
            self._metrics.count_retry(verb)
            retries += 1

    def is_unknown(self, key: str) -> bool:
        """Tell whether nobody knows what became of the last effect on this key, because it has not ended."""
        return self._keys.is_unknown(key)

    def when_known(self, listener: Callable[[str], None]) -> None:
        """Have `listener` told of each key that was unknown and no longer is."""
        self._keys.when_known(listener)

    async def close(self, grace_s: float = 10.0) -> None:
        """Take no new calls, wait for those under way, and after the grace cut off the rest."""
        self._is_closing = True
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=grace_s)
            for task in left:
                task.cancel()
            if left:
                structlog.get_logger().warning("provider calls cut off", provider=self.provider, calls=len(left))
                await asyncio.wait(left, timeout=_CUT_OFF_S)

    async def _send(
        self, key: str, verb: str, effect: Effect[ResultT], *, until: float, limit_s: float, is_safe: bool
    ) -> ResultT:
        try:
            epoch = await self._admit(key, until=until, is_safe=is_safe)
        except Refused as refusal:
            self._metrics.count(verb, refusal.outcome)
            raise
        except TimedOut:
            self._metrics.count(verb, "late")
            raise
        sent = _Sent(key, verb, is_safe, epoch, self._clock.monotonic())
        task = asyncio.create_task(self._perform(sent, effect), name=f"{self.provider} {verb} {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.wait((task,), timeout=max(0.0, until - self._clock.monotonic()))
        except asyncio.CancelledError:
            self._leave(sent, task)
            self._breaker.left(epoch)
            raise
        if task.done():
            return task.result()
        self._leave(sent, task)
        is_silent = self._clock.monotonic() - sent.began >= self._settings.silence_s
        (self._breaker.failed if is_silent else self._breaker.left)(epoch)
        raise TimedOut(limit_s) if is_safe else OutcomeUnknown(f"{verb} of {key} at {self.provider}")

    async def _admit(self, key: str, *, until: float, is_safe: bool) -> int:
        """Take the key and wait for a slot; return the breaker's epoch."""
        self._check(key, is_safe=is_safe)
        if not is_safe:
            self._keys.take(key)
        try:
            await self._slots.take(max(0.0, until - self._clock.monotonic()))
            return self._enter()
        except BaseException:
            if not is_safe:
                self._keys.free(key)
            raise

    def _enter(self) -> int:
        """Look again, with a slot in hand: much may have happened in the queue."""
        epoch = None if self._is_closing else self._breaker.admit()
        if epoch is None:
            self._slots.give()
            raise self._stopping() if self._is_closing else self._broken()
        self._metrics.in_flight.inc()
        return epoch

    def _check(self, key: str, *, is_safe: bool) -> None:
        if self._is_closing:
            raise self._stopping()
        if not is_safe and self._keys.is_busy(key):
            raise Refused(f"An earlier call for {key} at {self.provider} has not ended: wait until it has.", "busy")
        if self._breaker.is_refusing:
            raise self._broken()

    async def _perform(self, sent: _Sent, effect: Effect[ResultT]) -> ResultT:
        outcome: Outcome = "done"
        try:
            return await effect()
        except asyncio.CancelledError:
            outcome = "ill"
            raise OutcomeUnknown(f"{sent.verb} of {sent.key} at {self.provider}") from None
        except Exception as error:
            outcome = "ill" if self._is_ill(error) else "failed"
            raise
        finally:
            self._end(sent, outcome)

    def _end(self, sent: _Sent, outcome: Outcome) -> None:
        self._slots.give()
        self._metrics.in_flight.dec()
        self._metrics.time(sent.verb, self._clock.monotonic() - sent.began)
        if not sent.is_left:
            self._metrics.count(sent.verb, outcome)
            (self._breaker.failed if outcome == "ill" else self._breaker.succeeded)(sent.epoch)
        if not sent.is_safe:
            self._keys.free(sent.key)

    def _leave(self, sent: _Sent, task: asyncio.Task[Any]) -> None:
        """Wait no longer for a call that goes on."""
        if task.done():
            return
        sent.is_left = True
        self._metrics.count(sent.verb, "unknown")
        task.add_done_callback(_look_at)
        if not sent.is_safe:
            self._keys.leave(sent.key)

    def _may_retry(self, error: Exception, retries: int, until: float) -> bool:
        if isinstance(error, Refused) or not self._is_ill(error):
            return False
        return retries < self._settings.retries and self._clock.monotonic() < until and self._budget.take()

    def _broken(self) -> Refused:
        wait = f"{self._breaker.retry_after_s:.0f} s"
        return Refused(f"{self.provider} has failed too often and is left alone: try again in {wait}.", "broken")

    def _stopping(self) -> Refused:
        return Refused(f"This process stops calling {self.provider}: try again.", "stopping")


def _look_at(task: asyncio.Task[Any]) -> None:
    """Take note of an error that nobody waits for: the metrics have it, and the key is known again."""
    if not task.cancelled():
        task.exception()
