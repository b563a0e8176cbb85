"""The cloud's own clock.

It is set by the wall when the cloud is opened, and then runs by monotonic time: the cloud stands elsewhere, and when
our wall clock is corrected, a server there boots neither sooner nor later. It never shows an earlier time than the last
change that is stored.
"""

from datetime import UTC, datetime

from remuda.kernel.clock import Clock


class CloudTime:
    """Seconds since 1970, as the cloud has them."""

    def __init__(self, clock: Clock, *, last: float = 0.0) -> None:
        self._clock = clock
        self._start = max(clock.now().timestamp(), last) - clock.monotonic()

    def now(self) -> float:
        return self._start + self._clock.monotonic()


def as_datetime(moment: float) -> datetime:
    """Return a moment as the contract has it."""
    return datetime.fromtimestamp(moment, UTC)
