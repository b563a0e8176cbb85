"""TCP server that follows a script for each connection."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


class Scripted:
    """A server that serves each connection by a script, which is told how many came before."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._numbers = itertools.count()
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def leave(self) -> None:
        """Take no more connections."""
        self._server.close()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            try:
                await reader.readuntil(b"\r\n\r\n")
                await self._script(reader, writer, next(self._numbers))
            finally:
                writer.close()
                await writer.wait_closed()


def answering(*answers: bytes) -> Script:
    """Return a script that gives each connection the next of these bytes, and the last to all that follow."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(answers[min(number, len(answers) - 1)])
        await writer.drain()

    return script
