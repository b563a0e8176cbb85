"""A client that costs little: connections that stay open, each with one request on its way."""

import asyncio
import re
from collections.abc import Sequence

__all__ = ["Load", "fetch", "request_of"]

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_END = b"\r\n\r\n"
_OK = b"HTTP/1.1 200 "


def request_of(path: str, token: str) -> bytes:
    """Return a GET as it goes over the wire."""
    lines = (f"GET {path} HTTP/1.1", "Host: bench", "Accept: */*", f"Authorization: Bearer {token}")
    return "\r\n".join((*lines, "", "")).encode()


async def fetch(port: int, request: bytes) -> bytes:
    """Return the whole answer to one request, as it came over the wire."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(_END)
    body = await reader.readexactly(_length(head))
    writer.close()
    return head + body


class Load:
    """Many connections to one server."""

    def __init__(self) -> None:
        self._connections: list[_Connection] = []
        self._left = 0
        self._answers = 0

    async def open(self, port: int, requests: Sequence[bytes]) -> None:
        """Open a connection for each of these requests, which it will send again and again."""
        loop = asyncio.get_running_loop()
        for request in requests:
            connection = _Connection(self, request)
            self._connections.append(connection)
            await loop.create_connection(connection.itself, "127.0.0.1", port)

    async def ask(self, count: int) -> None:
        """Send so many requests, and wait until all are answered."""
        self._left = self._answers = count
        for connection in self._connections:
            self.take_turn(connection)
        # A client that sleeps has to be woken, and whoever answers it pays for that: this one never sleeps.
        while self._answers:  # noqa: ASYNC110  therefore
            await asyncio.sleep(0)

    def take_turn(self, connection: "_Connection") -> None:
        """Let a connection send its request, if there are any left."""
        if self._left:
            self._left -= 1
            connection.send()

    def answered(self, connection: "_Connection") -> None:
        """Count an answer."""
        self._answers -= 1
        self.take_turn(connection)

    def close(self) -> None:
        """Leave."""
        for connection in self._connections:
            connection.transport.close()


class _Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, load: Load, request: bytes) -> None:
        self._load, self._request = load, request
        self._got = b""

    def itself(self) -> "_Connection":
        return self

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a socket's transport goes both ways
        self.transport = transport

    def send(self) -> None:
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head = self._got.find(_END)
        if head < 0:
            return
        if len(self._got) < head + len(_END) + _length(self._got[:head]):
            return
        assert self._got.startswith(_OK), self._got[:head]
        self._got = b""
        self._load.answered(self)


def _length(head: bytes) -> int:
    found = _LENGTH.search(head)
    assert found is not None, "every answer says how long it is"
    return int(found[1])
