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

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s
