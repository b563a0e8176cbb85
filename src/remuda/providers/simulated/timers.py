"""Timers of the simulated cloud: a server boots, an image becomes ready, a removed object disappears.

A table with the columns state, next and due says what changes when. Every read and write first applies what is due,
each change at its own time, so an object's state depends on stored times and the clock alone. A task applies due
changes also when no call arrives; that is when listeners are notified.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.providers.simulated.database import CloudDatabase

_SLACK_S = 1e-6  # more than the rounding of times
_AT_ONCE = 500
_RETRY_S = 1.0


class Timers:
    """Timers of all tables."""

    def __init__(self, storage: CloudDatabase, clock: Clock) -> None:
        self._storage, self._clock = storage, clock
        self._advance_by_table: dict[str, Callable[[float, int], int]] = {}
        self._next = math.inf
        self._timer: asyncio.Task[None] | None = None
        self._is_running = False

    def add(self, table: str, advance: Callable[[float, int], int]) -> None:
        """Register a function that advances up to a number of a table's rows due by a time; it returns their number."""
        self._advance_by_table[table] = advance
        self.reload()

    def expect(self, due: float) -> None:
        if due < self._next:
            self._next = due
            self._set_timer()

    def apply_due(self) -> None:
        if self._storage.now() < self._next:
            return
        while self._storage.write(self._advance):
            pass
        self.reload()

    def reload(self) -> None:
        """Read from the tables when the next row is due."""
        found = [self._storage.row(f"SELECT min(due) FROM {table}") for table in self._advance_by_table]  # noqa: S608  ours
        self._next = min((row[0] for row in found if row is not None and row[0] is not None), default=math.inf)
        self._set_timer()

    def start(self) -> None:
        self._is_running = True
        self._set_timer()

    async def stop(self) -> None:
        self._is_running = False
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            with suppress(asyncio.CancelledError):
                await timer

    def _advance(self) -> bool:
        now = self._storage.now()
        return sum(advance(now, _AT_ONCE) for advance in self._advance_by_table.values()) > 0

    def _set_timer(self) -> None:
        if not self._is_running:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._next < math.inf:
            self._timer = asyncio.create_task(self._wait_and_apply(), name="cloud timers")

    async def _wait_and_apply(self) -> None:
        await self._clock.sleep(max(0.0, self._next - self._storage.now()) + _SLACK_S)
        self._timer = None
        try:
            self.apply_due()
            if self._timer is None:  # the loop may wake a little too early, when nothing is due yet
                self._set_timer()
        except Unavailable:  # another process is slow, or the disk fails: rows stay due
            await self._clock.sleep(_RETRY_S)
            self.reload()
