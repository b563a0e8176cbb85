"""Slots of requests in progress, shared between callers: each has at most half of them.

Connections are limited per address, which does not limit a caller behind a forwarding proxy.
"""

from remuda.kernel.errors import TooMany

_RETRY_AFTER_S = 5


class TooManyRequests(TooMany):
    """Raised when a caller has too many requests in progress; wait until some of them have ended."""

    def __init__(self, most: int) -> None:
        super().__init__(
            _RETRY_AFTER_S,
            f"This caller has {most} requests in progress, which is the most for one: wait for some, then retry.",
        )


class RequestSlots:
    """Slots for the requests of a process that are in progress, until their response is sent."""

    def __init__(self, count: int = 10_000) -> None:
        self._share = max(1, count // 2)
        self._open: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(self._open.values())

    def take(self, caller: str) -> None:
        """Take a slot, or raise TooManyRequests."""
        count = self._open.get(caller, 0)
        if count >= self._share:
            raise TooManyRequests(self._share)
        self._open[caller] = count + 1

    def release(self, caller: str) -> None:
        count = self._open.pop(caller) - 1
        if count:
            self._open[caller] = count
