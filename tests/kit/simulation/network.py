"""The network of a simulated machine: whoever speaks HTTP over it does so with the real client and the real server.

::

    with SimNetwork(world.loop) as network:
        await Server(app, …).start(network.listener(1))
        async with Client("http://127.0.0.1:1", …) as client:
            …

Bytes arrive in order, in pieces, when the seed lets them. Who connects where nobody listens is refused, and what one
end closes ends at the other after all that was written before. There is no limit to what is on its way.
"""

import asyncio
import itertools
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Self, cast

from remuda.http.server.server import BoundSocket, ListenAddress
from tests.kit.simulation.loop import SimLoop

HOST = "127.0.0.1"

Protocols = Callable[[], asyncio.Protocol]


class SimNetwork:
    """Connections between those who share a loop."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._listening: dict[int, Protocols] = {}
        self._ports = itertools.count(50_000)
        self._silence = os.pipe()
        """What is never readable, for those who ask the system whether there is anything to read."""

    def __enter__(self) -> Self:
        vars(self._loop).update(create_server=self._create_server, create_connection=self._create_connection)
        return self

    def __exit__(self, *_: object) -> None:
        for name in ("create_server", "create_connection"):
            del vars(self._loop)[name]
        for handle in self._silence:
            os.close(handle)

    def listener(self, port: int) -> BoundSocket:
        """Return an address to serve on."""
        transport = _Socket((HOST, port), None, -1)
        return BoundSocket(ListenAddress(HOST, port), cast("socket.socket", transport))

    def url(self, port: int) -> str:
        """Return how a client calls who serves there."""
        return f"http://{HOST}:{port}"

    async def _create_server(self, protocols: Protocols, *, sock: "_Socket", **_: Any) -> "_Server":
        port = sock.getsockname()[1]
        assert port not in self._listening, f"somebody listens at {port} already"
        self._listening[port] = protocols
        return _Server(lambda: self._listening.pop(port, None))

    async def _create_connection(
        self, protocols: Protocols, host: str, port: int, **_: Any
    ) -> tuple["_End", asyncio.Protocol]:
        await asyncio.sleep(0)
        if host != HOST or port not in self._listening:
            raise ConnectionRefusedError(f"nobody listens at {host}:{port}")
        farm, there, silence = (HOST, next(self._ports)), (HOST, port), self._silence[0]
        mine, theirs = _End(self._loop, farm, there, silence), _End(self._loop, there, farm, silence)
        mine.join(theirs)
        theirs.join(mine)
        theirs.begin(self._listening[port]())
        return mine, mine.begin(protocols())


class _Server:
    """What `asyncio.Server` is asked to do."""

    def __init__(self, close: Callable[[], object]) -> None:
        self.close = close

    async def wait_closed(self) -> None:
        """Nobody waits: who is connected stays so."""


class _Socket:
    """What is asked of the socket of a transport."""

    family = socket.AF_INET

    def __init__(self, here: tuple[str, int], there: tuple[str, int] | None, handle: int) -> None:
        self._here, self._there, self._handle = here, there, handle

    def getsockname(self) -> tuple[str, int]:
        return self._here

    def getpeername(self) -> tuple[str, int] | None:
        return self._there

    def setsockopt(self, *_: object) -> None:
        """Nothing that can be set matters."""

    def fileno(self) -> int:
        """Return what tells whether there is anything to read: less than nothing, if there is."""
        return self._handle

    def become_readable(self) -> None:
        self._handle = -1


class _End(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, loop: SimLoop, here: tuple[str, int], there: tuple[str, int], silence: int) -> None:
        self._socket = _Socket(here, there, silence)
        super().__init__({"socket": self._socket, "sockname": here, "peername": there})
        self._loop = loop
        self._arrived: deque[bytes] = deque()
        self._is_ended = self._is_told_of_the_end = False
        self._is_paused = self._is_due = self._is_closing = False

    def join(self, other: "_End") -> None:
        self._other = other

    def begin(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        self._protocol = protocol
        protocol.connection_made(self)
        return protocol

    # What the protocol does

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data and not self._is_closing:
            self._other._arrived.append(bytes(data))
            self._other._wake()

    def write_eof(self) -> None:
        self._other._is_ended = True
        self._other._socket.become_readable()
        self._other._wake()

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.write_eof()
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._wake()

    def is_reading(self) -> bool:
        return not self._is_paused

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no limit."""

    # What arrives

    def _wake(self) -> None:
        """Let the protocol have what is there: all at once, so that nothing overtakes anything."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._is_due = False
        if self._is_paused or self._is_closing:
            return
        if self._arrived:
            data = b"".join(self._arrived)
            self._arrived.clear()
            self._protocol.data_received(data)
            if self._is_ended:
                self._wake()
        elif self._is_ended and not self._is_told_of_the_end:
            self._is_told_of_the_end = True
            if not self._protocol.eof_received():
                self.close()
