"""Clocks that are moved by hand."""

import asyncio
from datetime import UTC, datetime, timedelta

from remuda.kernel.clock import SystemClock


class HandClock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


class SkippingClock(SystemClock):
    """The machine's clock, which a test can put forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_s)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


def skip(seconds: float) -> None:
    """Put the time of the running event loop forward: what waits for less is woken at once, real sockets or not."""
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]  # for the rest of the loop's life
