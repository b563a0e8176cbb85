"""Full scans: every object is looked at when control begins, when a source has missed something, and now and then.

A scan is spread out, at the lowest rank, and waits only for what it has itself handed out, so that it ends however much
else there is to do. One that fails is begun again soon. The scan now and then is there to find what events did not
tell, so what it finds is a bug: a pass that it caused, over a key with which nothing was under way, that acted. If an
event for that key comes within a moment of the pass, the scan had merely overtaken it, and nothing was lost. (An effect
of the pass itself that comes back as such an event cannot be told apart: a find may so go uncounted, but none is
counted that was not one.)
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.reconcile.queue import Queue, Rank
from remuda.reconcile.run import Cause, Run
from remuda.reconcile.sources import names
from remuda.store.contract import Store
from remuda.store.objects import Resource

__all__ = ["Finds", "Scan", "ScanSettings"]

_OVERTAKEN_S = 2.0
_BREATH_S = 0.01


@dataclass(frozen=True, kw_only=True)
class ScanSettings:
    """What an operator may set."""

    interval_s: float = 1800.0
    """From the end of a scan to the beginning of the next, give or take a tenth."""
    keys_per_s: float = 200.0
    """How fast a scan goes at most. The one when control begins goes as fast as workers do."""
    chunk: int = 50
    """How many keys are handed out at a time, and how many of them may still wait when more are."""


class Scan:
    """Hands out every key of a kind."""

    def __init__(
        self,
        kind: type[Resource],
        store: Store,
        queue: Queue,
        clock: Clock,
        settings: ScanSettings,
        told: Callable[[int], None],
    ) -> None:
        """Call `told` with the number of keys after each scan, whether it came to its end or not."""
        self.has_begun = False
        """Every object was handed out once."""
        self._kind = kind
        self._store = store
        self._queue = queue
        self._clock = clock
        self._settings = settings
        self._told = told
        self._due: Cause | None = None
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Have everything looked at, because nobody knows what has happened."""
        self._due = "start"
        self._asked.set()

    async def keep(self, randomness: Randomness) -> None:
        """Scan for ever, when asked and now and then: a duty, which goes on with what failed."""
        while True:
            cause = self._due or await self._next_cause(randomness)
            self._due = None
            self._asked.clear()
            try:
                await self.once(cause, keys_per_s=None if cause == "start" else self._settings.keys_per_s)
            except Exception:
                self._due = self._due or cause
                raise
            self.has_begun = self.has_begun or cause == "start"

    async def once(self, cause: Cause, *, keys_per_s: float | None = None) -> int:
        """Hand out every key, no faster than that, and return how many there were."""
        chunk, count = self._settings.chunk, 0
        pause_s = chunk / keys_per_s if keys_per_s else 0.0
        try:
            async for name in names(self._store, self._kind):
                self._queue.add(name, cause, Rank.SCAN)
                count += 1
                if count % chunk == 0:
                    await self._clock.sleep(pause_s)
                    await self._let_workers_follow()
        finally:
            self._told(count)
        return count

    async def _next_cause(self, randomness: Randomness) -> Cause:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.interval_s * randomness.uniform(0.9, 1.1)):
                await self._asked.wait()
        return self._due or "scan"

    async def _let_workers_follow(self) -> None:
        while self._queue.scanned > self._settings.chunk:
            await self._clock.sleep(_BREATH_S)


class Finds:
    """What scans have found, as soon as no event can explain it any more."""

    def __init__(self, found: Callable[[Run], None]) -> None:
        self._found = found
        self._doubtful: dict[str, asyncio.TimerHandle] = {}

    def suspect(self, run: Run) -> None:
        """A pass that a scan caused has acted."""
        self.explain(run.key)
        self._doubtful[run.key] = asyncio.get_running_loop().call_later(_OVERTAKEN_S, self._confirm, run)

    def explain(self, key: str) -> None:
        """An event for the key has come."""
        if self._doubtful and (timer := self._doubtful.pop(key, None)) is not None:
            timer.cancel()

    def close(self) -> None:
        """Confirm nothing more."""
        for key in list(self._doubtful):
            self.explain(key)

    def _confirm(self, run: Run) -> None:
        del self._doubtful[run.key]
        self._found(run)
