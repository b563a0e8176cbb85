"""Connection of one client, its limits, and the reaper that enforces them.

uvicorn waits forever for a client. Here a connection has a deadline whenever the server waits for the client: to send a
head (408), of bounded size and number of headers (431); to continue a body (408); to read what is written to it; to
send the next request. Time that the application takes does not count. Deadlines are numbers, compared by one periodic
sweep over all connections. A rejected request gets an error response, and the connection is closed only after the
client had time to read it: closing with unread bytes would discard the response.

All that we use of uvicorn is used in this file, because most of it is no public API: `HttpToolsProtocol` and
`RequestResponseCycle` are subclassed, `_start_asgi_task` is overridden. Look here when uvicorn is upgraded.
"""

import asyncio
import contextlib
import math
import socket
import struct
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httptools
import structlog
from uvicorn._types import ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from remuda.http.asgi import ASGIApp, ClientDisconnect
from remuda.http.errors import error_response
from remuda.http.responses import Header
from remuda.kernel.errors import Malformed, RemudaError, TooSlow, Unavailable
from remuda.kernel.randomness import Randomness


class RequestCycle(RequestResponseCycle):
    """A request and its answer. Who writes to a client that left is told, where uvicorn would let it write for ever."""

    def send(self, message: ASGISendEvent) -> Coroutine[Any, Any, None]:
        """Send a part of the response, or raise ClientDisconnect."""
        if self.disconnected:
            raise ClientDisconnect
        return super().send(message)


def mark_disconnected(cycle: RequestResponseCycle | None) -> None:
    """Tell the application that the client of a request has disconnected."""
    if cycle is not None and not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of a connection, which an operator may set."""

    head_s: float = 10.0
    """Time for a request's head to be complete, from its first byte or the start of the connection."""
    head_bytes: int = 64 * 1024
    """Largest head."""
    headers: int = 100
    """Largest number of headers."""
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
    """Largest number of open connections; further ones get 503."""
    pipelined: int = 16
    """Largest number of pipelined requests on one connection."""


class HeadTooLarge(RemudaError):  # noqa: N818  named like the other errors
    """Raised when a request's head is too large; send fewer or shorter headers."""

    code = "head_too_large"
    status = 431

    def __init__(self, limits: ConnectionLimits) -> None:
        super().__init__(f"The head has more than {limits.head_bytes} bytes or {limits.headers} headers. Send less.")


class Progress:
    """Progress of a number that should decrease: after each decrease it has `stall_s` until the next."""

    __slots__ = ("_deadline", "_least", "_stall_s")

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self.begin()

    def begin(self) -> None:
        """Reset the smallest value."""
        self._least = self._deadline = math.inf

    def record(self, left: int, now: float) -> bool:
        """Record the remaining amount; return whether it has not decreased for too long."""
        if left < self._least:
            self._least, self._deadline = left, now + self._stall_s
        return now > self._deadline


class ReapedConnection(Protocol):
    """A connection, as the reaper sees it."""

    def check(self, now: float) -> None:
        """Close the connection if a deadline has passed."""


class ConnectionReaper:
    """Reaper of the connections of one server: their limits, a coarse clock, and a counter of closed connections."""

    def __init__(
        self, limits: ConnectionLimits, *, now: float, randomness: Randomness, count_closed: Callable[[str], None]
    ) -> None:
        self.limits, self.count_closed = limits, count_closed
        self.now = now
        """Time of the last sweep."""
        self.is_stopping = False
        self.connections: set[ReapedConnection] = set()
        self.all_closed = asyncio.Event()
        """Set when the last connection ends."""
        self._randomness = randomness

    def sweep(self, now: float) -> None:
        """Close the connections whose deadline has passed."""
        self.now = now
        for connection in list(self.connections):
            connection.check(now)

    def remove(self, connection: ReapedConnection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self.all_closed.set()

    def reject(self, error: RemudaError, reason: str, *, peer: tuple[str, int] | None, more: Sequence[Header]) -> bytes:
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
            *more,
            *response.headers,
            (b"x-trace-id", trace_id.encode()),
            (b"content-length", b"%d" % len(response.body)),
            (b"connection", b"close"),
        ]
        lines = [b"%b: %b\r\n" % header for header in headers]
        return b"".join([STATUS_LINE[response.status], *lines, b"\r\n", response.body])


_NEVER = math.inf
_NO_LINGER = struct.pack("ii", 1, 0)
_SPARE_CONNECTIONS = 64
"""Number of connections beyond the limit that get an error response before they are closed."""


class _TooFarAhead(Exception):  # noqa: N818  never leaves this module
    """Raised when the client sends more requests than may be pipelined."""


class Connection(HttpToolsProtocol):
    """Connection of one client: uvicorn's HTTP with our limits."""

    def __init__(self, reaper: ConnectionReaper, config: Config, server_state: ServerState) -> None:
        super().__init__(config, server_state, {})
        self._reaper, self._limits = reaper, reaper.limits
        self._deadline, self._deadline_reason = _NEVER, ""
        self._reading = Progress(self._limits.read_stall_s)
        self._head_bytes, self._is_in_head = 0, False
        self._is_in_request = False  # its head has begun, and it has not arrived completely
        self._ignores_input = False  # further input is discarded
        self._running: RequestResponseCycle | None = None

    # Called by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a socket's transport reads and writes
        """Start, unless there are too many connections."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=self._limits.write_buffer)
        self._reaper.connections.add(self)
        self._wait(self._limits.head_s, "head_timeout")
        excess = len(self._reaper.connections) - self._limits.connections
        if excess > _SPARE_CONNECTIONS:
            self._close_counted("connections")
        elif excess > 0 or self._reaper.is_stopping:
            self._reject(
                Unavailable("The server accepts no more connections at the moment. Try again later."), "connections"
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify every request of this connection: uvicorn notifies only the last one."""
        waiting = [cycle for cycle, _ in self.pipeline]
        self.pipeline.clear()
        for cycle in (self._running, *waiting):
            mark_disconnected(cycle)
        super().connection_lost(exc)
        self._reaper.remove(self)

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # the upgrade is ignored, and no request can follow
            self._ignores_input = True
        except httptools.HttpParserError as error:
            self._reject_unparsed(error.__context__)
        else:
            if self._is_in_head and self._head_bytes > self._limits.head_bytes:
                self._reject(HeadTooLarge(self._limits), "head_too_large")

    def resume_writing(self) -> None:
        """Continue after a slow client has caught up."""
        super().resume_writing()
        self._reading.begin()

    # Called by the parser

    def on_message_begin(self) -> None:
        """Note the start of a request."""
        super().on_message_begin()
        self._is_in_request = self._is_in_head = True
        if self._is_response_complete():
            self._wait(self._limits.head_s, "head_timeout")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, unless there are too many: in memory they need much more than they send."""
        super().on_header(name, value)
        if len(self.headers) > self._limits.headers:
            raise HeadTooLarge(self._limits)

    def on_headers_complete(self) -> None:
        """Start the request once its head is complete."""
        self._is_in_head = False
        self._check_head()
        self._deadline = _NEVER
        super().on_headers_complete()
        self.cycle.__class__ = RequestCycle  # uvicorn offers no other way to bring a cycle of one's own

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if not self._is_response_complete():
            self._wait(self._limits.body_stall_s, "body_stalled")

    def on_message_complete(self) -> None:
        """Note the end of a request, and stop waiting for the client."""
        self._is_in_request = False
        self._head_bytes = 0
        super().on_message_complete()
        self._deadline = _NEVER
        if self._is_response_complete():
            self._wait(self._limits.idle_s, "idle")

    # Called by the application

    def on_response_complete(self) -> None:
        """Start the next request, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._is_in_head:
            self._wait(self._limits.head_s, "head_timeout")
        elif self._is_in_request:
            self._wait(self._limits.linger_s, "body_unused")
        else:
            self._wait(self._limits.idle_s, "idle")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)
        if self._is_in_request:
            self._wait(self._limits.body_stall_s, "body_stalled")

    # Called by the server

    def abort(self) -> None:
        """Close the connection at once, and let the kernel discard unread data, too."""
        self._ignores_input = True
        with contextlib.suppress(OSError):  # closed already
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()

    def close_now(self) -> None:
        """Close the connection at once because the server stops, and count it if the response is incomplete."""
        if self.transport.get_write_buffer_size():
            self._close_counted("write_timeout")
        else:
            self.abort()

    def check(self, now: float) -> None:
        """Close the connection if a deadline has passed."""
        if self.flow.write_paused or self.transport.is_closing():  # nothing more is written meanwhile
            if self._reading.record(self.transport.get_write_buffer_size(), now):
                self._close_counted("write_timeout")
            self._deadline = max(self._deadline, now + self._limits.linger_s)
        elif now > self._deadline:
            self._end_late()

    def _end_late(self) -> None:
        if self._ignores_input:
            self.abort()
        elif self._deadline_reason == "body_stalled" and self.flow.read_paused:
            self._wait(self._limits.body_stall_s, "body_stalled")  # the server itself does not read
        elif self._deadline_reason in {"head_timeout", "body_stalled"}:
            limit_s = self._limits.head_s if self._is_in_head else self._limits.body_stall_s
            self._reject(TooSlow(limit_s), self._deadline_reason)
        else:
            self._reaper.count_closed(self._deadline_reason)
            self._ignores_input = True
            self.transport.close()

    def _wait(self, seconds: float, reason: str) -> None:
        self._deadline, self._deadline_reason = self._reaper.now + seconds, reason

    def _is_response_complete(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _check_head(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined:
            raise _TooFarAhead
        limit = self._limits.head_bytes
        # The received bytes may include the body, so the head is measured only if there are many.
        if self._head_bytes > limit and len(self.url) + sum(len(n) + len(v) for n, v in self.headers) > limit:
            raise HeadTooLarge(self._limits)

    def _reject_unparsed(self, cause: BaseException | None) -> None:
        if isinstance(cause, _TooFarAhead):
            self._close_counted("pipelined")
        elif isinstance(cause, HeadTooLarge):
            self._reject(cause, "head_too_large")
        else:
            self._reject(Malformed("This is not an HTTP/1.1 request."), "malformed")

    def _reject(self, error: RemudaError, reason: str) -> None:
        """Send an error response, and close the connection when the client has had time to read it."""
        if self._running and self._running.response_started and not self._running.response_complete:
            self._close_counted(reason)  # in the middle of another response an error cannot be sent
            return
        mark_disconnected(self._running)
        self._ignores_input = True
        more = self.server_state.default_headers
        self.transport.write(self._reaper.reject(error, reason, peer=self.client, more=more))
        self.transport.write_eof()
        self._wait(self._limits.linger_s, reason)

    def _close_counted(self, reason: str) -> None:
        self._reaper.count_closed(reason)
        self.abort()


class ConnectionFactory:
    """Makes the connections of one server, which share the application, the tasks of requests and default headers."""

    def __init__(self, app: ASGIApp, reaper: ConnectionReaper) -> None:
        self._reaper, self._state = reaper, ServerState()
        self._config = Config(
            app=app,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
        self._config.load()

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """The requests that are being answered."""
        return self._state.tasks

    def set_date(self, date: bytes) -> None:
        """Set the Date header of the responses from now on."""
        self._state.default_headers = [(b"date", date)]

    def __call__(self) -> Connection:
        return Connection(self._reaper, self._config, self._state)
