"""Shares of the memory that a process uses for clients: requests in progress, and responses that are not read yet.

Each address and each caller may have as much as is left free: one alone gets half, two get a third each, and with any
number of them there is still space for another one. Small requests and responses are not counted, since the number of
connections limits them.
"""

from collections.abc import Iterable

from remuda.http.ratelimit import client_network
from remuda.kernel.errors import TooMany, Unavailable

UNCOUNTED = 4 * 1024
"""Bytes up to which a head, a body or a response is not counted."""
SLICE_BYTES = 64 * 1024
"""Bytes of rendered objects that a slow reader of a list in parts may occupy."""
DEFAULT_BYTES = 128 << 20
_RETRY_AFTER_S = 5


class TooMuchBuffered(TooMany):
    """Raised when a caller or an address occupies its share of the memory; read the responses, then retry."""

    def __init__(self) -> None:
        super().__init__(
            _RETRY_AFTER_S,
            "Requests that are not complete and responses that are not read, of this caller or this address, occupy "
            "its share of the server's memory: complete and read them, then retry.",
        )


class NoFreeBuffer(Unavailable):
    """Raised when others occupy the memory for requests and responses; retry later."""

    retry_after_s = _RETRY_AFTER_S

    def __init__(self) -> None:
        super().__init__("The server has no memory for this request at the moment. Try again later.")


class BufferShares:
    """The shares of a process."""

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        self._limit = limit
        self.total = 0
        """Number of bytes that are counted."""
        self._used: dict[str, int] = {}

    def take(self, holders: Iterable[str], amount: int) -> None:
        """Count bytes for each of these holders, or raise TooMuchBuffered or NoFreeBuffer."""
        free = self._limit - self.total - amount
        for holder in holders:
            used = self._used.get(holder, 0)
            if used + amount > free:
                raise TooMuchBuffered if used else NoFreeBuffer
        if free < 0:
            raise NoFreeBuffer
        self.total += amount
        for holder in holders:
            self._used[holder] = self._used.get(holder, 0) + amount

    def release(self, holders: Iterable[str], amount: int) -> None:
        """Free bytes that were counted for these holders."""
        self.total -= amount
        for holder in holders:
            left = self._used[holder] - amount
            if left:
                self._used[holder] = left
            else:
                del self._used[holder]


class Buffered:
    """Bytes that are counted for one request or one connection."""

    __slots__ = ("_amount", "_holders", "_shares")

    def __init__(self, shares: BufferShares, holders: Iterable[str]) -> None:
        self._shares, self._holders, self._amount = shares, tuple(holders), 0

    def add(self, amount: int) -> None:
        """Count further bytes, or raise TooMuchBuffered or NoFreeBuffer."""
        self._shares.take(self._holders, amount)
        self._amount += amount

    def remove(self, amount: int) -> None:
        self._shares.release(self._holders, amount)
        self._amount -= amount

    def clear(self) -> None:
        """Free all that is left."""
        if self._amount:
            self.remove(self._amount)


def address_holder(host: str) -> str:
    """Return the holder that stands for an address."""
    return f"address {client_network(host)}"


def caller_holder(caller: str) -> str:
    """Return the holder that stands for a caller."""
    return f"caller {caller}"
