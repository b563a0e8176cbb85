"""Confirmed absence: an object counts as gone when two reads, far enough apart, did not find it.

A provider's reads may be stale, so the two reads are further apart than a read can be old. Observations are kept in
memory by monotonic time: after a restart, or in another process, both reads are repeated, and no correction of the wall
clock shortens the delay.
"""

from collections.abc import Hashable

from remuda.kernel.clock import Clock


class AbsenceTracker:
    """Tracker of objects that were looked for and not found."""

    def __init__(self, clock: Clock, *, delay_s: float) -> None:
        self.delay_s = delay_s
        """Delay between the first read that finds nothing and the one that counts; longer than a read can be old."""
        self._clock = clock
        self._since: dict[Hashable, float] = {}

    def record_missing(self, key: Hashable) -> bool:
        """Record that an object was not found; return whether its absence is confirmed."""
        now = self._clock.monotonic()
        return now - self._since.setdefault(key, now) >= self.delay_s

    def clear(self, key: Hashable) -> None:
        """Forget that an object was missing: it was found, or is no longer expected."""
        self._since.pop(key, None)
