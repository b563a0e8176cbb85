"""Slots: so many calls at once, so many more that wait, first come first served."""

import asyncio
from collections.abc import Callable

from remuda.kernel.errors import TimedOut, Unavailable
from remuda.providers.metrics import Outcome


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
