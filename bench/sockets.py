"""Clients of a process over bare sockets, and whether it still works for them."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

import msgspec

from bench.cpu import of_process

__all__ = ["CLIENTS", "Serving", "pieces", "read", "send", "until_quiet"]

CLIENTS = 32
"""How many."""
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_LOOK_S = 0.1
_QUIET_S = 0.002
"""A process that uses no more than this from one look to the next does nothing."""


class Serving(Protocol):
    """A process that serves."""

    @property
    def port(self) -> int:
        """Where it listens."""
        ...

    @property
    def token(self) -> str:
        """Whose requests it takes."""
        ...


async def send(process: Serving, requests: Iterable[bytes], clients: int = CLIENTS) -> list[bytes]:
    """Have each client send the next request when its last is answered; return the answers."""
    waiting, answers = iter(requests), list[bytes]()

    async def go() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
        for request in waiting:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            assert length is not None, head
            answers.append(await reader.readexactly(int(length[1])))
            assert head.startswith((b"HTTP/1.1 201", b"HTTP/1.1 200")), (head, answers[-1])
        writer.close()

    await asyncio.gather(*(go() for _ in range(clients)))
    return answers


async def until_quiet(pid: int) -> float:
    """Return how much CPU a process had used when it had no more to do."""
    used = of_process(pid)
    while True:
        await asyncio.sleep(_LOOK_S)
        before, used = used, of_process(pid)
        if used - before <= _QUIET_S:
            return before


async def read(process: Serving, path: str) -> Any:
    """Return a list, whole or in pieces."""
    return msgspec.json.decode(b"".join([piece async for piece in pieces(process, path)]))


async def pieces(process: Serving, path: str) -> AsyncIterator[bytes]:
    """Yield the pieces of a list; one, if it comes whole."""
    lines = (f"GET {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {process.token}", "", "")
    reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    writer.write("\r\n".join(lines).encode())
    length = _LENGTH.search(await reader.readuntil(b"\r\n\r\n"))
    if length is not None:
        yield await reader.readexactly(int(length[1]))
        writer.close()
        return
    while size := int((await reader.readline()).strip(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    writer.close()
