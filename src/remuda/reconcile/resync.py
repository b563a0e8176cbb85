"""Resync: reconciles every object when leadership begins, when a source has missed events, and at an interval.

A resync is spread out, at the lowest priority, and waits only for keys that it has enqueued itself. One that fails is
restarted soon, and one that is running when another is requested is aborted, and continued after its last key:
otherwise the last names would never be reached where sources restart often. When leadership begins, workers go as fast
as they can; if the kind has an index of `unsettled` objects, only for those: the others follow at the normal rate.

A resync at an interval should find nothing to do. If the reconcile of an idle key acts, an event was lost, which is a
bug and counted. If an event for the key arrives shortly after, it was only late. An event that the reconcile itself
caused looks the same, so a lost event may remain uncounted, but none is counted wrongly.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.randomness import Randomness
from remuda.reconcile.queue import Queue, Rank
from remuda.reconcile.results import Cause, ReconcileContext
from remuda.reconcile.sources import names
from remuda.reconcile.status import UNSETTLED, has_unsettled_index
from remuda.store.contract import Store
from remuda.store.objects import Resource

_EVENT_DELAY_S = 2.0
_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class ResyncSettings:
    """Interval and rate of resyncs."""

    interval_s: float = 1800.0
    """Time from the end of a resync to the start of the next one, ±10 %."""
    keys_per_s: float = 200.0
    """Maximum rate of a resync. When leadership begins, urgent keys go as fast as workers do."""
    chunk: int = 50
    """Keys that are enqueued at a time, and of which so many may still wait when more are."""


class Resync:
    """Enqueues every key of a kind."""

    def __init__(
        self,
        kind: type[Resource],
        store: Store,
        queue: Queue,
        clock: Clock,
        settings: ResyncSettings,
        report: Callable[[int], None],
    ) -> None:
        """Call `report` with the number of keys after each resync, complete or not."""
        self.is_synced = False
        """Whether every object that cannot wait was enqueued once."""
        self._kind, self._store, self._queue = kind, store, queue
        self._clock, self._settings, self._report = clock, settings, report
        self._last_name = ""
        """The last name that an aborted resync has enqueued."""
        self._due: Cause | None = None
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Request a resync, because events were missed."""
        self._due = "start"
        self._requested.set()

    async def run(self, randomness: Randomness) -> None:
        """Resync for ever, on request and at an interval: a background task, which continues after a failure."""
        while True:
            cause = self._due or await self._next_cause(randomness)
            self._due = None
            self._requested.clear()
            try:
                if cause == "start":
                    await self._begin()
                else:
                    await self._resync(cause)
            except Exception:
                self._due = self._due or cause
                raise

    async def once(self, cause: Cause) -> int:
        """Enqueue every key, as fast as workers go, and return their number."""
        return await self._enqueue(names(self._store, self._kind), cause, None)

    async def _begin(self) -> None:
        """Enqueue at once what cannot wait, and then the rest."""
        if has_unsettled_index(self._store.registry.of(self._kind)):
            await self._enqueue(names(self._store, self._kind, index=UNSETTLED), "start", None)
            await self._resync("start")
        else:
            await self.once("start")
        self.is_synced = True

    async def _resync(self, cause: Cause) -> None:
        """Enqueue every key, at the configured rate."""
        await self._enqueue(self._names_from_last(), cause, self._settings.keys_per_s)

    async def _names_from_last(self) -> AsyncGenerator[str]:
        """Yield every name once: first those after the last name of an aborted resync."""
        last_name = self._last_name
        async with aclosing(names(self._store, self._kind)) as every:
            async for name in every:
                if name > last_name:
                    self._last_name = name
                    yield name
        async with aclosing(names(self._store, self._kind)) as every:
            async for name in every:
                if name > last_name:
                    break
                self._last_name = name
                yield name
        self._last_name = ""

    async def _enqueue(self, keys: AsyncGenerator[str], cause: Cause, keys_per_s: float | None) -> int:
        count = 0
        try:
            async with aclosing(keys):
                async for key in keys:
                    self._queue.add(key, cause, Rank.RESYNC)
                    count += 1
                    if count % self._settings.chunk == 0:
                        if keys_per_s and await self._pause(keys_per_s):
                            break
                        await self._wait_for_workers()
        finally:
            self._report(count)
        return count

    async def _pause(self, keys_per_s: float) -> bool:
        """Pause, and return whether another resync was requested."""
        self.is_synced = True  # all urgent keys are enqueued before the others
        return await self._wait_for_request(self._settings.chunk / keys_per_s)

    async def _next_cause(self, randomness: Randomness) -> Cause:
        is_requested = await self._wait_for_request(self._settings.interval_s * randomness.uniform(0.9, 1.1))
        return "start" if is_requested else "resync"

    async def _wait_for_request(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._requested.wait()
        return self._requested.is_set()

    async def _wait_for_workers(self) -> None:
        await yield_to_loop()
        while self._queue.resynced > self._settings.chunk:
            await self._clock.sleep(_POLL_S)


class LostEvents:
    """The lost events that resyncs have found. One is reported when no event for its key arrives shortly after."""

    def __init__(self, found: Callable[[ReconcileContext], None]) -> None:
        self._found = found
        self._pending: dict[str, asyncio.TimerHandle] = {}

    def record_find(self, context: ReconcileContext) -> None:
        """Record that a reconcile caused by a resync has acted, although no event was known."""
        self.record_event(context.key)
        self._pending[context.key] = asyncio.get_running_loop().call_later(_EVENT_DELAY_S, self._confirm, context)

    def record_event(self, key: str) -> None:
        """Record that an event for the key has arrived."""
        if self._pending and (timer := self._pending.pop(key, None)) is not None:
            timer.cancel()

    def close(self) -> None:
        """Report nothing more."""
        for key in list(self._pending):
            self.record_event(key)

    def _confirm(self, context: ReconcileContext) -> None:
        del self._pending[context.key]
        self._found(context)
