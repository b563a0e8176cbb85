"""An HTTP client of the standard library alone: keep-alive connections to one server on the loopback interface."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Client", "Request", "Response"]

_CONNECTIONS = 32
_TIMEOUT_S = 60.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Request:
    """A request, with a body that is sent as JSON."""

    method: str
    path: str
    body: Any = None

    def encoded(self, token: str) -> bytes:
        """Return the bytes that go over the connection."""
        body = b"" if self.body is None else json.dumps(self.body).encode()
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
        if self.body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join((*lines, "", "")).encode() + body


@dataclass(frozen=True, slots=True)
class Response:
    """A response, and how long it took."""

    status: int
    body: bytes
    seconds: float

    def json(self) -> Any:
        """Return the body that was sent as JSON."""
        return json.loads(self.body)


class Client:
    """Sends requests to a server in the name of one caller."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token

    async def send(self, request: Request) -> Response:
        """Send one request over a connection of its own."""
        async with self.connected() as send:
            return await send(request)

    async def send_all(self, requests: Iterable[Request], *, connections: int = _CONNECTIONS) -> list[Response]:
        """Send requests, on each connection the next one when the last is answered; return responses in their order."""
        waiting = list(enumerate(requests))
        waiting.reverse()
        found: dict[int, Response] = {}

        async def work() -> None:
            async with self.connected() as send:
                while waiting:
                    number, request = waiting.pop()
                    found[number] = await send(request)

        await asyncio.gather(*(work() for _ in range(min(connections, len(waiting)))))
        return [found[number] for number in sorted(found)]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Callable[[Request], Awaitable[Response]]]:
        """Open a connection while the block runs; yield a function that sends a request over it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)

        async def send(request: Request) -> Response:
            encoded = request.encoded(self._token)
            began = time.perf_counter()
            writer.write(encoded)
            async with asyncio.timeout(_TIMEOUT_S):
                status, body = await _response(reader)
            return Response(status, body, time.perf_counter() - began)

        try:
            yield send
        finally:
            writer.close()


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if _CHUNKED.search(head):
        return status, await _chunks(reader)
    length = _LENGTH.search(head)
    return status, await reader.readexactly(int(length[1])) if length else b""


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while size := int(await reader.readline(), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)
