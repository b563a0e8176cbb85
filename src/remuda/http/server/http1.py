"""One HTTP/1.1 request and its response, as an ASGI application sees them.

The head of a response waits for the first part of the body, so that both leave in one write. If there is none when the
event loop continues, as in a stream that waits for its first event, the head leaves alone.

A long body is not copied, since many responses may share it. It is written in parts, each after the client has taken
the one before: so a client that reads nothing costs one part, whatever a transport copies.
"""

import asyncio
import math
import re
from collections.abc import Callable
from http import HTTPStatus

import structlog

from remuda.http.asgi import ASGIApp, ClientDisconnect, Message, Scope
from remuda.http.responses import WHOLE, Header

STATUS_LINES = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
NOSNIFF = b"x-content-type-options: nosniff\r\n"
_NOT_A_NAME = re.compile(rb"[^!#$%&'*+\-.^_`|~0-9a-z]")
_CONTROLS = bytes({*range(0x20), 0x7F} - {ord("\t")})
_WITHOUT_BODY = {204, 304}
_READS = {"GET", "HEAD"}
"""Methods whose requests have no body that means anything."""
_BODY_BUFFER = 64 * 1024
COPIED = 4 * 1024
"""Bytes of a body up to which it is copied, so that it leaves with the head in one buffer."""
PART = 64 * 1024
"""Bytes of a body that are written at once."""
TLS_PART = 16 * 1024
"""The same within TLS, which copies them: one record."""
_FAILED = NOSNIFF + b"content-length: 0\r\nconnection: close\r\n\r\n"


class FlowControl:
    """Flow control of a connection, in both directions."""

    __slots__ = ("_transport", "_writable", "part", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport, *, part: int = PART) -> None:
        """Take the number of bytes of a body that are written at once."""
        self._transport, self.part = transport, part
        self._writable = asyncio.Event()
        self.read_paused = self.write_paused = False

    def pause_reading(self) -> None:
        """Read no more from a client that sends faster than the application reads."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True
        self._writable.clear()

    def resume_writing(self) -> None:
        self.write_paused = False
        self._writable.set()

    async def drain(self) -> None:
        """Wait until a slow client has caught up."""
        await self._writable.wait()


_NAMES: set[bytes] = set()
"""Names that were found valid: few, since they are those of our own headers."""
_MAX_NAMES = 1_000


def header_lines(headers: list[Header]) -> bytes:
    """Return headers as they are sent, or raise ValueError for a name or value that would be read as something else."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    for name, _ in headers:
        if name not in _NAMES:
            _check_name(name)
    # A control character that is in no line break is in a value. To count them is faster than a regular expression.
    if len(lines.translate(None, _CONTROLS)) != len(lines) - 2 * len(headers):
        raise ValueError("a header value has a control character")
    return lines


def _check_name(name: bytes) -> None:
    if _NOT_A_NAME.search(name):
        raise ValueError("a header name has an invalid character")
    if len(_NAMES) < _MAX_NAMES:
        _NAMES.add(name)


class RequestCycle:
    """A request and its response. Writing to a client that has disconnected raises ClientDisconnect."""

    __slots__ = (
        *("_body", "_default_headers", "_expects_continue", "_flow", "_has_message", "_head", "_is_chunked", "_left"),
        *("_loop", "_on_complete", "_transport", "_waiter", "is_body_complete", "is_complete", "is_disconnected"),
        *("is_ending", "is_started", "keep_alive", "scope", "weight"),
    )

    def __init__(
        self,
        scope: Scope,
        transport: asyncio.Transport,
        flow: FlowControl,
        *,
        loop: asyncio.AbstractEventLoop,
        default_headers: bytes,
        keep_alive: bool,
        expects_continue: bool,
        on_complete: Callable[[], None],
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.is_started = self.is_complete = self.is_body_complete = self.is_disconnected = False
        self.is_ending = False
        """Whether the application has sent all, and the last of it is being written in parts."""
        self.weight = 0
        """Bytes that its head counts as, while it is in progress."""
        self._transport, self._flow, self._loop = transport, flow, loop
        self._default_headers, self._expects_continue, self._on_complete = (
            default_headers,
            expects_continue,
            on_complete,
        )
        self._body = bytearray()
        self._has_message = False
        self._waiter: asyncio.Future[None] | None = None
        self._head = b""
        self._is_chunked, self._left = False, 0.0

    async def run(self, app: ASGIApp) -> None:
        """Call the application. If it fails, the connection is closed, after a 500 if nothing was sent."""
        try:
            await app(self.scope, self.receive, self.send)
        except Exception:  # noqa: BLE001  no caller waits for the task
            structlog.get_logger().exception("application failed", path=self.scope["path"])
        finally:
            if not (self.is_complete or self.is_disconnected):
                if self._head or not self.is_started:
                    self._head = b""
                    self._transport.write(STATUS_LINES[500] + self._default_headers + _FAILED)
                self._transport.close()

    # Called by the connection

    def add_body(self, body: bytes) -> None:
        """Keep a part of the body for the application, unless it does not read it."""
        if self.is_started or self.scope["method"] in _READS:
            return
        self._body += body
        if len(self._body) > _BODY_BUFFER:
            self._flow.pause_reading()
        self._notify()

    def end_body(self) -> None:
        self.is_body_complete = True
        self._notify()

    def disconnect(self) -> None:
        """Tell the application that the client has disconnected, unless the response is complete."""
        if not self.is_complete:
            self.is_disconnected = True
            self._notify()

    # Called by the application

    async def receive(self) -> Message:
        """Return the next part of the body, or wait until the client has disconnected."""
        if self._expects_continue and not self._transport.is_closing():
            self._expects_continue = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not (self._has_message or self.is_disconnected or self.is_complete):
            self._flow.resume_reading()
            self._waiter = self._loop.create_future()
            await self._waiter
        self._has_message = False
        if self.is_disconnected or self.is_complete:
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body.clear()
        return {"type": "http.request", "body": body, "more_body": not self.is_body_complete}

    async def send(self, message: Message) -> None:
        """Send the head or a part of the body; wait while a slow client has not read what was sent before."""
        if self._flow.write_paused or self.is_disconnected:
            await self._wait_until_writable()
        if message["type"] == "http.response.start":
            self._start(message["status"], message["headers"])
            if WHOLE not in message:
                self._loop.call_soon(self._flush_head)
            return
        body: bytes = message.get("body", b"")
        has_more: bool = message.get("more_body", False)
        if len(body) <= COPIED or self._left < 0:
            self._write(body, has_more=has_more)
        else:
            await self._write_in_parts(body, has_more=has_more)

    def _start(self, status: int, headers: list[Header]) -> None:
        assert not self.is_started, "a response has one head"
        lines, given = header_lines(headers), dict(headers)
        self.is_started, self._expects_continue = True, False
        self._body.clear()
        framing = b"" if b"x-content-type-options" in given else NOSNIFF
        if given.get(b"connection") == b"close":
            self.keep_alive = False
        elif not self.keep_alive:
            framing += b"connection: close\r\n"
        if self.scope["method"] == "HEAD" or status in _WITHOUT_BODY:
            self._left = -1
        elif b"content-length" in given:
            self._left = int(given[b"content-length"])
        elif self.scope["http_version"] == "1.0":
            self._left = math.inf  # the end of the connection ends the body
        else:
            self._is_chunked = True
            framing += b"transfer-encoding: chunked\r\n"
        self._head = b"".join([STATUS_LINES[status], self._default_headers, lines, framing, b"\r\n"])

    def _flush_head(self) -> None:
        if self._head and not self.is_disconnected:
            self._transport.write(self._head)
        self._head = b""

    def _write(self, body: bytes, *, has_more: bool) -> None:
        if data := b"".join(self._framed(body, has_more=has_more)):
            self._transport.write(data)
        if not has_more:
            self._complete()

    async def _write_in_parts(self, body: bytes, *, has_more: bool) -> None:
        before, _, after = self._framed(body, has_more=has_more)
        self.is_ending = not has_more
        view, part = memoryview(body), self._flow.part
        self._transport.writelines([before, view[:part]])
        for start in range(part, len(view), part):
            await self._wait_until_writable()
            self._transport.write(view[start : start + part])
        if after:
            self._transport.write(after)
        if not has_more:
            self._complete()

    async def _wait_until_writable(self) -> None:
        """Wait while a slow client has not read what was written before."""
        if self._flow.write_paused and not self.is_disconnected:
            await self._flow.drain()
        if self.is_disconnected:
            raise ClientDisconnect

    def _framed(self, body: bytes, *, has_more: bool) -> tuple[bytes, bytes, bytes]:
        """Return what precedes a part of the body, the part, and what follows it."""
        assert self.is_started, "the head comes first"
        assert not self.is_complete, "the response is complete"
        head, self._head = self._head, b""
        if self._is_chunked:
            end = b"" if has_more else b"0\r\n\r\n"
            return (b"%b%x\r\n" % (head, len(body)), body, b"\r\n" + end) if body else (head, b"", end)
        if self._left < 0:
            return head, b"", b""
        self._left -= len(body)
        assert self._left >= 0, "the body is longer than its content-length"
        assert has_more or self._left in {0, math.inf}, "the body is shorter than its content-length"
        return head, body, b""

    def _complete(self) -> None:
        self.is_complete = True
        self._notify()
        if not self.keep_alive:
            self._transport.close()
        self._on_complete()

    def _notify(self) -> None:
        self._has_message = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
