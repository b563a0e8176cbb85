"""Full scans: every object is looked at when control begins, when a source has missed something, and now and then.

A scan is spread out, at the lowest rank, and waits only for what it has itself handed out, so that it ends however much
else there is to do. One that fails is begun again soon, and one that is under way when everything is to be looked at
anew gives way to that. When control begins, workers go as fast as they can. Where the kind tells which of its objects
are `unsettled`, they do so only for those: the others follow at the pace of every scan, because 100,000 of them at rest
are as good as never anything to find. That takes hours, so a scan that is broken off, for whatever reason, is followed
by one that goes on behind it and comes to what was before it last: were each to begin at the beginning, the end would
never be looked at where sources begin anew every few minutes.

The scan now and then is there to find what events did not tell, so what it finds is a bug: a pass that it caused, over
a key with which nothing was under way, that acted. If an event for that key comes within a moment of the pass, the scan
had merely overtaken it, and nothing was lost. (An effect of the pass itself that comes back as such an event cannot be
told apart: a find may so go uncounted, but none is counted that was not one.)
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.randomness import Randomness
from remuda.reconcile.queue import Queue, Rank
from remuda.reconcile.results import Cause, Run
from remuda.reconcile.sources import names
from remuda.reconcile.status import UNSETTLED, finds_unsettled
from remuda.store.contract import Store
from remuda.store.objects import Resource

_OVERTAKEN_S = 2.0
_BREATH_S = 0.01


@dataclass(frozen=True, kw_only=True)
class ScanSettings:
    """What an operator may set."""

    interval_s: float = 1800.0
    """From the end of a scan to the beginning of the next, give or take a tenth."""
    keys_per_s: float = 200.0
    """How fast a scan goes at most. When control begins, what cannot wait goes as fast as workers do."""
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
        """Every object that cannot wait was handed out once."""
        self._kind = kind
        self._store = store
        self._queue = queue
        self._clock = clock
        self._settings = settings
        self._told = told
        self._came_to = ""
        """The last name that a scan which was broken off has handed out."""
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
                if cause == "start":
                    await self._begin()
                else:
                    await self._walk(cause)
            except Exception:
                self._due = self._due or cause
                raise

    async def once(self, cause: Cause) -> int:
        """Hand out every key, as fast as workers go, and return how many there were."""
        return await self._hand_out(names(self._store, self._kind), cause, None)

    async def _begin(self) -> None:
        """Hand out at once what cannot wait, and then the rest."""
        if finds_unsettled(self._store.registry.of(self._kind)):
            await self._hand_out(names(self._store, self._kind, index=UNSETTLED), "start", None)
            await self._walk("start")
        else:
            await self.once("start")
        self.has_begun = True

    async def _walk(self, cause: Cause) -> None:
        """Hand out every key, no faster than is set."""
        await self._hand_out(self._round(), cause, self._settings.keys_per_s)

    async def _round(self) -> AsyncGenerator[str]:
        """Yield every name once: first those behind what the last walk came to, if that was broken off."""
        behind = self._came_to
        async with aclosing(names(self._store, self._kind)) as every:
            async for name in every:
                if name > behind:
                    self._came_to = name
                    yield name
        async with aclosing(names(self._store, self._kind)) as every:
            async for name in every:
                if name > behind:
                    break
                self._came_to = name
                yield name
        self._came_to = ""

    async def _hand_out(self, keys: AsyncGenerator[str], cause: Cause, keys_per_s: float | None) -> int:
        count = 0
        try:
            async with aclosing(keys):
                async for key in keys:
                    self._queue.add(key, cause, Rank.SCAN)
                    count += 1
                    if count % self._settings.chunk == 0:
                        if keys_per_s and await self._is_asked_meanwhile(keys_per_s):
                            break
                        await self._let_workers_follow()
        finally:
            self._told(count)
        return count

    async def _is_asked_meanwhile(self, keys_per_s: float) -> bool:
        """Pause, and tell whether everything is to be looked at anew."""
        self.has_begun = True  # what may wait comes after all that may not
        return await self._is_asked_within(self._settings.chunk / keys_per_s)

    async def _next_cause(self, randomness: Randomness) -> Cause:
        is_asked = await self._is_asked_within(self._settings.interval_s * randomness.uniform(0.9, 1.1))
        return "start" if is_asked else "scan"

    async def _is_asked_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        return self._asked.is_set()

    async def _let_workers_follow(self) -> None:
        await let_others_run()
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
