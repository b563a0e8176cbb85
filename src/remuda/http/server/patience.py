"""How much we take from one client and how long we wait for it; and the watchman who sees to that.

Deadlines cost nothing while they are kept: they are numbers, compared by one sweep over all connections now and then.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from remuda.http.errors import answer_to
from remuda.http.responses import Header
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import Randomness


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What an operator may set."""

    head_s: float = 10.0
    """For a request's head to be complete, from its first byte or the connection's beginning."""
    head_bytes: int = 64 * 1024
    """The longest head."""
    headers: int = 100
    """The most headers."""
    body_stall_s: float = 30.0
    """Between two pieces of a body, while we want more."""
    read_stall_s: float = 20.0
    """Without any of it being read, while more than `write_buffer` or the end of a connection waits for the client."""
    write_buffer: int = 4 * 1024
    """How much waits for a client before whoever writes to it has to wait, too."""
    idle_s: float = 75.0
    """Between two requests."""
    linger_s: float = 2.0
    """For the client to read why it was refused before a connection is closed under it."""
    connections: int = 10_000
    """Open at once; those beyond are told 503."""
    pipelined: int = 16
    """Requests that wait on one connection for their turn."""


class HeadTooLarge(RemudaError):  # noqa: N818  named like the rest of the tree
    """Raised when a request's head is longer than we take; send fewer or shorter headers."""

    code = "head_too_large"
    status = 431

    def __init__(self, patience: Patience) -> None:
        super().__init__(
            f"The head has more than {patience.head_bytes} bytes or {patience.headers} headers: send less."
        )


class Progress:
    """Whether what should become less does so: each time it is seen to, it has `stall_s` for the next time."""

    __slots__ = ("_deadline", "_least", "_stall_s")

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self.begin()

    def begin(self) -> None:
        """Forget how much it was."""
        self._least = self._deadline = math.inf

    def has_stalled(self, left: int, now: float) -> bool:
        """Note how much is left, and return whether that has been so for too long."""
        if left < self._least:
            self._least, self._deadline = left, now + self._stall_s
        return now > self._deadline


class Watched(Protocol):
    """A connection, as the watchman sees it."""

    def check(self, now: float) -> None:
        """End the connection if its time is up."""
        ...


class Watchman:
    """What the connections of one server share: their limits, a coarse clock, and who counts those that were cut."""

    def __init__(
        self, patience: Patience, *, now: float, randomness: Randomness, count_cut: Callable[[str], None]
    ) -> None:
        self.patience, self.count_cut = patience, count_cut
        self.now = now
        """The time of the last sweep."""
        self.is_stopping = False
        self.connections: set[Watched] = set()
        self.all_gone = asyncio.Event()
        """Set when the last connection ends."""
        self._randomness = randomness

    def sweep(self, now: float) -> None:
        """End the connections whose time is up."""
        self.now = now
        for connection in list(self.connections):
            connection.check(now)

    def forget(self, connection: Watched) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self.all_gone.set()

    def refuse(self, error: RemudaError, reason: str, *, peer: tuple[str, int] | None, more: Sequence[Header]) -> bytes:
        """Count and log a request that never became one, and return its answer as it goes over the wire."""
        trace_id = self._randomness.token_bytes(16).hex()
        answer = answer_to(error, trace_id=trace_id)
        self.count_cut(reason)
        structlog.get_logger().info(
            "connection refused",
            reason=reason,
            status=answer.status,
            error=error.code,
            trace_id=trace_id,
            peer=peer[0] if peer else None,
        )
        assert isinstance(answer.body, bytes)
        headers = [
            *more,
            *answer.headers,
            (b"x-trace-id", trace_id.encode()),
            (b"content-length", b"%d" % len(answer.body)),
            (b"connection", b"close"),
        ]
        lines = [b"%b: %b\r\n" % header for header in headers]
        return b"".join([STATUS_LINE[answer.status], *lines, b"\r\n", answer.body])
