"""What becomes of things by time: a server boots, an image is ready, what was removed is gone.

A table with the columns state, next and due says what happens when. Whoever reads or changes anything first has all
done that is due, each at the moment at which it was; so how a thing is depends on stored times and the clock alone. A
timer for the next moment does the same when nobody asks, and that is when others hear of it.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.providers.simulated.database import Storage

_SLACK_S = 1e-6  # more than the rounding of times
_AT_ONCE = 500
_PATIENCE_S = 1.0


class Clockwork:
    """Moves what is due."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage, self._clock = storage, clock
        self._movers: dict[str, Callable[[float, int], int]] = {}
        self._next = math.inf
        self._timer: asyncio.Task[None] | None = None
        self._is_running = False

    def add(self, table: str, mover: Callable[[float, int], int]) -> None:
        """Have `mover` move the rows of a table that are due by a moment, so many at most; it tells how many it did."""
        self._movers[table] = mover
        self.look_again()

    def expect(self, due: float) -> None:
        """Take note that something is due then."""
        if due < self._next:
            self._next = due
            self._set_timer()

    def settle(self) -> None:
        """Do all that is due."""
        if self._storage.now() < self._next:
            return
        while self._storage.write(self._move):
            pass
        self.look_again()

    def look_again(self) -> None:
        """Find out what is due next."""
        found = [self._storage.row(f"SELECT min(due) FROM {table}") for table in self._movers]  # noqa: S608  ours
        self._next = min((row[0] for row in found if row is not None and row[0] is not None), default=math.inf)
        self._set_timer()

    def start(self) -> None:
        """Let the timer run."""
        self._is_running = True
        self._set_timer()

    async def stop(self) -> None:
        """Let it rest."""
        self._is_running = False
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            with suppress(asyncio.CancelledError):
                await timer

    def _move(self) -> bool:
        now = self._storage.now()
        return sum(mover(now, _AT_ONCE) for mover in self._movers.values()) > 0

    def _set_timer(self) -> None:
        if not self._is_running:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._next < math.inf:
            self._timer = asyncio.create_task(self._ring(), name="cloud clockwork")

    async def _ring(self) -> None:
        await self._clock.sleep(max(0.0, self._next - self._storage.now()) + _SLACK_S)
        self._timer = None
        try:
            self.settle()
            if self._timer is None:  # timers of a loop may ring a little too early, and then it is not due yet
                self._set_timer()
        except Unavailable:  # another process is slow, or the disk ails: what is due stays due
            await self._clock.sleep(_PATIENCE_S)
            self.look_again()
