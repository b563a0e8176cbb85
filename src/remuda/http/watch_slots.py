"""Slots of open watches, shared between organizations, callers and addresses (`Shares`).

When those for a new watch are taken, the newest watch of the largest holder ends, if that then still has as many as the
holder of the new one: the client of a watch that ends resumes where it was.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Meter

from remuda.access.principal import Principal
from remuda.http.shares import LEVELS, Holder, Holders, Level, NoneFree, OverShare, Shares
from remuda.kernel.errors import TooMany, Unavailable

_RETRY_AFTER_S = 5
_NAMES: dict[Level, str] = {
    "organization": "organization",
    "site": "address",
    "principal": "caller",
    "address": "address",
}


class TooManyWatches(TooMany):
    """Raised when a caller, its organization or its address has too many open watches; close some of them."""

    def __init__(self, who: str, most: int) -> None:
        super().__init__(
            _RETRY_AFTER_S, f"This {who} has {most} open watches, which is the most for one: close some, then retry."
        )


class NoFreeWatch(Unavailable):
    """Raised when all watches are taken; retry later."""

    retry_after_s = _RETRY_AFTER_S

    def __init__(self) -> None:
        super().__init__("The server accepts no more watches at the moment. Try again later.")


class OpenWatch:
    """A watch that has a slot, until it ends or is displaced."""

    def __init__(self, holders: Holders) -> None:
        self.holders = holders
        self.is_displaced = False
        self._wakeup: asyncio.Event | None = None

    def wake_with(self, wakeup: asyncio.Event) -> None:
        """Set this event when the watch is displaced, which may have happened."""
        self._wakeup = wakeup
        if self.is_displaced:
            wakeup.set()

    def displace(self) -> None:
        self.is_displaced = True
        if self._wakeup is not None:
            self._wakeup.set()

    def holder(self, level: Level | None) -> Holder | None:
        """Return the holder of a level, or the first one."""
        return next((each for each in self.holders if level is None or each.level == level), None)


class WatchSlots:
    """Slots for the watches of a process."""

    def __init__(self, count: int = 5_000, *, metrics: CollectorRegistry | None = None) -> None:
        self._shares = Shares(count, least=1)
        self._open: dict[OpenWatch, None] = {}
        """Those with a slot, the newest last."""
        meter = Meter(
            "remuda_http_watches_rejected", "Watches rejected because too many are open.", ("reason",), registry=metrics
        )
        self._rejected = {reason: meter.labels(reason) for reason in (*LEVELS, "all")}
        self._displaced = Meter(
            "remuda_http_watches_displaced", "Watches ended because others needed their slots.", registry=metrics
        )

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def acquire(self, *, principal: Principal, host: str) -> Iterator[OpenWatch]:
        """Take a slot for the block, unless it is displaced before. Raise TooManyWatches or NoFreeWatch without one.

        An empty host stands for many clients, such as those of a proxy, and has no share.
        """
        watch = OpenWatch(self._shares.holders(principal, host))
        while (rival := self._rival(watch)) is not None:
            self._release(rival)
            rival.displace()
            self._displaced.inc()
        self._shares.take(watch.holders, 1)
        self._open[watch] = None
        try:
            yield watch
        finally:
            if not watch.is_displaced:
                self._release(watch)

    def check(self, *, principal: Principal, host: str) -> None:
        """Raise TooManyWatches or NoFreeWatch unless there is a slot, or another watch would be displaced."""
        self._rival(OpenWatch(self._shares.holders(principal, host)))

    def _release(self, watch: OpenWatch) -> None:
        del self._open[watch]
        self._shares.release(watch.holders, 1)

    def _rival(self, watch: OpenWatch) -> OpenWatch | None:
        """Return the watch whose slot a new one would get, None if it needs no other's; raise if there is none."""
        try:
            self._shares.check(watch.holders, 1)
        except OverShare as over:
            found = self._newest_of_largest(watch, over.holder)
            if found is None:
                level = over.holder.level
                self._rejected[level].inc()
                raise TooManyWatches(_NAMES[level], self._shares.share(level)) from None
            return found
        except NoneFree:
            found = self._newest_of_largest(watch, None)
            if found is None:
                self._rejected["all"].inc()
                raise NoFreeWatch from None
            return found
        return None

    def _newest_of_largest(self, watch: OpenWatch, inside: Holder | None) -> OpenWatch | None:
        """Return the newest watch of the largest organization or, inside a holder, of its largest caller."""
        level: Level | None = None if inside is None else "principal"
        crowd = [each for each in self._open if inside is None or inside in each.holders]
        counts = _counted(crowd, level)
        if not counts:
            return None
        largest, most = counts.most_common(1)[0]
        mine = watch.holder(level)
        if most <= (counts[mine] if mine is not None else 0) + 1:
            return None
        return next(each for each in reversed(crowd) if each.holder(level) == largest)


def _counted(crowd: Collection[OpenWatch], level: Level | None) -> Counter[Holder]:
    """Return how many watches each holder of a level has; those of an unknown client have none."""
    return Counter(holder for each in crowd if (holder := each.holder(level)) is not None)
