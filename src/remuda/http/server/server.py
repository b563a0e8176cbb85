"""HTTP server: uvicorn's protocol in our own event loop, with our own start and stop.

uvicorn's server is not used: it catches signals, polls ten times a second whether to stop, and exits the process if a
port is taken.

A stop is graceful. No new connection is accepted; idle ones are closed; requests in progress are completed and their
responses read to the end; streams, which would not end by themselves, end by the event `closing`. What is not done
after a grace period, or when `hurry` is called, is cancelled with 503.
"""

import asyncio
import contextlib
import errno
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import format_datetime

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import ServerState

from remuda.http.server.connection import Connection, Patience, Watchman
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.randomness import Randomness
from remuda.store.background import Duties

_BACKLOG = 2048
_SWEEP_S = 0.5
_GRACE_S = 20.0
_CANCEL_TIMEOUT_S = 1.0
_UNSENT_BYTES = 64 * 1024
_USER_TIMEOUT_MS = 300_000
_HIGHEST_PORT = 65_535
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  only compared
_PORT = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class Address:
    """Address to listen on."""

    host: str
    port: int
    """0 lets the system choose a free port."""

    @classmethod
    def parse(cls, text: str, *, field: str = "--listen") -> "Address":
        """Parse `HOST:PORT`, with an IPv6 host in brackets."""
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise Invalid(field, "has a host with colons", remedy="put an IPv6 address in brackets, as in [::1]:8080")
        if not (colon and host):
            raise Invalid(field, "is not HOST:PORT", remedy="give both, as in 127.0.0.1:8080")
        if not (_PORT.fullmatch(port) and int(port) <= _HIGHEST_PORT):
            raise Invalid(field, "has no port between 0 and 65535", remedy="give one, as in 127.0.0.1:8080")
        return cls(host, int(port))

    @property
    def reachable(self) -> "Address":
        """The same address, or for a wildcard address the loopback address."""
        return Address(_ANY.get(self.host, self.host), self.port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class CannotListen(Unusable):
    """Raised when the server cannot listen on its address; free it, or choose another."""

    code = "cannot_listen"

    def __init__(self, address: Address, error: OSError) -> None:
        causes = {
            errno.EADDRINUSE: "is taken by another process: stop that one, or choose another port",
            errno.EACCES: "may not be used by this user: choose a port above 1023",
            errno.EADDRNOTAVAIL: "is not an address of this machine: choose one that is, such as 127.0.0.1",
        }
        unknown = f"cannot be listened on ({error.strerror or error}): check the host"
        super().__init__(f"The address {address} {causes.get(error.errno or 0, unknown)}.")


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens already: connections wait in it until a server accepts them."""

    address: Address
    socket: socket.socket


class Server:
    """HTTP server on one address, from `start` to `stop`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        clock: Clock,
        randomness: Randomness,
        count_cut: Callable[[str], None],
        closing: asyncio.Event | None = None,
        patience: Patience | None = None,
        grace_s: float = _GRACE_S,
    ) -> None:
        self.closing = closing or asyncio.Event()
        """Set when a stop begins: streams end by it."""
        self._clock, self._grace_s = clock, grace_s
        self._config = Config(
            app=app,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
        self._config.load()
        self._state = ServerState()
        self._reaper = Watchman(
            patience or Patience(), now=clock.monotonic(), randomness=randomness, count_cut=count_cut
        )
        self._background = Duties(clock)
        self._server: asyncio.Server | None = None
        self._hurry = asyncio.Event()

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._reaper.connections)

    async def start(self, where: "Address | Listener") -> Address:
        """Accept connections, and return the address with the port that the system chose, or raise CannotListen."""
        listener = where if isinstance(where, Listener) else listen(where)
        self._sweep()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._reaper, self._config, self._state), sock=listener.socket, backlog=_BACKLOG
        )
        self._background.start("connections", self._sweep_forever)
        return listener.address

    def hurry(self) -> None:
        """Cut the grace period of `stop` short: requests in progress are cancelled."""
        self._hurry.set()

    async def stop(self) -> None:
        """Accept nothing new, complete what was begun, and close every connection. It may be called twice."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        self.closing.set()
        self._reaper.is_stopping = True
        self._reaper.all_gone.clear()
        for connection in self._connections():
            connection.shutdown()
        await self._finish()
        await self._cancel_rest()
        await self._background.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CANCEL_TIMEOUT_S):
                await server.wait_closed()

    async def _finish(self) -> None:
        """Wait until every request is complete, the grace period is over, or `hurry` is called."""
        waits = [asyncio.ensure_future(wait) for wait in (self._all_complete(), self._hurry.wait())]
        await asyncio.wait(waits, timeout=self._grace_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    async def _all_complete(self) -> None:
        if self._reaper.connections:
            await self._reaper.all_gone.wait()
        if self._state.tasks:  # a client may disconnect before its request is done
            await asyncio.wait(self._state.tasks)

    async def _cancel_rest(self) -> None:
        for task in self._state.tasks:
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_CANCEL_TIMEOUT_S)
        for connection in self._connections():
            connection.break_off()

    async def _sweep_forever(self) -> None:
        while True:
            await self._clock.sleep(_SWEEP_S)
            self._sweep()

    def _sweep(self) -> None:
        date = format_datetime(self._clock.now(), usegmt=True).encode()
        self._state.default_headers = [(b"date", date)]
        self._reaper.sweep(self._clock.monotonic())

    def _connections(self) -> list[Connection]:
        return [each for each in self._reaper.connections if isinstance(each, Connection)]


def listen(address: Address) -> Listener:
    """Open a socket on an address, with a port of the system's choice for port 0, or raise CannotListen."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise CannotListen(address, error) from None
    # Every connection inherits these. A client that does not read occupies little kernel memory, and one that vanished
    # is noticed in minutes; not sooner, because the kernel also counts the time of a client that reads slowly.
    for option, value in (
        ("TCP_NODELAY", 1),
        ("TCP_NOTSENT_LOWAT", _UNSENT_BYTES),
        ("TCP_USER_TIMEOUT", _USER_TIMEOUT_MS),
    ):
        with contextlib.suppress(OSError, AttributeError):  # Linux has them all; elsewhere they only save less memory
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return Listener(Address(address.host, listener.getsockname()[1]), listener)
