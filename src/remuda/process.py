"""Process: the embedded store and all services on one event loop, from the first start to a clean stop.

The listening socket is opened before the services start, so that they know their address, and so that a first start
without a free port changes nothing. On SIGTERM or SIGINT, also during the start, requests in progress are finished,
then the services stop their background work, then the store is closed. A second signal aborts the requests, and a third
one ends the process at once. It also starts after `kill -9`. The log has one JSON object per line, with context
variables such as the id of the operation.
"""

import asyncio
import contextlib
import dataclasses
import functools
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from remuda.datadir import DataDirectory
from remuda.http.asgi import ASGIApp
from remuda.http.certificates import ClientAuthorities
from remuda.http.cors import Cors
from remuda.http.request_slots import RequestSlots
from remuda.http.server.access_log import AccessLog, LineWriter, Sink
from remuda.http.server.exposition import LIMITS as METRICS_LIMITS
from remuda.http.server.exposition import PATH as METRICS_PATH
from remuda.http.server.exposition import Exposition, MetricsPage, MetricsSettings, listen_for_metrics
from remuda.http.server.health import PAGES, PROCESS, Check, Mounted, Mounts, ProcessPages, store_check
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.metrics import Metrics, measure_loop_lag
from remuda.http.server.registry import process_registry, show_server
from remuda.http.server.self_signed import prepare_self_signed
from remuda.http.server.server import BoundSocket, HttpServer, ListenAddress, listen
from remuda.http.server.tls import ServerTls, TlsSettings, WatchedFiles
from remuda.http.watch_slots import WatchSlots
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.background import BackgroundTasks
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqliteStore, open_store
from remuda.version import describe


def log_to(sink: Sink) -> None:
    """Send our log, and that of libraries through Python's logging, to a sink."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", key="time"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_encode),
        ],
        logger_factory=lambda *_: _SinkLogger(sink),
        cache_logger_on_first_use=False,  # a cached one would outlive its sink
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Forward()], force=True)


def _encode(event: dict[str, Any], **_options: Any) -> bytes:
    return msgspec.json.encode(event, enc_hook=str)


class _SinkLogger:
    """The logger of structlog: every level writes a line."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def msg(self, line: bytes) -> None:
        self._sink.write(line)

    debug = info = warning = error = critical = exception = msg


class _Forward(logging.Handler):
    """Forwards records of Python's logging to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info or None
        )


_SWITCH_INTERVAL_S = 0.0005


def prepare_interpreter() -> None:
    """Tune Python for a process that runs a store; call it once, when everything is imported.

    With the default switch interval of 5 ms, a commit waits for the interpreter several times as long as for the disk.
    Freezing spares full collections, which block the event loop, everything that is loaded now.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()


_STDERR = 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_METRICS_GRACE_S = 1.0
_CERTIFICATES_S = 2.0
_SPARE_DESCRIPTORS = 256
"""File descriptors that are not for client connections."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Data directory, listen address, TLS, connection limits, CORS and metrics of a process."""

    data: Path
    listen: ListenAddress
    tls: TlsSettings | None = None
    """None if the process itself speaks no TLS."""
    is_https: bool = False
    """Whether clients reach the process by https, if only through a proxy."""
    is_insecure: bool = False
    """Whether clients on other machines use it without TLS."""
    client_authorities: ClientAuthorities | None = None
    """Authorities whose certificates count when a proxy passes them on."""
    client_ca_file: Path | None = None
    """File of these authorities, which are replaced when it changes."""
    connection_limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    watches: int = 5_000
    """Largest number of open watches."""
    cors: Cors = field(default_factory=Cors)
    metrics: MetricsSettings | None = None
    """None if the metrics are not served."""


@dataclass(frozen=True, kw_only=True)
class _Listeners:
    """The sockets that a process has opened before its services start."""

    clients: BoundSocket
    tls: ServerTls | None
    metrics: BoundSocket | None

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        return f"{'https' if self.tls else 'http'}://{self.clients.address.reachable}"


@dataclass(frozen=True, kw_only=True)
class ProcessPorts:
    """The dependencies of all services in a process."""

    store: SqliteStore
    clock: Clock
    randomness: Randomness
    sealer: Sealer
    metrics: CollectorRegistry
    """The metrics of the process. A series appears when it is created."""
    closing: asyncio.Event
    """Set when the process begins to stop, so that streams end."""
    address: ListenAddress
    """The address of the process once the services have started."""
    data: DataDirectory
    client_authorities: ClientAuthorities | None = None
    watch_slots: WatchSlots = field(default_factory=WatchSlots)
    """The slots of open watches, which all services share."""
    request_slots: RequestSlots = field(default_factory=RequestSlots)
    """The slots of requests in progress, which all services share."""


@dataclass(frozen=True, kw_only=True)
class ProcessServices:
    """The services of a process."""

    mounted: Sequence[Mounted] = ()
    checks: Sequence[Check] = ()
    """The readiness checks of the services, such as that the controllers have started."""
    front: Callable[[ProcessPages], ASGIApp] | None = None
    """Wraps the pages of the process, for example by the console: it handles every path outside the services."""


Services = Callable[[ProcessPorts], AbstractAsyncContextManager[ProcessServices]]
"""Builds the services. Entering starts their background work; leaving stops it, when all requests are finished."""


class _Stop:
    """The requests of signals."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.abort: Callable[[], None] = lambda: None


async def run(
    settings: Settings, *, announce: Callable[[ListenAddress], None], services: Services, kinds: Registry
) -> None:
    """Run until a signal. `announce` is called with the address as soon as the process accepts requests."""
    with contextlib.closing(LineWriter(_STDERR)) as sink:
        log_to(sink)
        with _signals() as stop:
            async with _opened(settings, kinds) as (ports, listeners), services(ports) as running:
                await _serve(ports, settings, running, listeners, sink, announce, stop)


async def _serve(
    ports: ProcessPorts,
    settings: Settings,
    services: ProcessServices,
    listeners: _Listeners,
    sink: LineWriter,
    announce: Callable[[ListenAddress], None],
    stop: _Stop,
) -> None:
    metrics = Metrics(ports.metrics, [PROCESS, *(one.table for one in services.mounted)])
    server = _server(ports, settings, metrics, _app(ports, services, settings.cors), sink, listeners.tls)
    tasks = BackgroundTasks(ports.clock)
    tasks.start("certificates", lambda: _watch_certificates(ports, settings, listeners.tls))
    tasks.start("loop lag", lambda: measure_loop_lag(metrics, ports.clock))
    stop.abort = server.hurry
    try:
        async with _metrics_served(ports, settings, metrics, listeners.metrics, sink):
            show_server(ports.metrics, server, sink)
            address = await server.start(listeners.clients)
            prepare_interpreter()
            announce(address)
            await stop.requested.wait()
            await server.stop()
    finally:
        await server.stop()
        await tasks.stop()


@asynccontextmanager
async def _metrics_served(
    ports: ProcessPorts, settings: Settings, metrics: Metrics, listener: BoundSocket | None, sink: Sink
) -> AsyncIterator[None]:
    """Serve the metrics during the block, which ends when all other requests are done: a stop can be watched."""
    if settings.metrics is None or listener is None:
        yield
        return
    page = MetricsPage(Exposition(ports.metrics, ports.clock).rendered, token=settings.metrics.token)
    server = HttpServer(
        AccessLog(page, clock=ports.clock, randomness=ports.randomness, metrics=metrics, sink=sink),
        clock=ports.clock,
        randomness=ports.randomness,
        count_closed=metrics.count_closed,
        limits=METRICS_LIMITS,
        grace_s=_METRICS_GRACE_S,
    )
    try:
        await server.start(listener)
        yield
    finally:
        await server.stop()


def _app(ports: ProcessPorts, services: ProcessServices, cors: Cors) -> Mounts:
    store = ports.store
    pages = ProcessPages(
        description=describe(),
        checks=[store_check(lambda: store.integrity, lambda: store.failing), *services.checks],
        mounted=services.mounted,
        cors=cors,
    )
    front: ASGIApp = pages if services.front is None else services.front(pages)
    return Mounts(services.mounted, front, reserved=PAGES)


def _server(
    ports: ProcessPorts, settings: Settings, metrics: Metrics, app: Mounts, sink: Sink, tls: ServerTls | None
) -> HttpServer:
    clock, randomness = ports.clock, ports.randomness
    return HttpServer(
        AccessLog(app, clock=clock, randomness=randomness, metrics=metrics, sink=sink),
        clock=clock,
        randomness=randomness,
        count_closed=metrics.count_closed,
        closing=ports.closing,
        limits=_within_descriptors(settings.connection_limits),
        tls=tls,
        is_https=settings.is_https,
    )


async def _watch_certificates(ports: ProcessPorts, settings: Settings, tls: ServerTls | None) -> None:
    """Renew a self-signed certificate in time, and load certificates again when their files change."""
    watched = []
    if tls is not None:
        reload = functools.partial(_reload, tls, ports.data)
        watched.append(WatchedFiles(tls.files.paths, reload, what="certificate of the server"))
    authorities, path = settings.client_authorities, settings.client_ca_file
    if authorities is not None and path is not None:
        load = functools.partial(_replace, authorities, path)
        watched.append(WatchedFiles([path], load, what="authorities of client certificates"))
    while watched:
        await ports.clock.sleep(_CERTIFICATES_S)
        _prepare_certificate(settings.tls, ports.clock, ports.randomness)
        for each in watched:
            each.check()


def _reload(tls: ServerTls, data: DataDirectory) -> None:
    tls.reload()
    data.announce_certificate(tls.certificate)


def _replace(authorities: ClientAuthorities, path: Path) -> None:
    authorities.replace(path.read_bytes())


def _prepare_certificate(tls: TlsSettings | None, clock: Clock, randomness: Randomness) -> None:
    """Make the self-signed certificate, or renew it, if there is to be one."""
    if tls is not None and tls.self_signed_for:
        files, hosts = tls.files, tls.self_signed_for
        prepare_self_signed(files.certificate, files.key, hosts=hosts, now=clock.now(), randomness=randomness)


@asynccontextmanager
async def _opened(settings: Settings, kinds: Registry) -> AsyncIterator[tuple[ProcessPorts, _Listeners]]:
    clock, randomness = SystemClock(), SystemRandomness()
    data = DataDirectory(settings.data)
    sealer = data.prepare(randomness, now=clock.now())
    _prepare_certificate(settings.tls, clock, randomness)
    store = open_store(data.store, kinds, sealer)
    try:
        data.check_keys(sealer)
        with _listening(settings) as listeners, _announced(data, settings, listeners):
            metrics = process_registry(store)
            yield (
                ProcessPorts(
                    store=store,
                    clock=clock,
                    randomness=randomness,
                    sealer=sealer,
                    metrics=metrics,
                    watch_slots=WatchSlots(settings.watches, metrics=metrics),
                    request_slots=RequestSlots(settings.connection_limits.connections),
                    closing=asyncio.Event(),
                    address=listeners.clients.address,
                    data=data,
                    client_authorities=settings.client_authorities,
                ),
                listeners,
            )
    finally:
        await store.close()


@contextmanager
def _listening(settings: Settings) -> Iterator[_Listeners]:
    with ExitStack() as sockets:
        tls = None if settings.tls is None else ServerTls(settings.tls.files)
        clients = listen(settings.listen)
        sockets.enter_context(clients.socket)
        metrics = None if settings.metrics is None else listen_for_metrics(settings.metrics)
        if metrics is not None:
            sockets.enter_context(metrics.socket)
        yield _Listeners(clients=clients, tls=tls, metrics=metrics)


def _announced(data: DataDirectory, settings: Settings, listeners: _Listeners) -> AbstractContextManager[None]:
    metrics = "" if listeners.metrics is None else f"http://{listeners.metrics.address.reachable}{METRICS_PATH}"
    certificate = "" if listeners.tls is None else listeners.tls.certificate
    return data.announced(
        listeners.url,
        os.getpid(),
        certificate=certificate,
        is_insecure=settings.is_insecure,
        metrics=metrics,
    )


def _within_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    """Raise the limit of file descriptors to its maximum, and limit connections accordingly."""
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
    if maximum == resource.RLIM_INFINITY:
        return limits
    return dataclasses.replace(limits, connections=max(1, min(limits.connections, maximum - _SPARE_DESCRIPTORS)))


@contextmanager
def _signals() -> Iterator[_Stop]:
    """Handle signals while the block runs; the third one has its default effect."""
    loop = asyncio.get_running_loop()
    stop = _Stop()

    def handle() -> None:
        if stop.requested.is_set():
            stop.abort()
            restore_signals()
        stop.requested.set()

    def restore_signals() -> None:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)

    for each in _SIGNALS:
        loop.add_signal_handler(each, handle)
    try:
        yield stop
    finally:
        restore_signals()
