"""Clock: time as a port.

Code that reads the time or waits uses the Clock it was given. Production passes SystemClock; a simulation passes a
clock that it advances itself, so hours of waiting cost nothing and every run is repeatable.
"""

import asyncio
import time
from datetime import UTC, datetime
from types import coroutine
from typing import Any, Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """Return the wall time, aware and in UTC. It may jump, so durations are never measured with it."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start. They never decrease: use them for durations and deadlines."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller for this many seconds."""
        ...


class SystemClock:
    """The clock of the machine."""

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
def yield_to_loop() -> Any:
    """Suspend the caller for one iteration of the event loop. No time passes, so no clock is involved."""
    yield
