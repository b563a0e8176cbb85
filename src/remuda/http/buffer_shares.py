"""Shares of the memory that a process uses for clients: requests in progress, and responses that are not read yet.

Requests without verified credentials have a quarter of it for themselves: strangers cannot keep callers out. Small
requests and responses are not counted, since the number of connections limits them.
"""

from remuda.http.shares import Holders, NoneFree, OverShare, Shares
from remuda.kernel.errors import TooMany, Unavailable

UNCOUNTED = 4 * 1024
"""Bytes up to which a head, a body or a response is not counted."""
SLICE_BYTES = 64 * 1024
"""Bytes of rendered objects that a slow reader of a list in parts may occupy."""
DEFAULT_BYTES = 128 << 20
_RETRY_AFTER_S = 5
_ANONYMOUS = 4
_LEAST_ANONYMOUS = 128 * 1024
"""Bytes that a site gets from the reserve: the largest head with its headers, or a body without credentials."""
_LEAST = 1 << 20
"""Bytes that an organization gets from the reserve: the largest list that is one response."""
_SMALL = 16
"""Part of a small memory up to which an organization or a site may use the reserve."""


class TooMuchBuffered(TooMany):
    """Raised when a caller, its organization or its address occupies its share; read the responses, then retry."""

    def __init__(self) -> None:
        super().__init__(
            _RETRY_AFTER_S,
            "Requests that are not complete and responses that are not read, of this caller, its organization or this "
            "address, occupy its share of the server's memory: complete and read them, then retry.",
        )


class NoFreeBuffer(Unavailable):
    """Raised when others occupy the memory for requests and responses; retry later."""

    retry_after_s = _RETRY_AFTER_S

    def __init__(self) -> None:
        super().__init__("The server has no memory for this request at the moment. Try again later.")


class BufferShares:
    """The shares of a process."""

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        anonymous = limit // _ANONYMOUS
        self.anonymous = Shares(anonymous, least=min(_LEAST_ANONYMOUS, anonymous // _SMALL))
        """Those of heads, and of requests without verified credentials."""
        self.callers = Shares(limit - anonymous, least=min(_LEAST, (limit - anonymous) // _SMALL))

    @property
    def total(self) -> int:
        """Number of bytes that are counted."""
        return self.anonymous.total + self.callers.total


class Buffered:
    """Bytes that are counted for one request or one connection."""

    __slots__ = ("_amount", "_holders", "_shares")

    def __init__(self, shares: Shares, holders: Holders) -> None:
        self._shares, self._holders, self._amount = shares, holders, 0

    def add(self, amount: int) -> None:
        """Count further bytes, or raise TooMuchBuffered or NoFreeBuffer."""
        try:
            self._shares.take(self._holders, amount)
        except OverShare:
            raise TooMuchBuffered from None
        except NoneFree:
            raise NoFreeBuffer from None
        self._amount += amount

    def remove(self, amount: int) -> None:
        self._shares.release(self._holders, amount)
        self._amount -= amount

    def clear(self) -> None:
        """Free all that is left."""
        if self._amount:
            self.remove(self._amount)
