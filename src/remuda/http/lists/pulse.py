"""One pulse for many streams.

Every idle stream wants to be woken now and then, and all at once when the server closes. One ticker does that for all
of them, a few at each tick, so a thousand idle streams cost one timer and are never awake together. It runs while there
are streams.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

from remuda.kernel.clock import Clock

_TURNS = 16


class Pulse:
    """Rings each bell once in an interval, and all of them when `closing` is set."""

    def __init__(self, clock: Clock, closing: asyncio.Event, interval_s: float) -> None:
        self._clock, self._closing, self._interval_s = clock, closing, interval_s
        self._turns: tuple[dict[asyncio.Event, None], ...] = tuple({} for _ in range(_TURNS))
        self._seats = cycle(self._turns)
        self._members = 0
        self._tasks: list[asyncio.Task[None]] = []

    @contextmanager
    def bell(self) -> Iterator[asyncio.Event]:
        """Give a stream its bell for as long as it lives."""
        bell, turn = asyncio.Event(), next(self._seats)
        turn[bell] = None
        self._members += 1
        if self._members == 1:
            self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._close())]
        if self._closing.is_set():
            bell.set()
        try:
            yield bell
        finally:
            del turn[bell]
            self._members -= 1
            if not self._members:
                for task in self._tasks:
                    task.cancel()

    async def _beat(self) -> None:
        for turn in cycle(self._turns):
            await self._clock.sleep(self._interval_s / _TURNS)
            for bell in turn:
                bell.set()

    async def _close(self) -> None:
        await self._closing.wait()
        for turn in self._turns:
            for bell in turn:
                bell.set()
