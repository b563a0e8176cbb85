"""Access log: the trace id, the log line and the metrics of every request.

This is the outermost layer. It puts an `Observation` into `scope["remuda"]`, to which the layers below add the route,
the caller and the error. When the response is complete, one line is written and the metrics are updated. The line never
contains a query string or a header value, because either may be a secret.

No exception passes this layer. An unexpected one becomes a 500 with the error body, and is logged under the trace id
that the caller got. A request that is cancelled because the server stops at once gets 503.
"""

import asyncio
import os
import re
import select
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

import msgspec
import structlog

from remuda.http.asgi import ASGIApp, ClientDisconnect, Message, Receive, Scope, Send
from remuda.http.errors import error_response
from remuda.http.request import Observation
from remuda.http.responses import Header
from remuda.http.server.metrics import Metrics
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import Randomness

_CHUNK = select.PIPE_BUF
_MAX_BUFFER = 4 * 1024 * 1024
_RETRY_S = 0.05
_CLOSE_TIMEOUT_MS = 1000


class Sink(Protocol):
    """Destination of log lines."""

    def write(self, line: bytes) -> None:
        """Take one line, without its line break; it is written soon."""


class _Dropped(msgspec.Struct, frozen=True):
    event: str
    lines: int


class LineWriter:
    """Writer of log lines to a file descriptor, which never blocks the event loop.

    Lines are collected and written once per event-loop iteration, many in one call. The reader may be slow: a stopped
    terminal, a pipe into a pager. So the descriptor is polled first, and gets no more than a pipe accepts at once. The
    rest is buffered up to a limit; further lines are dropped, and their number is logged as soon as possible. A slow
    reader thus costs lines, never a response. Create it inside a running loop, and `close` it to lose nothing.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        most_waiting: int = _MAX_BUFFER,
        encode: Callable[[Any], bytes] = msgspec.json.encode,
    ) -> None:
        """Take what encodes the line about dropped lines."""
        self._descriptor, self._most_waiting, self._encode = descriptor, most_waiting, encode
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._dropped = 0
        self.total_dropped = 0
        """Number of lines that were dropped since the start."""
        self._is_scheduled = False
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)

    def write(self, line: bytes) -> None:
        """Take one line, to be written at the end of this event-loop iteration."""
        if len(self._buffer) > self._most_waiting:
            self._dropped += 1
            self.total_dropped += 1
            return
        if self._dropped:
            self._log_dropped()
        self._buffer += line
        self._buffer += b"\n"
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Write what is left, as long as it is being read."""
        if self._dropped:
            self._log_dropped()
        while self._buffer and self._writable.poll(_CLOSE_TIMEOUT_MS):
            self._write_some()
        self._buffer.clear()

    def _flush(self) -> None:
        while self._buffer and self._writable.poll(0):
            self._write_some()
        self._is_scheduled = bool(self._buffer)
        if self._is_scheduled:
            self._loop.call_later(_RETRY_S, self._flush)

    def _write_some(self) -> None:
        try:
            written = os.write(self._descriptor, self._buffer[:_CHUNK])
        except OSError:  # the reader is gone, and there is no other place to report it
            written = len(self._buffer)
        del self._buffer[:written]

    def _log_dropped(self) -> None:
        self._buffer += self._encode(_Dropped("log lines dropped", self._dropped)) + b"\n"
        self._dropped = 0


_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?=-|\Z)")
_VERSION_0_LENGTH = 55
_SAMPLED = "01"
_MAX_PATH = 1024
"""Characters of a path in a log line. Paths of ours are shorter, and others should not fill the log."""
_CLIENT_GONE = 499
"""Customary status in access logs for a request whose client disconnected."""


class AccessLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="request", tag_field="event"):
    """One request in the access log."""

    time: datetime
    method: str
    path: str
    """Without its query string."""
    status: int
    duration_ms: float
    bytes: int
    trace_id: str
    peer: str | None
    service: str | None = None
    route: str | None = None
    principal: str = ""
    error: str | None = None
    aborted: bool = False
    """Whether the client disconnected before the response was complete."""


_ENCODE = msgspec.json.Encoder().encode


class AccessLog:
    """The outermost ASGI layer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        clock: Clock,
        randomness: Randomness,
        metrics: Metrics,
        sink: Sink,
        encode: Callable[[AccessLine], bytes] | None = _ENCODE,
    ) -> None:
        """Take what encodes the lines; without it, there are none."""
        self._app, self._encode = app, encode
        self._clock, self._randomness, self._metrics, self._sink = clock, randomness, metrics, sink

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        trace_id, traceparent = self._trace(scope["headers"])
        observation = Observation(trace_id, self._clock.monotonic(), scope.get("client"))
        scope["remuda"] = observation
        exchange = _Exchange(observation, receive, send, traceparent, self._metrics)
        path = scope["path"]
        self._metrics.in_flight += 1
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            observation.is_aborted = True
        except asyncio.CancelledError:
            # Not raised again: only the server cancels, when it stops at once, and it does not need the exception.
            observation.error_code = Unavailable.code
            await exchange.send_error(Unavailable("The server is shutting down. Try again later."))
        except Exception as error:  # noqa: BLE001  the caller gets a response in any case
            observation.error_code = "internal"
            structlog.get_logger().exception("request failed", trace_id=trace_id, method=scope["method"], path=path)
            await exchange.send_error(error)
        finally:
            self._metrics.in_flight -= 1
            exchange.end()
            self._record(scope["method"], path, observation)

    def _trace(self, headers: list[Header]) -> tuple[str, bytes]:
        """Return the trace id, and the header that continues the caller's trace or begins one."""
        for name, value in headers:
            if name == b"traceparent":
                match = _TRACEPARENT.match(value)
                if match and (len(value) == _VERSION_0_LENGTH or not value.startswith(b"00")):
                    trace_id, flags = match[1].decode(), match[2].decode()
                    return trace_id, f"00-{trace_id}-{self._randomness.token_bytes(8).hex()}-{flags}".encode()
        drawn = self._randomness.token_bytes(24).hex()
        trace_id = drawn[:32]
        return trace_id, f"00-{trace_id}-{drawn[32:]}-{_SAMPLED}".encode()

    def _record(self, method: str, path: str, observation: Observation) -> None:
        duration_s = self._clock.monotonic() - observation.started
        status = observation.status or _CLIENT_GONE
        meters = self._metrics.of(observation.service, observation.route)
        meters.count(status)
        if not observation.is_stream:
            meters.observe_duration(duration_s)
        if observation.error_code is not None:
            self._metrics.count_error(observation.error_code, observation.service)
        if self._encode is None:
            return
        line = AccessLine(
            time=self._clock.now(),
            method=method,
            path=path if len(path) <= _MAX_PATH else f"{path[:_MAX_PATH]}…",
            status=status,
            duration_ms=int(duration_s * 1_000_000) / 1000,  # `round` takes five times as long
            bytes=observation.bytes,
            trace_id=observation.trace_id,
            peer=observation.peer[0] if observation.peer else None,
            service=observation.service,
            route=observation.route,
            principal=observation.principal,
            error=observation.error_code,
            aborted=observation.is_aborted,
        )
        self._sink.write(self._encode(line))


class _Exchange:
    """The receive and send channels of one request, observed."""

    __slots__ = ("_metrics", "_observation", "_receive", "_send", "_start", "_traceparent")

    def __init__(
        self, observation: Observation, receive: Receive, send: Send, traceparent: bytes, metrics: Metrics
    ) -> None:
        self._observation, self._receive, self._send = observation, receive, send
        self._traceparent, self._metrics = traceparent, metrics
        self._start: Message | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._observation.is_aborted = True
        return message

    async def send(self, message: Message) -> None:
        observation = self._observation
        if message["type"] == "http.response.start":
            observation.status = message["status"]
            headers: list[Header] = list(message.get("headers", ()))
            headers.append((b"x-trace-id", observation.trace_id.encode()))
            headers.append((b"traceparent", self._traceparent))
            message["headers"] = headers
            self._start = message
        else:
            observation.bytes += len(message.get("body", b""))
            if message.get("more_body", False) and not observation.is_stream:
                self._detect_stream()
        await self._send(message)

    async def send_error(self, error: Exception) -> None:
        """Send an error response, unless another response has begun; then the connection is closed."""
        if self._observation.status:
            return
        try:
            await error_response(error, trace_id=self._observation.trace_id).send(self.send)
        except ClientDisconnect:
            self._observation.is_aborted = True

    def end(self) -> None:
        if self._observation.is_stream:
            self._metrics.watch_streams.dec()

    def _detect_stream(self) -> None:
        """Detect whether a response that is sent in chunks is an event stream."""
        headers: Any = self._start["headers"] if self._start else ()
        if any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers):
            self._observation.is_stream = True
            self._metrics.watch_streams.inc()
