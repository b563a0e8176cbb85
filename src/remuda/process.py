"""Process: the embedded store and all services on one event loop, from the first start to a clean stop.

The listening socket is opened before the services start, so that they know their address, and so that a first start
without a free port changes nothing. On SIGTERM or SIGINT, also during the start, requests in progress are finished,
then the services stop their background work, then the store is closed. A second signal aborts the requests, and a third
one ends the process at once. It also starts after `kill -9`.
"""

import asyncio
import contextlib
import dataclasses
import functools
import gc
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

from prometheus_client import CollectorRegistry

from remuda.code_revision import code_revision
from remuda.datadir import DataDirectory
from remuda.http.asgi import ASGIApp
from remuda.http.buffer_shares import DEFAULT_BYTES, BufferShares
from remuda.http.certificates import ClientAuthorities, RevocationMonitor, replace_lists
from remuda.http.cors import Cors
from remuda.http.page_reads import page_slots
from remuda.http.proxies import ForwardingProxies
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.record_budget import DEFAULT_RECORD_BYTES, RecordBudget
from remuda.http.request_slots import RequestSlots
from remuda.http.server.access_log import AccessLog, LineWriter, Sink
from remuda.http.server.exposition import LIMITS as METRICS_LIMITS
from remuda.http.server.exposition import PATH as METRICS_PATH
from remuda.http.server.exposition import Exposition, MetricsPage, MetricsSettings, listen_for_metrics
from remuda.http.server.health import PAGES, PROCESS, Check, Mounted, Mounts, ProcessPages, store_check
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.log import LogSettings, log_to
from remuda.http.server.metrics import Metrics, measure_loop_lag
from remuda.http.server.registry import process_registry, show_server
from remuda.http.server.self_signed import prepare_self_signed
from remuda.http.server.server import BoundSocket, HttpServer, ListenAddress, listen
from remuda.http.server.tls import ServerTls, TlsSettings, WatchedFiles
from remuda.http.watch_slots import WatchSlots
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.fair_slots import FairSlots
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.background import BackgroundTasks
from remuda.store.kinds import Registry
from remuda.store.readside.history import DEFAULT_HISTORY_BYTES
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store
from remuda.version import describe

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
    client_crl_file: Path | None = None
    """File of their revocation lists, which are replaced when it changes."""
    connection_limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    buffered_bytes: int = DEFAULT_BYTES
    """Largest memory for requests in progress and responses that are not read."""
    watches: int = 5_000
    """Largest number of open watches."""
    history_limit: int = DEFAULT_HISTORY_BYTES
    """Largest size of the history from which watches resume."""
    record_limit: int = DEFAULT_RECORD_BYTES
    """Largest size of the records that the requests of one organization add in a day."""
    cors: Cors = field(default_factory=Cors)
    rate: RateLimit = field(default_factory=RateLimit)
    """Requests of each address to pages and documents of the process."""
    forwarding: ForwardingProxies = field(default_factory=ForwardingProxies)
    """Proxies whose headers about client addresses count."""
    metrics: MetricsSettings | None = None
    """None if the metrics are not served."""
    log: LogSettings = field(default_factory=LogSettings)


@dataclass(frozen=True, kw_only=True)
class _Listeners:
    """The sockets that a process has opened before its services start."""

    clients: BoundSocket
    tls: ServerTls | None
    metrics: BoundSocket | None
    metrics_tls: ServerTls | None = None

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
    record_budget: RecordBudget
    """The budgets of records of all organizations, which all services share."""
    client_authorities: ClientAuthorities | None = None
    watch_slots: WatchSlots = field(default_factory=WatchSlots)
    """The slots of open watches, which all services share."""
    request_slots: RequestSlots = field(default_factory=RequestSlots)
    page_slots: FairSlots = field(default_factory=page_slots)
    """The slots of requests in progress, which all services share."""
    buffer_shares: BufferShares = field(default_factory=BufferShares)
    """The shares of the memory for requests and responses, which the server and all services share."""


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
    with contextlib.closing(LineWriter(_STDERR, encode=settings.log.encode)) as sink:
        log_to(sink, settings.log, SystemClock())
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
    server = _server(ports, settings, metrics, _app(ports, services, settings), sink, listeners.tls)
    tasks = BackgroundTasks(ports.clock)
    tasks.start("certificates", lambda: _watch_certificates(ports, settings, listeners))
    tasks.start("loop lag", lambda: measure_loop_lag(metrics, ports.clock))
    stop.abort = server.hurry
    try:
        async with _metrics_served(ports, settings, metrics, listeners, sink):
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
    ports: ProcessPorts, settings: Settings, metrics: Metrics, listeners: _Listeners, sink: Sink
) -> AsyncIterator[None]:
    """Serve the metrics during the block, which ends when all other requests are done: a stop can be watched."""
    if settings.metrics is None or listeners.metrics is None:
        yield
        return
    page = MetricsPage(Exposition(ports.metrics, ports.clock).rendered, token=settings.metrics.token)
    server = HttpServer(
        _access_log(page, ports, settings, metrics, sink),
        clock=ports.clock,
        randomness=ports.randomness,
        count_closed=metrics.count_closed,
        limits=METRICS_LIMITS,
        grace_s=_METRICS_GRACE_S,
        tls=listeners.metrics_tls,
    )
    try:
        await server.start(listeners.metrics)
        yield
    finally:
        await server.stop()


def _app(ports: ProcessPorts, services: ProcessServices, settings: Settings) -> Mounts:
    store = ports.store
    pages = ProcessPages(
        description=describe(),
        checks=[store_check(lambda: store.integrity, lambda: store.failing), *services.checks],
        mounted=services.mounted,
        limiter=RateLimiter(settings.rate, ports.clock),
        forwarding=settings.forwarding,
        cors=settings.cors,
    )
    front: ASGIApp = pages if services.front is None else services.front(pages)
    return Mounts(services.mounted, front, reserved=PAGES)


def _server(
    ports: ProcessPorts, settings: Settings, metrics: Metrics, app: Mounts, sink: Sink, tls: ServerTls | None
) -> HttpServer:
    clock, randomness = ports.clock, ports.randomness
    return HttpServer(
        _access_log(app, ports, settings, metrics, sink),
        clock=clock,
        randomness=randomness,
        count_closed=metrics.count_closed,
        closing=ports.closing,
        limits=_within_descriptors(settings.connection_limits),
        buffers=ports.buffer_shares,
        tls=tls,
        is_https=settings.is_https,
    )


def _access_log(app: ASGIApp, ports: ProcessPorts, settings: Settings, metrics: Metrics, sink: Sink) -> AccessLog:
    encode = settings.log.encode if settings.log.logs_requests else None
    return AccessLog(app, clock=ports.clock, randomness=ports.randomness, metrics=metrics, sink=sink, encode=encode)


async def _watch_certificates(ports: ProcessPorts, settings: Settings, listeners: _Listeners) -> None:
    """Renew a self-signed certificate in time, and load certificates again when their files change."""
    watched = _watched(ports, settings, listeners)
    revocations = RevocationMonitor(settings.client_authorities)
    while watched:
        revocations.check(ports.clock.now())
        await ports.clock.sleep(_CERTIFICATES_S)
        _prepare_certificate(settings.tls, ports.clock, ports.randomness)
        for each in watched:
            await asyncio.to_thread(each.check)  # a revocation list can be long


def _watched(ports: ProcessPorts, settings: Settings, listeners: _Listeners) -> Sequence[WatchedFiles]:
    watched = []
    if (tls := listeners.tls) is not None:
        reload = functools.partial(_reload, tls, ports.data)
        watched.append(WatchedFiles(tls.files.paths, reload, what="certificate of the server"))
    if (tls := listeners.metrics_tls) is not None:
        watched.append(WatchedFiles(tls.files.paths, tls.reload, what="certificate of the metrics"))
    authorities, path, lists = settings.client_authorities, settings.client_ca_file, settings.client_crl_file
    if authorities is not None and path is not None:
        load = functools.partial(_replace, authorities, path)
        watched.append(WatchedFiles([path], load, what="authorities of client certificates"))
        if lists is not None:  # after the authorities, which verify them
            load = functools.partial(replace_lists, authorities, lists)
            watched.append(WatchedFiles([path, lists], load, what="revocation lists of client certificates"))
    return watched


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
    maintenance = MaintenanceSettings(history_bytes=settings.history_limit)
    reader = ReaderSettings(code_revision=code_revision())
    store = open_store(data.store, kinds, sealer, settings=SqliteSettings(reader=reader, maintenance=maintenance))
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
                    buffer_shares=BufferShares(settings.buffered_bytes),
                    record_budget=RecordBudget(clock, settings.record_limit),
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
        metrics, metrics_tls = None, None
        if settings.metrics is not None:
            metrics_tls = None if settings.metrics.tls is None else ServerTls(settings.metrics.tls.files)
            metrics = listen_for_metrics(settings.metrics)
            sockets.enter_context(metrics.socket)
        yield _Listeners(clients=clients, tls=tls, metrics=metrics, metrics_tls=metrics_tls)


def _announced(data: DataDirectory, settings: Settings, listeners: _Listeners) -> AbstractContextManager[None]:
    metrics = ""
    if listeners.metrics is not None:
        scheme = "https" if listeners.metrics_tls else "http"
        metrics = f"{scheme}://{listeners.metrics.address.reachable}{METRICS_PATH}"
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
