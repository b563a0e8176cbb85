"""Clock: time as a port, and durations as text, such as 90d or 1h30m.

Code that reads the time or waits uses the Clock it was given. Production passes SystemClock; a simulation passes a
clock that it advances itself, so hours of waiting cost nothing and every run is repeatable.
"""

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta
from types import coroutine
from typing import Any, Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """Return the wall time, aware and in UTC. It may jump, so durations are never measured with it."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start. They never decrease: use them for durations and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller for this many seconds."""


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


_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"([0-9]{1,9})([wdhms])")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration(text: str) -> timedelta | None:
    """Return the duration, or None if the text is not one."""
    if not _WHOLE.fullmatch(text):
        return None
    seconds = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text))
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return None


def duration_text(duration: timedelta) -> str:
    """Return the duration as users write it, with no more than one unit where that is exact."""
    left = int(duration.total_seconds())
    parts = []
    for unit, seconds in _UNITS.items():
        if unit == "w":
            continue  # 90d says more than 12w6d
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
