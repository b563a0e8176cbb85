"""A real server on a real socket with a tiny application, for tests of what surrounds every application."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.buffer_shares import BufferShares
from remuda.http.errors import error_response
from remuda.http.request import observation_of, read_body
from remuda.http.responses import Response
from remuda.http.server.access_log import AccessLog
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.metrics import Metrics
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.http.server.tls import ServerTls
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.time_limits import TimeLimits

LOCAL = ListenAddress("127.0.0.1", 0)
BODY_LIMIT = 64 * 1024
EVENT = b"data: " + b"x" * 4096 + b"\n\n"
LONG = b"x" * 600_000


class Lines:
    """A sink that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)


class TinyApp:
    """Greets, echoes, tells at length, streams for ever, waits until it may answer, and fails."""

    def __init__(self, closing: asyncio.Event) -> None:
        self.closing = closing
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Event()
        self.streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pages = {
            "/echo": self.echo,
            "/long": self.tell,
            "/stream": self.stream,
            "/quiet": self.quiet,
            "/wait": self.wait,
            "/bug": self.bug,
            "/headers": self.show_headers,
            "/tls": self.show_tls,
        }
        await pages.get(scope["path"], self.greet)(scope, receive, send)

    async def show_headers(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Show the headers of a request whose body has arrived."""
        while (await receive()).get("more_body"):
            pass
        shown = [each.decode() for pair in scope["headers"] for each in pair]
        await Response(200, json.dumps(shown).encode()).send(send)

    async def greet(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await Response(200, b"hello").send(send)

    async def tell(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await Response(200, LONG).send(send)

    async def echo(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = observation_of(scope)
        try:
            answer = Response(200, await read_body(receive, scope["headers"], limit=BODY_LIMIT, limits=TimeLimits(5)))
        except RemudaError as error:
            seen.error_code = error.code
            answer = error_response(error, trace_id=seen.trace_id)
        await answer.send(send)

    async def stream(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Never stop talking, and never ask whether anybody listens."""
        await self._begin(send)
        try:
            while True:
                await send({"type": "http.response.body", "body": EVENT, "more_body": True})
                await asyncio.sleep(0)
        finally:
            self.streams -= 1

    async def quiet(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Say one thing, and wait until the client is gone or the server closes."""
        await self._begin(send)
        await receive()
        ends = [asyncio.ensure_future(end) for end in (receive(), self.closing.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        self.streams -= 1
        await send({"type": "http.response.body", "body": b"bye", "more_body": False})

    async def _begin(self, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
        self.streams += 1

    async def wait(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.asked.set()
        await self.may_answer.wait()
        await Response(200, b"at last").send(send)

    async def show_tls(self, scope: Scope, _receive: Receive, send: Send) -> None:
        shown = {"scheme": scope["scheme"], "extensions": scope.get("extensions")}
        await Response(200, json.dumps(shown).encode()).send(send)

    async def bug(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError("secret detail")


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A server that runs."""

    app: TinyApp
    server: HttpServer
    address: ListenAddress
    cuts: Counter[str]
    lines: Lines
    registry: CollectorRegistry

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.address.host, self.address.port)

    async def exchange(self, *sent: bytes) -> bytes:
        """Send bytes in parts, and return all that comes back until the server closes, in whichever way."""
        reader, writer = await self.dial()
        read = b""
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            for part in sent:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.01 * (len(sent) > 1))  # so that the server reads each by itself
            while chunk := await reader.read(65_536):
                read += chunk
        return read

    async def get(self, path: str, *headers: str) -> bytes:
        return await self.exchange(request(path, "Connection: close", *headers))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110  the server has no event for each of these
            await asyncio.sleep(0.01)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def body_of(answer: bytes) -> dict[str, str]:
    body: dict[str, str] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return body


def request(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: here", *headers, "", ""]).encode()


def observed(app: ASGIApp, metrics: Metrics, lines: Lines) -> AccessLog:
    return AccessLog(app, clock=SystemClock(), randomness=SystemRandomness(), metrics=metrics, sink=lines)


@asynccontextmanager
async def serving(
    limits: ConnectionLimits | None = None,
    *,
    buffers: BufferShares | None = None,
    grace_s: float = 5,
    tls: ServerTls | None = None,
    is_https: bool = False,
) -> AsyncIterator[Serving]:
    """Serve the tiny application while the block runs."""
    closing = asyncio.Event()
    app, cuts, lines, registry = TinyApp(closing), Counter[str](), Lines(), CollectorRegistry()
    metrics = Metrics(registry)

    def count_closed(reason: str) -> None:
        metrics.count_closed(reason)  # rejects a reason that has no series
        cuts[reason] += 1

    server = HttpServer(
        observed(app, metrics, lines),
        clock=SystemClock(),
        randomness=SystemRandomness(),
        count_closed=count_closed,
        closing=closing,
        limits=limits,
        buffers=buffers,
        grace_s=grace_s,
        tls=tls,
        is_https=is_https,
    )
    address = await server.start(LOCAL)
    try:
        yield Serving(app=app, server=server, address=address, cuts=cuts, lines=lines, registry=registry)
    finally:
        server.hurry()
        await server.stop()
