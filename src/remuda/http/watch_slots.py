"""Slots of open watches, shared between callers and addresses: each has at most half of them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Meter

from remuda.kernel.errors import TooMany, Unavailable

RejectReason = Literal["principal", "address", "all"]

_RETRY_AFTER_S = 5


class TooManyWatches(TooMany):
    """Raised when a caller or an address has too many open watches; close some of them."""

    def __init__(self, who: str, most: int) -> None:
        super().__init__(
            _RETRY_AFTER_S, f"This {who} has {most} open watches, which is the most for one: close some, then retry."
        )


class NoFreeWatch(Unavailable):
    """Raised when all watches are taken; retry later."""

    retry_after_s = _RETRY_AFTER_S

    def __init__(self) -> None:
        super().__init__("The server accepts no more watches at the moment. Try again later.")


class WatchSlots:
    """Slots for the watches of a process."""

    def __init__(self, count: int = 5_000, *, metrics: CollectorRegistry | None = None) -> None:
        self._count, self._share = count, max(1, count // 2)
        self._taken = 0
        self._open: Counter[tuple[RejectReason, str]] = Counter()
        meter = Meter(
            "remuda_http_watches_rejected", "Watches rejected because too many are open.", ("reason",), registry=metrics
        )
        reasons: tuple[RejectReason, ...] = ("principal", "address", "all")
        self._rejected = {reason: meter.labels(reason) for reason in reasons}

    def __len__(self) -> int:
        return self._taken

    @contextmanager
    def acquire(self, *, principal: str, address: str) -> Iterator[None]:
        """Take a slot for the block. Raise TooManyWatches or NoFreeWatch if there is none.

        An empty address stands for many clients, such as those of a proxy, and has no share.
        """
        self.check(principal=principal, address=address)
        counted = _counted(principal, address)
        self._taken += 1
        self._open.update(counted)
        try:
            yield
        finally:
            self._taken -= 1
            for each in counted:
                self._open[each] -= 1
                if not self._open[each]:
                    del self._open[each]

    def check(self, *, principal: str, address: str) -> None:
        """Raise TooManyWatches or NoFreeWatch unless there is a slot."""
        for reason, name in _counted(principal, address):
            if self._open[reason, name] >= self._share:
                self._rejected[reason].inc()
                raise TooManyWatches("caller" if reason == "principal" else reason, self._share)
        if self._taken >= self._count:
            self._rejected["all"].inc()
            raise NoFreeWatch


def _counted(principal: str, address: str) -> list[tuple[RejectReason, str]]:
    counted: list[tuple[RejectReason, str]] = [("principal", principal), ("address", address)]
    return [(reason, name) for reason, name in counted if name]
