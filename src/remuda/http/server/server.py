"""HTTP server: it listens on one address, sweeps the deadlines of its connections, and stops gracefully.

On shutdown no new connection is accepted, idle ones are closed, requests in flight finish and their responses are sent,
and streams end by the event `closing`. After a grace period, or at a second signal, the rest is cancelled and gets 503.
"""

import asyncio
import contextlib
import errno
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import format_datetime
from ipaddress import ip_address

from remuda.http.asgi import ASGIApp
from remuda.http.buffer_shares import BufferShares
from remuda.http.server.connection import Connection, ConnectionFactory
from remuda.http.server.limits import ConnectionLimits, ConnectionReaper
from remuda.http.server.tls import Handshake, ServerTls, TlsAcceptor
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, Unusable
from remuda.kernel.randomness import Randomness
from remuda.store.background import BackgroundTasks

_BACKLOG = 2048
_SWEEP_S = 0.5
_GRACE_S = 20.0
_CLOSING_S = 1.0
_UNSENT_BYTES = 64 * 1024
_RECEIVE_BYTES = 64 * 1024
"""Largest amount that is read at once: no request is long."""
_USER_TIMEOUT_MS = 300_000
_HIGHEST_PORT = 65_535
STRICT_TRANSPORT_SECURITY = b"strict-transport-security: max-age=31536000\r\n"
"""Header of every response to clients that use https: they use nothing else for a year."""

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not listened on
_LOCALHOST = "localhost"
_PORT = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Host and port to listen on."""

    host: str
    port: int
    """0 for a free port that the system chooses."""

    @classmethod
    def parse(cls, text: str, *, field: str = "--listen") -> "ListenAddress":
        """Read `HOST:PORT`, where an IPv6 host is in brackets."""
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
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == _LOCALHOST

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for all addresses of this machine."""
        return self.host in _ANY

    @property
    def reachable(self) -> "ListenAddress":
        """An address that clients on this machine can use, also if it is the wildcard address."""
        return ListenAddress(_ANY.get(self.host, self.host), self.port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class CannotListen(Unusable):
    """Raised when the server cannot listen on its address; free it, or choose another."""

    code = "cannot_listen"

    def __init__(self, address: ListenAddress, error: OSError) -> None:
        causes = {
            errno.EADDRINUSE: "is taken by another process: stop that one, or choose another port",
            errno.EACCES: "may not be used by this user: choose a port above 1023",
            errno.EADDRNOTAVAIL: "is not an address of this machine: choose one that is, such as 127.0.0.1",
        }
        unknown = f"cannot be listened on ({error.strerror or error}): check the host"
        super().__init__(f"The address {address} {causes.get(error.errno or 0, unknown)}.")


@dataclass(frozen=True, slots=True)
class BoundSocket:
    """A listening socket. Clients that connect wait until a server accepts them."""

    address: ListenAddress
    socket: socket.socket


class HttpServer:
    """Serves HTTP on one address, from `start` to `stop`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        clock: Clock,
        randomness: Randomness,
        count_closed: Callable[[str], None],
        closing: asyncio.Event | None = None,
        limits: ConnectionLimits | None = None,
        buffers: BufferShares | None = None,
        grace_s: float = _GRACE_S,
        tls: ServerTls | None = None,
        is_https: bool = False,
    ) -> None:
        """Speak TLS, if there are settings for it. `is_https`: clients reach it by https, if only through a proxy.

        `buffers` are shared with the application.
        """
        self.closing = closing or asyncio.Event()
        """Set when stopping begins: streams end by it."""
        self._clock, self._grace_s = clock, grace_s
        self._reaper = ConnectionReaper(
            limits or ConnectionLimits(),
            now=clock.monotonic(),
            randomness=randomness,
            count_closed=count_closed,
            buffers=buffers or BufferShares(),
        )
        self._tls = tls
        headers = STRICT_TRANSPORT_SECURITY if tls or is_https else b""
        self._new_connection = ConnectionFactory(app, self._reaper, headers)
        self._tasks = BackgroundTasks(clock)
        self._server: asyncio.Server | TlsAcceptor | None = None
        self._hurry = asyncio.Event()

    @property
    def connections(self) -> int:
        return len(self._reaper.connections)

    async def start(self, address: "ListenAddress | BoundSocket") -> ListenAddress:
        """Start to serve, and return the address with the chosen port, or raise CannotListen."""
        listener = address if isinstance(address, BoundSocket) else listen(address)
        self._sweep()
        if self._tls is not None:
            self._server = TlsAcceptor(listener.socket, self._tls, self._new_connection, self._reaper)
        else:
            self._server = await asyncio.get_running_loop().create_server(
                self._new_connection, sock=listener.socket, backlog=_BACKLOG
            )
        self._tasks.start("connections", self._sweep_forever)
        return listener.address

    def hurry(self) -> None:
        """Stop at once: cancel requests in flight."""
        self._hurry.set()

    async def stop(self) -> None:
        """Accept nothing new, finish requests in flight, and close every connection. Idempotent."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        self.closing.set()
        self._reaper.is_stopping = True
        self._reaper.all_closed.clear()
        for each in list(self._reaper.connections):
            if isinstance(each, Connection):
                each.shutdown()
            elif isinstance(each, Handshake):
                each.abort()
        await self._finish()
        await self._break_off()
        await self._tasks.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await server.wait_closed()

    async def _finish(self) -> None:
        """Wait until all requests are done, the grace period is over, or `hurry` is called."""
        waits = [asyncio.ensure_future(wait) for wait in (self._all_done(), self._hurry.wait())]
        await asyncio.wait(waits, timeout=self._grace_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    async def _all_done(self) -> None:
        if self._reaper.connections:
            await self._reaper.all_closed.wait()
        if self._new_connection.tasks:  # a client may disconnect before its request is done
            await asyncio.wait(self._new_connection.tasks)

    async def _break_off(self) -> None:
        for task in self._new_connection.tasks:
            task.cancel()
        if self._new_connection.tasks:
            await asyncio.wait(self._new_connection.tasks, timeout=_CLOSING_S)
        for connection in self._connections():
            connection.close_now()

    async def _sweep_forever(self) -> None:
        while True:
            await self._clock.sleep(_SWEEP_S)
            self._sweep()

    def _sweep(self) -> None:
        self._new_connection.set_date(format_datetime(self._clock.now(), usegmt=True).encode())
        self._reaper.sweep(self._clock.monotonic())

    def _connections(self) -> list[Connection]:
        return [each for each in self._reaper.connections if isinstance(each, Connection)]


def listen(address: ListenAddress) -> BoundSocket:
    """Listen on an address, on a port that the system chooses if it is 0, or raise CannotListen."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise CannotListen(address, error) from None
    # Every connection inherits these. A client that does not read costs the kernel little, and one that vanished is
    # noticed in minutes; not sooner, because the kernel also counts the time of a client that reads slowly.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
    for option, value in (
        ("TCP_NODELAY", 1),
        ("TCP_NOTSENT_LOWAT", _UNSENT_BYTES),
        ("TCP_USER_TIMEOUT", _USER_TIMEOUT_MS),
    ):
        with contextlib.suppress(OSError, AttributeError):  # optional: only Linux has them all
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return BoundSocket(ListenAddress(address.host, listener.getsockname()[1]), listener)
