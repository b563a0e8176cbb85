"""Time as a port.

Whoever needs the time or wants to wait asks a Clock it was given. Production passes SystemClock; a simulation passes a
clock it moves by hand, so hours of waiting cost nothing and every run can be repeated exactly.

Giving up the loop, for whoever has much to do and nothing to wait for.
"""

import asyncio
import time
from datetime import UTC, datetime
from types import coroutine
from typing import Any, Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """Return the wall time, aware and in UTC; it may jump, so never measure with it."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start that never run backwards, for measuring and for deadlines."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let others run until that many seconds have passed."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the machine's wall time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(seconds)


@coroutine
def let_others_run() -> Any:
    """Give up the loop for a turn. No time passes, so no clock is asked."""
    yield
