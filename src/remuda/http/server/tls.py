"""TLS of the server: its certificate, its key and the authorities of client certificates, reloaded when they change.

A client certificate is optional, since users have none. One that is sent is verified by TLS up to one of the
authorities, and handed to the application in `scope["extensions"]["tls"]` (the ASGI extension for TLS), where no header
can put it. Connections that exist keep what they were made with.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from remuda.http.server.connection import Connection
from remuda.http.server.limits import ConnectionReaper
from remuda.kernel.errors import Invalid, RemudaError

_PROTOCOLS = ["http/1.1"]
_SHUTDOWN_S = 2.0
_ACCEPTED_AT_ONCE = 64
_PAUSE_S = 1.0
_RECEIVE_BYTES = 16 * 1024
"""Largest amount that is read at once. TLS keeps buffers of that size as long as the connection is open."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of the server: its certificate with the intermediate ones, its key, and authorities of clients."""

    certificate: Path
    key: Path
    client_authorities: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(filter(None, (self.certificate, self.key, self.client_authorities)))


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS of a process."""

    files: TlsFiles
    self_signed_for: tuple[str, ...] = ()
    """Hosts of the certificate that is made if there is none; no host if the operator has made it."""


def load_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the TLS settings of a server, or raise Invalid."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(_PROTOCOLS)
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        problem = f"cannot be used with the key {files.key} ({_cause(error)})"
        raise Invalid(f"The certificate {files.certificate}", problem, remedy=_REMEDY) from None
    if files.client_authorities is not None:
        try:
            context.load_verify_locations(files.client_authorities)
        except OSError as error:
            problem = f"cannot be read ({_cause(error)})"
            remedy = "name a PEM file of certificates"
            raise Invalid(f"The authorities {files.client_authorities}", problem, remedy=remedy) from None
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


_REMEDY = "name PEM files of a certificate and of its own key, without a password"


def _no_password() -> str:
    raise ValueError("the key has a password")


def _cause(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it is not PEM").replace("_", " ").lower()
    return getattr(error, "strerror", None) or str(error)


class ServerTls:
    """The present TLS settings of a server."""

    def __init__(self, files: TlsFiles) -> None:
        """Load the files, or raise Invalid."""
        self.files = files
        self.reload()

    def reload(self) -> None:
        """Load the files for new connections, or raise Invalid and keep the previous settings."""
        context = load_context(self.files)
        self.certificate = self.files.certificate.read_text(encoding="latin-1")
        """The certificate in use, as PEM, with the intermediate ones after it."""
        self.context = context


class WatchedFiles:
    """Files that are loaded again when they change."""

    def __init__(self, paths: Sequence[Path], load: Callable[[], None], *, what: str) -> None:
        """Take the function that loads the files. `what` names them in the log."""
        self._paths, self._load, self._what = paths, load, what
        self._loaded = self._state()

    def check(self) -> None:
        """Load the files if they have changed since the last check. Log the result, once for each change."""
        state = self._state()
        if state == self._loaded:
            return
        self._loaded = state
        names = [str(path) for path in self._paths]
        try:
            self._load()
        except (RemudaError, OSError, ValueError) as error:
            structlog.get_logger().error(f"{self._what} not reloaded", files=names, cause=str(error))
        else:
            structlog.get_logger().info(f"{self._what} reloaded", files=names)

    def _state(self) -> list[tuple[int, ...] | None]:
        return [_state(path) for path in self._paths]


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


class ConnectionSource(Protocol):
    """Makes connections. The handshake that each replaces counts as a connection until then."""

    def __call__(self, handshake: "Handshake | None" = None) -> Connection: ...


class Handshake:
    """A client whose connection has no TLS yet. It has the slot of a connection, and a deadline."""

    is_idle = True

    def __init__(self, reaper: ConnectionReaper) -> None:
        self._reaper = reaper
        self._deadline = reaper.now + reaper.limits.head_s
        self._reason = "handshake_failed"

    def start(self, client: socket.socket, context: ssl.SSLContext, factory: ConnectionSource) -> None:
        """Shake hands, and hand the connection over."""
        self._reaper.connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._run(client, context, factory))

    def check(self, now: float) -> None:
        if now > self._deadline:
            self._reason = "handshake_timeout"
            self.abort()

    def displace(self) -> None:
        """Close the connection because another client needs its slot."""
        self._reason = "displaced"
        self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._task.cancel()

    async def _run(self, client: socket.socket, context: ssl.SSLContext, factory: ConnectionSource) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: factory(self),
                client,
                ssl=context,
                ssl_handshake_timeout=2 * self._reaper.limits.head_s,  # its deadline is that of `check`
                ssl_shutdown_timeout=_SHUTDOWN_S,
            )
        except (OSError, asyncio.CancelledError):  # not raised again: only `abort` cancels
            self._reaper.count_closed(self._reason)
        finally:
            self._reaper.remove(self)


class TlsAcceptor:
    """Accepts clients on a listening socket, each with the TLS settings of that moment."""

    def __init__(
        self, listener: socket.socket, tls: ServerTls, factory: ConnectionSource, reaper: ConnectionReaper
    ) -> None:
        self._listener, self._tls, self._factory, self._reaper = listener, tls, factory, reaper
        self._loop = asyncio.get_running_loop()
        self._resume: asyncio.TimerHandle | None = None
        listener.settimeout(0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)  # inherited by each connection
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    async def wait_closed(self) -> None:
        """Return at once: nothing is accepted any more."""

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                structlog.get_logger().error("no connection accepted", cause=error.strerror)
                self._loop.remove_reader(self._listener)
                self._resume = self._loop.call_later(_PAUSE_S, self._loop.add_reader, self._listener, self._accept)
                return
            client.settimeout(0)
            handshake = Handshake(self._reaper)
            rejected = self._reaper.slots.take(handshake, str(address[0]))
            if rejected is None:
                handshake.start(client, self._tls.context, self._factory)
            else:  # an error response would need a handshake
                self._reaper.count_closed(rejected[0])
                client.close()
