"""Connection of one client: the HTTP/1.1 parser, pipelined requests, and the deadlines of the client.

A rejected request gets an error response, and the connection is closed only after the client had time to read it:
closing with unread bytes would discard the response.
"""

import asyncio
import contextlib
import math
import socket
import ssl
import struct
from collections import deque
from collections.abc import Mapping
from typing import Any

import httptools

from remuda.http.asgi import ASGIApp, Scope
from remuda.http.buffer_shares import UNCOUNTED, Buffered, NoFreeBuffer, TooMuchBuffered
from remuda.http.responses import Header
from remuda.http.server.http1 import PART, TLS_PART, FlowControl, RequestCycle
from remuda.http.server.limits import (
    PATH_BYTES,
    ConnectionReaper,
    HeadTooLarge,
    PathTooLong,
    Progress,
    ReapedConnection,
)
from remuda.http.server.request_head import check_head, decoded_path
from remuda.kernel.errors import Malformed, RemudaError, TooSlow, Unavailable

_NEVER = math.inf
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_NO_LINGER = struct.pack("ii", 1, 0)
_FEW_HEADERS = 20
_HEADER_BYTES = 200
"""Memory of a header beside its bytes."""
_TLS_READ_BUFFER = 16 * 1024
"""Bytes that TLS may hold for a request that is not read yet: one record."""
_TLS_UNREAD = 96 * 1024
"""Bytes that TLS holds for a client that does not read, beside what the application waits with."""
_SPARE_CONNECTIONS = 64
"""Number of connections without a slot that get an error response before they are closed."""


class _TooFarAhead(Exception):  # noqa: N818  never leaves this module
    """Raised when the client sends more requests than may be pipelined."""


class Connection(asyncio.Protocol):
    """Connection of one client."""

    def __init__(
        self, server: "ConnectionFactory", reaper: ConnectionReaper, handshake: ReapedConnection | None
    ) -> None:
        self._server, self._reaper, self._limits = server, reaper, reaper.limits
        self._handshake = handshake
        self._parser = httptools.HttpRequestParser(self)
        # Otherwise a request that is pipelined behind one with `Connection: close` would fail that one, too.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._deadline, self._deadline_reason = _NEVER, ""
        self._reading = Progress(self._limits.read_stall_s)
        self._head_bytes, self._is_in_head = 0, False
        self._framing_bytes = 0  # of chunk extensions and the trailer, since the last part of the body
        self._is_in_request = False  # its head has begun, and it has not arrived completely
        self._ignores_input = False  # further input is discarded
        self._waiting: deque[RequestCycle] = deque()  # pipelined behind the running one
        self._running: RequestCycle | None = None
        self._last: RequestCycle | None = None  # the one that is being received
        self._url = b""
        self._headers: list[Header] = []
        self._state: dict[str, Any] = {}
        self._buffered: Buffered | None = None  # None as long as nothing is counted
        self._partial = 0  # what is counted of a head that is not complete
        self._unread = 0  # what is counted of a response that is not read
        self._rejected: tuple[RemudaError, str] | None = None  # after the response that is being written

    # Called by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a socket's transport reads and writes
        """Start, unless there are too many connections."""
        transport.set_write_buffer_limits(high=self._limits.write_buffer)
        self._client, self._local = (_address(transport.get_extra_info(each)) for each in ("peername", "sockname"))
        self._tls = _tls(transport.get_extra_info("ssl_object"))
        self._transport = transport
        self._flow = FlowControl(transport, part=PART if self._tls is None else TLS_PART)
        if self._tls is not None:
            transport.set_read_buffer_limits(high=_TLS_READ_BUFFER)  # type: ignore[attr-defined]  # those of TLS have it
        self._reaper.connections.add(self)
        if self._handshake is not None:
            self._reaper.remove(self._handshake)
        self._wait(self._limits.head_s, "head_timeout")
        rejected = self._reaper.slots.take(self, self._client[0] if self._client else None)
        if rejected is None and self._reaper.is_stopping:
            rejected = "connections", Unavailable("The server is stopping. Try again later.")
        if rejected is not None:
            reason, error = rejected
            if len(self._reaper.connections) - len(self._reaper.slots) > _SPARE_CONNECTIONS:
                self._close_counted(reason)
            else:
                self._reject(error, reason)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  part of the protocol
        """Tell every request of this connection that its client has disconnected."""
        for cycle in (self._running, *self._waiting):
            if cycle is not None:
                cycle.disconnect()
        self._waiting.clear()
        if self._buffered is not None:
            self._buffered.clear()
            self._unread = 0
        self._flow.resume_writing()
        self._reaper.remove(self)

    def data_received(self, data: bytes) -> None:
        if self._ignores_input or self._transport.is_closing():
            return
        self._head_bytes += len(data)
        self._framing_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            assert self._last is not None, "its head is complete"
            self._last.keep_alive = False  # the upgrade is ignored, and no request can follow
            self._ignores_input = True
        except httptools.HttpParserError as error:
            self._reject_unparsed(error.__context__)
        else:
            read = self._head_bytes if self._is_in_head else self._framing_bytes if self._is_in_request else 0
            if read > self._limits.head_bytes:
                self._reject(HeadTooLarge(self._limits), "head_too_large")
            elif self._is_in_head:
                self._count_partial_head(read or len(data))  # a request before it may have ended in the same data

    def pause_writing(self) -> None:
        """Wait for a slow client. What TLS holds for it is counted."""
        self._flow.pause_writing()
        if self._tls is None:
            return
        try:
            self._counter().add(_TLS_UNREAD)
        except TooMuchBuffered:
            self._close_counted("buffers")
        except NoFreeBuffer:  # strangers occupy the memory: they break off no response
            pass
        else:
            self._unread = _TLS_UNREAD

    def resume_writing(self) -> None:
        """Continue after a slow client has caught up."""
        if self._unread:
            self._counter().remove(self._unread)
            self._unread = 0
        self._flow.resume_writing()
        self._reading.begin()

    # Called by the parser

    def on_message_begin(self) -> None:
        self._is_in_request = self._is_in_head = True
        if self._is_response_complete():
            self._wait(self._limits.head_s, "head_timeout")

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, unless there are too many: in memory they need much more than they send.

        A field of the trailer is discarded: a proxy checks and removes only those of the head.
        """
        if not self._is_in_head:
            return
        self._headers.append((name.lower(), value))
        if len(self._headers) > self._limits.headers:
            raise HeadTooLarge(self._limits)

    def on_headers_complete(self) -> None:
        """Start the request once its head is complete, or let it wait for those before it."""
        self._is_in_head = False
        self._framing_bytes = 0
        version = self._parser.get_http_version()
        expects_continue = self._check_head(version)
        is_first = self._is_response_complete()
        weight = self._count_head(is_first=is_first)
        self._deadline = _NEVER
        cycle = RequestCycle(
            self._scope(version),
            self._transport,
            self._flow,
            loop=self._server.loop,
            default_headers=self._server.default_headers,
            keep_alive=version != "1.0" and self._parser.should_keep_alive(),
            expects_continue=expects_continue,
            on_complete=self._on_response_complete,
        )
        cycle.weight, self._last = weight, cycle
        self._url, self._headers = b"", []
        if is_first:
            self._start(cycle)
        else:
            self._flow.pause_reading()
            self._waiting.append(cycle)

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        if not self._is_response_complete():
            assert self._last is not None, "the body follows a head"
            self._last.add_body(body)
            self._wait(self._limits.body_stall_s, "body_stalled")

    def on_message_complete(self) -> None:
        """Note the end of a request, and stop waiting for the client."""
        self._is_in_request = False
        self._head_bytes = 0
        self._deadline = _NEVER
        if self._is_response_complete():
            self._wait(self._limits.idle_s, "idle")
        else:
            assert self._last is not None, "the end follows a head"
            self._last.end_body()

    # Called by the application

    def _on_response_complete(self) -> None:
        """Start the next request, or wait for one. Nothing is kept of this one."""
        assert self._running is not None, "its response is complete"
        if self._running.weight and self._buffered is not None:
            self._buffered.remove(self._running.weight)
        if self._running is self._last:
            self._last = None
        self._running = None
        if self._transport.is_closing():
            return
        if self._rejected is not None:
            self._reject(*self._rejected)
            return
        self._flow.resume_reading()
        if self._waiting:
            self._start(self._waiting.popleft())
        elif self._is_in_head:
            self._wait(self._limits.head_s, "head_timeout")
        elif self._is_in_request:
            self._wait(self._limits.linger_s, "body_unused")
        else:
            self._wait(self._limits.idle_s, "idle")

    # Called by the server

    def shutdown(self) -> None:
        """Close the connection when the responses to its requests are sent."""
        if self._is_response_complete():
            self._transport.close()
        elif self._last is not None:
            self._last.keep_alive = False

    def abort(self) -> None:
        """Close the connection at once, and let the kernel discard unread data, too."""
        self._ignores_input = True
        with contextlib.suppress(OSError):  # closed already
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()

    def close_now(self) -> None:
        """Close the connection at once because the server stops, and count it if the response is incomplete."""
        if self._transport.get_write_buffer_size():
            self._close_counted("write_timeout")
        else:
            self.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress and everything is sent."""
        return self._is_response_complete() and not self._transport.get_write_buffer_size()

    def displace(self) -> None:
        """Close the idle connection because another client needs its slot."""
        self._reaper.count_closed("displaced")
        self._ignores_input = True
        self._transport.close()

    def check(self, now: float) -> None:
        """Close the connection if a deadline has passed."""
        if self._flow.write_paused or self._transport.is_closing():  # nothing more is written meanwhile
            if self._reading.record(self._transport.get_write_buffer_size(), now):
                self._close_counted("write_timeout")
            self._deadline = max(self._deadline, now + self._limits.linger_s)
        elif now > self._deadline:
            self._end_late()

    def _end_late(self) -> None:
        if self._ignores_input:
            self.abort()
        elif self._deadline_reason == "body_stalled" and self._flow.read_paused:
            self._wait(self._limits.body_stall_s, "body_stalled")  # the server itself does not read
        elif self._deadline_reason in {"head_timeout", "body_stalled"}:
            limit_s = self._limits.head_s if self._is_in_head else self._limits.body_stall_s
            self._reject(TooSlow(limit_s), self._deadline_reason)
        else:
            self._reaper.count_closed(self._deadline_reason)
            self._ignores_input = True
            self._transport.close()

    def _start(self, cycle: RequestCycle) -> None:
        self._running = cycle
        self._server.start(cycle)
        if self._is_in_request:
            self._wait(self._limits.body_stall_s, "body_stalled")

    def _scope(self, version: str) -> Scope:
        url = httptools.parse_url(self._url)
        path = url.path or b""
        if len(path) > PATH_BYTES:
            raise PathTooLong
        scope: Scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": self._parser.get_method().decode("ascii"),
            "scheme": "http",
            "path": decoded_path(path),
            "raw_path": path,
            "query_string": url.query or b"",
            "root_path": "",
            "headers": self._headers,
            "client": self._client,
            "server": self._local,
            "remuda.connection": self._state,
        }
        if self._tls is not None:
            scope["scheme"], scope["extensions"] = "https", self._tls
        return scope

    def _wait(self, seconds: float, reason: str) -> None:
        self._deadline, self._deadline_reason = self._reaper.now + seconds, reason

    def _is_response_complete(self) -> bool:
        return self._last is None or self._last.is_complete

    def _check_head(self, version: str) -> bool:
        """Check a complete head; return whether the client waits for `100 Continue`."""
        expects_continue = check_head(version, self._url, self._headers)
        if len(self._waiting) >= self._limits.pipelined:
            raise _TooFarAhead
        limit = self._limits.head_bytes
        # The received bytes may include the body, so the head is measured only if there are many.
        if self._head_bytes > limit and len(self._url) + sum(len(n) + len(v) for n, v in self._headers) > limit:
            raise HeadTooLarge(self._limits)
        return expects_continue

    def _count_head(self, *, is_first: bool) -> int:
        """Count a complete head, unless it is small and the first. Raise TooMuchBuffered or NoFreeBuffer."""
        if self._partial:
            self._counter().remove(self._partial)
            self._partial = 0
        if is_first and self._head_bytes <= UNCOUNTED and len(self._headers) <= _FEW_HEADERS:
            return 0
        weight = sum(len(name) + len(value) for name, value in self._headers) + len(self._url)
        weight += _HEADER_BYTES * len(self._headers)
        self._counter().add(weight)
        return weight

    def _count_partial_head(self, received: int) -> None:
        weight = received + _HEADER_BYTES * len(self._headers)
        if weight <= max(UNCOUNTED, self._partial):
            return
        try:
            self._counter().add(weight - self._partial)
        except (TooMuchBuffered, NoFreeBuffer) as error:
            self._reject(error, "buffers")
        else:
            self._partial = weight

    def _counter(self) -> Buffered:
        if self._buffered is None:
            self._buffered = self._reaper.buffered(self._client)
        return self._buffered

    def _reject_unparsed(self, cause: BaseException | None) -> None:
        if isinstance(cause, _TooFarAhead):
            self._close_counted("pipelined")
        elif isinstance(cause, HeadTooLarge | PathTooLong):
            self._reject(cause, "head_too_large")
        elif isinstance(cause, TooMuchBuffered | NoFreeBuffer):
            self._reject(cause, "buffers")
        elif isinstance(cause, Malformed):
            self._reject(cause, "malformed")
        else:
            self._reject(Malformed("This is not an HTTP/1.1 request."), "malformed")

    def _reject(self, error: RemudaError, reason: str) -> None:
        """Send an error response, and close the connection when the client has had time to read it."""
        self._ignores_input = True
        self._url, self._headers = b"", []  # of a head that nothing needs any more
        if self._running and self._running.is_started and not self._running.is_complete:
            if self._running.is_ending:
                self._rejected = error, reason
            else:
                self._close_counted(reason)  # in the middle of another response an error cannot be sent
            return
        if self._running:
            self._running.disconnect()
        response = self._reaper.reject(error, reason, peer=self._client, default_headers=self._server.default_headers)
        self._transport.write(response)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._wait(self._limits.linger_s, reason)

    def _close_counted(self, reason: str) -> None:
        self._reaper.count_closed(reason)
        self.abort()


def _tls(connection: ssl.SSLObject | None) -> Mapping[str, Any] | None:
    """Return the extensions of a scope with what TLS has verified; None without TLS."""
    if connection is None:
        return None
    certificate = connection.getpeercert(binary_form=True)
    chain = [] if certificate is None else [ssl.DER_cert_to_PEM_cert(certificate)]
    return {"tls": {"client_cert_chain": chain}}


def _address(found: Any) -> tuple[str, int] | None:
    """Return host and port of one end of a connection; None for a socket without them."""
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) else None


class ConnectionFactory:
    """Makes the connections of one server, which share the application, the tasks of requests and the Date header."""

    def __init__(self, app: ASGIApp, reaper: ConnectionReaper, headers: bytes = b"") -> None:
        """Take raw header lines for every response."""
        self._app, self._reaper, self._headers = app, reaper, headers
        self.loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None]] = set()
        self.default_headers = b""

    def set_date(self, date: bytes) -> None:
        """Set the Date header of the responses from now on."""
        self.default_headers = b"date: %b\r\n%b" % (date, self._headers)

    def start(self, cycle: RequestCycle) -> None:
        task = self.loop.create_task(cycle.run(self._app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def __call__(self, handshake: ReapedConnection | None = None) -> Connection:
        """Make a connection. The handshake, if any, counts as a connection until this one is made."""
        return Connection(self, self._reaper, handshake)
