"""One connection, and how long we put up with it.

uvicorn speaks HTTP well and trusts its clients: it waits for ever for the end of a request's head, keeps any number of
headers, and never gives up on a client that does not read. Here a connection has a deadline whenever it is the client's
turn:

- to send a head (408, and the connection is closed), of bounded size and number of headers (431);
- to go on with a body it has begun (408);
- to read what is written to it: as slowly as it likes, but steadily;
- to ask again, on an idle connection.

The client's turn never includes the time in which the application thinks, and it need not send while it still reads.

What is refused is answered in the error envelope, and the connection is closed only after the client had a moment to
read it: closing at once, with its bytes still unread, would make the kernel throw our answer away.

One request of a connection and its answer, when the client leaves before the end.

How much we take from one client and how long we wait for it; and the watchman who sees to that.

Deadlines cost nothing while they are kept: they are numbers, compared by one sweep over all connections now and then.
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

from remuda.http.asgi import ClientDisconnect
from remuda.http.errors import answer_to
from remuda.http.responses import Header
from remuda.kernel.errors import Malformed, RemudaError, TooSlow, Unavailable
from remuda.kernel.randomness import Randomness


class Exchange(RequestResponseCycle):
    """A request and its answer. Who writes to a client that left is told, where uvicorn would let it write for ever."""

    def send(self, message: ASGISendEvent) -> Coroutine[Any, Any, None]:
        """Send a part of the answer, or raise ClientDisconnect."""
        if self.disconnected:
            raise ClientDisconnect
        return super().send(message)


def give_up(cycle: RequestResponseCycle | None) -> None:
    """Tell whoever still answers that the client is gone."""
    if cycle is not None and not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()


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


_NEVER = math.inf
_NO_LINGER = struct.pack("ii", 1, 0)
_SPARE_CONNECTIONS = 64
"""How many connections beyond the cap are answered before they are closed."""


class _TooFarAhead(Exception):  # noqa: N818  never leaves this module
    """The client sends more requests than may wait."""


class Connection(HttpToolsProtocol):
    """One client, with uvicorn's HTTP and our patience."""

    def __init__(self, watchman: Watchman, config: Config, server_state: ServerState) -> None:
        super().__init__(config, server_state, {})
        self._watchman, self._patience = watchman, watchman.patience
        self._deadline, self._lateness = _NEVER, ""
        self._reading = Progress(self._patience.read_stall_s)
        self._head_bytes, self._is_in_head = 0, False
        self._is_in_request = False  # its head has begun, and not all of it has arrived
        self._is_deaf = False  # nothing that still arrives matters
        self._running: RequestResponseCycle | None = None

    # What the transport tells

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a socket's transport goes both ways
        """Begin, unless there are too many already."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=self._patience.write_buffer)
        self._watchman.connections.add(self)
        self._wait(self._patience.head_s, "head_too_slow")
        excess = len(self._watchman.connections) - self._patience.connections
        if excess > _SPARE_CONNECTIONS:
            self._cut("connections")
        elif excess > 0 or self._watchman.is_stopping:
            self._refuse(Unavailable("No more connections are taken now: try again a little later."), "connections")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell every request of this connection: uvicorn tells only the last one."""
        waiting = [cycle for cycle, _ in self.pipeline]
        self.pipeline.clear()
        for cycle in (self._running, *waiting):
            give_up(cycle)
        super().connection_lost(exc)
        self._watchman.forget(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self._is_deaf:
            return
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # it is answered as if it had not asked, and nothing can follow it
            self._is_deaf = True
        except httptools.HttpParserError as error:
            self._refuse_unparsed(error.__context__)
        else:
            if self._is_in_head and self._head_bytes > self._patience.head_bytes:
                self._refuse(HeadTooLarge(self._patience), "head_too_large")

    def resume_writing(self) -> None:
        """The client, which read more slowly than we write, caught up."""
        super().resume_writing()
        self._reading.begin()

    # What the parser tells

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._is_in_request = self._is_in_head = True
        if self._is_answered():
            self._wait(self._patience.head_s, "head_too_slow")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more header: too many are not even kept until the head ends, since they need much more than they send."""
        super().on_header(name, value)
        if len(self.headers) > self._patience.headers:
            raise HeadTooLarge(self._patience)

    def on_headers_complete(self) -> None:
        """Its head is here: let it be answered."""
        self._is_in_head = False
        self._check_head()
        self._deadline = _NEVER
        super().on_headers_complete()
        self.cycle.__class__ = Exchange  # uvicorn offers no other way to bring a cycle of one's own

    def on_body(self, body: bytes) -> None:
        """A piece of its body is here."""
        super().on_body(body)
        if not self._is_answered():
            self._wait(self._patience.body_stall_s, "body_stalled")

    def on_message_complete(self) -> None:
        """All of it is here, and with it the client's turn ends."""
        self._is_in_request = False
        self._head_bytes = 0
        super().on_message_complete()
        self._deadline = _NEVER
        if self._is_answered():
            self._wait(self._patience.idle_s, "idle")

    # What the application tells

    def on_response_complete(self) -> None:
        """The answer is written: take the next request, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._is_in_head:
            self._wait(self._patience.head_s, "head_too_slow")
        elif self._is_in_request:
            self._wait(self._patience.linger_s, "body_unwanted")
        else:
            self._wait(self._patience.idle_s, "idle")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)
        if self._is_in_request:
            self._wait(self._patience.body_stall_s, "body_stalled")

    # What the server tells

    def abort(self) -> None:
        """End it at once, and let the kernel, too, forget what the client has not read."""
        self._is_deaf = True
        with contextlib.suppress(OSError):  # closed already
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()

    def break_off(self) -> None:
        """End it at once, because the server ends, and count it if the client does not have all of its answer."""
        if self.transport.get_write_buffer_size():
            self._cut("not_reading")
        else:
            self.abort()

    def check(self, now: float) -> None:
        """End the connection if its time is up."""
        if self.flow.write_paused or self.transport.is_closing():  # nothing is added to what waits for the client
            if self._reading.has_stalled(self.transport.get_write_buffer_size(), now):
                self._cut("not_reading")
            self._deadline = max(self._deadline, now + self._patience.linger_s)
        elif now > self._deadline:
            self._end_late()

    def _end_late(self) -> None:
        if self._is_deaf:
            self.abort()
        elif self._lateness == "body_stalled" and self.flow.read_paused:
            self._wait(self._patience.body_stall_s, "body_stalled")  # it is we who do not read
        elif self._lateness in {"head_too_slow", "body_stalled"}:
            limit_s = self._patience.head_s if self._is_in_head else self._patience.body_stall_s
            self._refuse(TooSlow(limit_s), self._lateness)
        else:
            self._watchman.count_cut(self._lateness)
            self._is_deaf = True
            self.transport.close()

    def _wait(self, seconds: float, lateness: str) -> None:
        self._deadline, self._lateness = self._watchman.now + seconds, lateness

    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _check_head(self) -> None:
        if len(self.pipeline) >= self._patience.pipelined:
            raise _TooFarAhead
        limit = self._patience.head_bytes
        # The bytes that came may include the body, so only where there are many the head is measured.
        if self._head_bytes > limit and len(self.url) + sum(len(n) + len(v) for n, v in self.headers) > limit:
            raise HeadTooLarge(self._patience)

    def _refuse_unparsed(self, cause: BaseException | None) -> None:
        if isinstance(cause, _TooFarAhead):
            self._cut("pipelined")
        elif isinstance(cause, HeadTooLarge):
            self._refuse(cause, "head_too_large")
        else:
            self._refuse(Malformed("This is not an HTTP/1.1 request."), "malformed")

    def _refuse(self, error: RemudaError, reason: str) -> None:
        """Say why, and close when the client has had time to read it."""
        if self._running and self._running.response_started and not self._running.response_complete:
            self._cut(reason)  # in the middle of an answer there is no place to say it
            return
        give_up(self._running)
        self._is_deaf = True
        more = self.server_state.default_headers
        self.transport.write(self._watchman.refuse(error, reason, peer=self.client, more=more))
        self.transport.write_eof()
        self._wait(self._patience.linger_s, reason)

    def _cut(self, reason: str) -> None:
        self._watchman.count_cut(reason)
        self.abort()
