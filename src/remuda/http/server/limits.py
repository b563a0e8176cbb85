"""Limits of connections, and the reaper that enforces them.

A connection has a deadline whenever the server waits for the client: to send a head (408), of bounded size and number
of headers (414, 431); to continue a body (408); to read what is written to it; to send the next request. Time that the
application takes does not count. Deadlines are numbers, compared by one periodic sweep over all connections.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from remuda.http.buffer_shares import Buffered, BufferShares, address_holder
from remuda.http.errors import error_response
from remuda.http.server.connection_slots import AdmittedConnection, ConnectionSlots, HostSet
from remuda.http.server.http1 import NOSNIFF, STATUS_LINES, header_lines
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import Randomness


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of a connection, which an operator may set."""

    head_s: float = 10.0
    """Time for a request's head to be complete, from its first byte or the start of the connection; and for a TLS
    handshake."""
    head_bytes: int = 64 * 1024
    headers: int = 100
    body_stall_s: float = 30.0
    """Time between two pieces of a body that is being read."""
    read_stall_s: float = 20.0
    """Time without progress of the client's reading, while more than `write_buffer` or the end is pending."""
    write_buffer: int = 4 * 1024
    """Bytes that may be pending for a client before the application has to wait."""
    idle_s: float = 75.0
    """Time between two requests."""
    linger_s: float = 2.0
    """Time for the client to read an error before its connection is closed."""
    connections: int = 10_000
    """Largest number of open connections; further ones get 503. One address has at most half of them."""
    forwarding: HostSet = field(default=(), compare=False)
    """Addresses of proxies, which may open any number of connections."""
    pipelined: int = 16


class HeadTooLarge(RemudaError):  # noqa: N818  named like the other errors
    """Raised when a request's head is too large; send fewer or shorter headers."""

    code = "head_too_large"
    status = 431

    def __init__(self, limits: ConnectionLimits) -> None:
        super().__init__(f"The head has more than {limits.head_bytes} bytes or {limits.headers} headers. Send less.")


PATH_BYTES = 4 * 1024
"""Length of the longest path, encoded. Ours are shorter."""


class PathTooLong(RemudaError):  # noqa: N818  same
    """Raised when the path of a request is too long; shorten its parameters."""

    code = "path_too_long"
    status = 414

    def __init__(self) -> None:
        super().__init__(f"The path has more than {PATH_BYTES} bytes. Shorten its parameters.")


class Progress:
    """Progress of a number that should decrease: after each decrease it has `stall_s` until the next."""

    __slots__ = ("_deadline", "_least", "_stall_s")

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self.begin()

    def begin(self) -> None:
        self._least = self._deadline = math.inf

    def record(self, left: int, now: float) -> bool:
        """Record the remaining amount; return whether it has not decreased for too long."""
        if left < self._least:
            self._least, self._deadline = left, now + self._stall_s
        return now > self._deadline


class ReapedConnection(AdmittedConnection, Protocol):
    """A connection, as the reaper sees it."""

    def check(self, now: float) -> None:
        """Close the connection if a deadline has passed."""


class ConnectionReaper:
    """Reaper of the connections of one server: their limits, a coarse clock, and a counter of closed connections."""

    def __init__(
        self,
        limits: ConnectionLimits,
        *,
        now: float,
        randomness: Randomness,
        count_closed: Callable[[str], None],
        buffers: BufferShares,
    ) -> None:
        self.limits, self.count_closed = limits, count_closed
        self._buffers = buffers
        self.now = now
        """Time of the last sweep."""
        self.is_stopping = False
        self.connections: set[ReapedConnection] = set()
        self.slots = ConnectionSlots(limits.connections, exempt=limits.forwarding)
        self.all_closed = asyncio.Event()
        """Set when the last connection ends."""
        self._randomness = randomness

    def sweep(self, now: float) -> None:
        """Close the connections whose deadline has passed."""
        self.now = now
        for connection in list(self.connections):
            connection.check(now)

    def buffered(self, peer: tuple[str, int] | None) -> Buffered:
        """Return the counter of a connection's bytes; a proxy stands for many clients and has no share."""
        is_client = peer is not None and peer[0] not in self.limits.forwarding
        return Buffered(self._buffers, [address_holder(peer[0])] if peer is not None and is_client else [])

    def remove(self, connection: ReapedConnection) -> None:
        self.connections.discard(connection)
        self.slots.release(connection)
        if not self.connections:
            self.all_closed.set()

    def reject(self, error: RemudaError, reason: str, *, peer: tuple[str, int] | None, default_headers: bytes) -> bytes:
        """Count and log a rejected connection or malformed request, and return the raw error response."""
        trace_id = self._randomness.token_bytes(16).hex()
        response = error_response(error, trace_id=trace_id)
        self.count_closed(reason)
        structlog.get_logger().info(
            "connection rejected",
            reason=reason,
            status=response.status,
            error=error.code,
            trace_id=trace_id,
            peer=peer[0] if peer else None,
        )
        assert isinstance(response.body, bytes)
        headers = [
            *response.headers,
            (b"x-trace-id", trace_id.encode()),
            (b"content-length", b"%d" % len(response.body)),
            (b"connection", b"close"),
        ]
        return b"".join(
            [STATUS_LINES[response.status], default_headers, NOSNIFF, header_lines(headers), b"\r\n", response.body]
        )
