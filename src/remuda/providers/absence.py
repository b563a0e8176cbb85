"""When something is gone: it was looked for twice, and not there either time.

A read of a provider may be a little old, so the two looks are further apart than that. What was seen is kept in memory
by monotonic time: after a restart, or in another process, it is looked for twice again, and no jump of the wall's clock
shortens the wait.
"""

from collections.abc import Hashable

from remuda.kernel.clock import Clock


class Absences:
    """Since when things are not where they should be."""

    def __init__(self, clock: Clock, *, apart_s: float) -> None:
        self.apart_s = apart_s
        """From the first look that found nothing to the one that counts: longer than a read can be old."""
        self._clock = clock
        self._since: dict[Hashable, float] = {}

    def is_gone(self, what: Hashable) -> bool:
        """Note that something is not there; tell whether that was so long enough ago, too."""
        now = self._clock.monotonic()
        return now - self._since.setdefault(what, now) >= self.apart_s

    def is_there(self, what: Hashable) -> None:
        """Note that something is there after all, or that nobody looks for it any more."""
        self._since.pop(what, None)
