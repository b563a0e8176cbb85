"""What is seen of every request from outside: its trace id, its line in the access log, its metrics.

This is the outermost layer. It puts an `Observation` into `scope["remuda"]`, which the layers below fill in as they
find out more: the route, who asks, the error that was answered. When the answer is complete, one line is written and
the meters move. The line never holds a query string or a header's value, because either may carry a secret.

Nothing passes this layer upwards. A defect that nobody caught becomes a 500 in the error envelope, and is logged under
the trace id that the caller got. A request that is cancelled, because the server stops at once, is answered 503.

Lines of log, written without ever holding the loop.

Lines are gathered and written once per turn of the loop, many in one call. Whoever reads them may be slow: a terminal
that was stopped, a pipe into a pager. So the descriptor is asked first, and is given no more than a pipe takes at once.
What it does not take waits, up to a bound; beyond it lines are dropped, and how many is said as soon as there is room.
A slow reader thus costs lines, never an answer.
"""

import asyncio
import os
import re
import select
from datetime import datetime
from typing import Any, Protocol

import msgspec
import structlog

from remuda.http.asgi import ASGIApp, ClientDisconnect, Message, Receive, Scope, Send
from remuda.http.errors import answer_to
from remuda.http.request import Observation
from remuda.http.responses import Header
from remuda.http.server.metrics import Metrics
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import Randomness

_AT_ONCE = select.PIPE_BUF
_MOST_WAITING = 4 * 1024 * 1024
_RETRY_S = 0.05
_LAST_CHANCE_MS = 1000


class Sink(Protocol):
    """Where lines go."""

    def write(self, line: bytes) -> None:
        """Take one line, without its end; it is written soon."""
        ...


class _Dropped(msgspec.Struct, frozen=True):
    event: str
    lines: int


class LineWriter:
    """Writes lines to a file descriptor. Make it inside a running loop, and `close` it to lose nothing."""

    def __init__(self, descriptor: int, *, most_waiting: int = _MOST_WAITING) -> None:
        self._descriptor, self._most_waiting = descriptor, most_waiting
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._dropped = 0
        self._is_scheduled = False
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)

    def write(self, line: bytes) -> None:
        """Take one line, to be written at the end of this turn of the loop."""
        if len(self._waiting) > self._most_waiting:
            self._dropped += 1
            return
        if self._dropped:
            self._tell_dropped()
        self._waiting += line
        self._waiting += b"\n"
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Write what is left, as long as somebody reads it."""
        if self._dropped:
            self._tell_dropped()
        while self._waiting and self._room.poll(_LAST_CHANCE_MS):
            self._write_some()
        self._waiting.clear()

    def _flush(self) -> None:
        while self._waiting and self._room.poll(0):
            self._write_some()
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            self._loop.call_later(_RETRY_S, self._flush)

    def _write_some(self) -> None:
        try:
            written = os.write(self._descriptor, self._waiting[:_AT_ONCE])
        except OSError:  # nobody reads it any more, and there is no other place to say so
            written = len(self._waiting)
        del self._waiting[:written]

    def _tell_dropped(self) -> None:
        self._waiting += msgspec.json.encode(_Dropped("log lines dropped", self._dropped)) + b"\n"
        self._dropped = 0


_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?=-|\Z)")
_VERSION_0_LENGTH = 55
_SAMPLED = "01"
_CLIENT_GONE = 499
"""What an access log says, by custom, of a request that nobody waited for."""


class AccessLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="request", tag_field="event"):
    """One request, as the access log tells it."""

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
    cut: bool = False
    """The client left before the answer was complete."""


class Observe:
    """The outermost layer, around everything that answers."""

    def __init__(self, app: ASGIApp, *, clock: Clock, randomness: Randomness, metrics: Metrics, sink: Sink) -> None:
        self._app = app
        self._clock, self._randomness, self._metrics, self._sink = clock, randomness, metrics, sink
        self._encode = msgspec.json.Encoder().encode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and tell of it."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        trace_id, traceparent = self._trace(scope["headers"])
        seen = Observation(trace_id, self._clock.monotonic(), scope.get("client"))
        scope["remuda"] = seen
        exchange = _Exchange(seen, receive, send, traceparent, self._metrics)
        path = scope["path"]
        self._metrics.in_flight += 1
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            seen.is_cut = True
        except asyncio.CancelledError:
            # Nobody is above us who would want it: the server cancels when it is told to stop at once.
            seen.error_code = Unavailable.code
            await exchange.answer(Unavailable("The server is being stopped: try again a little later."))
        except Exception as error:  # noqa: BLE001  whatever it was, the caller gets an answer
            seen.error_code = "internal"
            structlog.get_logger().exception("request failed", trace_id=trace_id, method=scope["method"], path=path)
            await exchange.answer(error)
        finally:
            self._metrics.in_flight -= 1
            exchange.end()
            self._tell(scope["method"], path, seen)

    def _trace(self, headers: list[Header]) -> tuple[str, bytes]:
        """Return the trace's id, and the header that continues the caller's trace or begins one."""
        for name, value in headers:
            if name == b"traceparent":
                match = _TRACEPARENT.match(value)
                if match and (len(value) == _VERSION_0_LENGTH or not value.startswith(b"00")):
                    trace_id, flags = match[1].decode(), match[2].decode()
                    return trace_id, f"00-{trace_id}-{self._randomness.token_bytes(8).hex()}-{flags}".encode()
        drawn = self._randomness.token_bytes(24).hex()
        trace_id = drawn[:32]
        return trace_id, f"00-{trace_id}-{drawn[32:]}-{_SAMPLED}".encode()

    def _tell(self, method: str, path: str, seen: Observation) -> None:
        duration_s = self._clock.monotonic() - seen.started
        status = seen.status or _CLIENT_GONE
        meters = self._metrics.of(seen.service, seen.route)
        meters.count(status)
        if not seen.is_stream:
            meters.observe_duration(duration_s)
        if seen.error_code is not None:
            self._metrics.count_error(seen.error_code, seen.service)
        line = AccessLine(
            time=self._clock.now(),
            method=method,
            path=path,
            status=status,
            duration_ms=int(duration_s * 1_000_000) / 1000,  # `round` takes five times as long
            bytes=seen.bytes,
            trace_id=seen.trace_id,
            peer=seen.peer[0] if seen.peer else None,
            service=seen.service,
            route=seen.route,
            principal=seen.principal,
            error=seen.error_code,
            cut=seen.is_cut,
        )
        self._sink.write(self._encode(line))


class _Exchange:
    """The two ends of one request, with somebody listening in."""

    __slots__ = ("_metrics", "_receive", "_seen", "_send", "_start", "_traceparent")

    def __init__(self, seen: Observation, receive: Receive, send: Send, traceparent: bytes, metrics: Metrics) -> None:
        self._seen, self._receive, self._send = seen, receive, send
        self._traceparent, self._metrics = traceparent, metrics
        self._start: Message | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._seen.is_cut = True
        return message

    async def send(self, message: Message) -> None:
        seen = self._seen
        if message["type"] == "http.response.start":
            seen.status = message["status"]
            headers: list[Header] = list(message.get("headers", ()))
            headers.append((b"x-trace-id", seen.trace_id.encode()))
            headers.append((b"traceparent", self._traceparent))
            message["headers"] = headers
            self._start = message
        else:
            seen.bytes += len(message.get("body", b""))
            if message.get("more_body", False) and not seen.is_stream:
                self._note_stream()
        await self._send(message)

    async def answer(self, error: Exception) -> None:
        """Tell the caller of an error, unless another answer has begun; then uvicorn breaks it off."""
        if self._seen.status:
            return
        try:
            await answer_to(error, trace_id=self._seen.trace_id).send(self.send)
        except ClientDisconnect:
            self._seen.is_cut = True

    def end(self) -> None:
        """Close the books."""
        if self._seen.is_stream:
            self._metrics.watch_streams.dec()

    def _note_stream(self) -> None:
        """See whether this answer, which comes in pieces, is a stream of events."""
        headers: Any = self._start["headers"] if self._start else ()
        if any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers):
            self._seen.is_stream = True
            self._metrics.watch_streams.inc()
