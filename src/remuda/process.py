"""One process: the embedded store and every API on one loop, from the first start to a clean stop.

Everything it keeps is in one directory (`datadir`), which is made at the first start. No backup of the store has the
keys: they need one of their own. The address is taken before the services begin, so that they know where clients will
find them, and so that a first start that cannot have its port has done nothing yet.

It stops on SIGTERM or SIGINT, also while it still begins, which it then finishes: requests in flight are finished, then
the services end what goes on by itself in them, then the store is closed. A second signal breaks the requests off, and
a third one ends the process as if nobody had asked for any of this. After `kill -9` it starts again.

Where the process's log goes: one JSON object a line, all through one sink, whoever writes.

What is bound to the context, such as the id of the pass or of the operation on whose behalf somebody writes, is in
every line.

Python, made fit for a process that runs a store.
"""

import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import structlog
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from remuda.datadir import DataDirectory
from remuda.http.asgi import ASGIApp
from remuda.http.server.access_log import LineWriter, Observe, Sink
from remuda.http.server.connection import Patience
from remuda.http.server.health import PAGES, PROCESS, Check, Mounted, Mounts, ProcessPages, store_check
from remuda.http.server.metrics import Metrics, measure_loop_lag
from remuda.http.server.server import Address, Listener, Server, listen
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.background import Duties
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqliteStore, open_store
from remuda.version import describe


def log_to(sink: Sink) -> None:
    """Send what we log, and what libraries log through Python's own logging, to a sink."""
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
    """What structlog writes with: every level is a line."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def msg(self, line: bytes) -> None:
        self._sink.write(line)

    debug = info = warning = error = critical = exception = msg


class _Forward(logging.Handler):
    """Hands Python's own log records to ours."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info or None
        )


_SWITCH_INTERVAL_S = 0.0005


def prepare_interpreter() -> None:
    """Make Python fit for a process that runs a store; call it once, when everything is imported.

    A busy loop hands the interpreter over to the commit thread after Python's switch interval: at the default of 5 ms
    a commit waits several times as long as the disk needs. And what is loaded now lives as long as the process, so the
    garbage collector's full passes, which hold the loop, need not look at it.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()


_STDERR = 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SPARE_DESCRIPTORS = 256
"""For everything that is not a client's connection."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an operator chooses."""

    data: Path
    listen: Address
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What every service stands on."""

    store: SqliteStore
    clock: Clock
    randomness: Randomness
    sealer: Sealer
    """The one that the store seals with."""
    metrics: CollectorRegistry
    """What is counted here is shown at `/metrics`. A series is there from the moment that it is made."""
    closing: asyncio.Event
    """Set when the process begins to stop: streams end by it."""
    address: Address
    """Where the process answers once the services have begun."""
    data: DataDirectory


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """The services of a process."""

    mounted: Sequence[Mounted] = ()
    checks: Sequence[Check] = ()
    """What must hold for them before the process is ready, such as that the controllers have begun."""
    front: Callable[[ProcessPages], ASGIApp] | None = None
    """Puts something for people before the pages of the process: it is asked for all that no service is."""


Services = Callable[[Ground], AbstractAsyncContextManager[Assembled]]
"""Puts the services together. Entering starts what goes on by itself in them, such as controllers, and does not wait
for it; leaving ends that: the last request has been answered then, and the store is still open."""


class _Stop:
    """What signals ask for."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        """Set by the first one."""
        self.hurry: Callable[[], None] = lambda: None
        """Called by the second one."""


async def run(
    settings: Settings,
    *,
    announce: Callable[[Address], None],
    services: Services,
    kinds: Registry,
) -> None:
    """Run until a signal says stop. `announce` is called with the address as soon as the process answers there.

    `kinds` are what the services keep.
    """
    with contextlib.closing(LineWriter(_STDERR)) as sink:
        log_to(sink)
        with _signals() as stop:
            async with _opened(settings, kinds) as (ground, listener), services(ground) as assembled:
                await _serve(ground, settings, assembled, listener, sink, announce, stop)


async def _serve(
    ground: Ground,
    settings: Settings,
    services: Assembled,
    listener: Listener,
    sink: Sink,
    announce: Callable[[Address], None],
    stop: _Stop,
) -> None:
    metrics = Metrics(ground.metrics, [PROCESS, *(one.table for one in services.mounted)])
    server = _server(ground, settings, metrics, _app(ground, services, metrics), sink)
    duties = Duties(ground.clock)
    duties.start("loop lag", lambda: measure_loop_lag(metrics, ground.clock))
    stop.hurry = server.hurry
    try:
        address = await server.start(listener)
        prepare_interpreter()
        announce(address)
        await stop.told.wait()
    finally:
        await server.stop()
        await duties.stop()


def _app(ground: Ground, services: Assembled, metrics: Metrics) -> Mounts:
    store = ground.store
    pages = ProcessPages(
        description=describe(),
        checks=[store_check(lambda: store.integrity, lambda: store.failing), *services.checks],
        registry=metrics.registry,
        mounted=services.mounted,
    )
    front: ASGIApp = pages if services.front is None else services.front(pages)
    return Mounts(services.mounted, front, kept=PAGES)


def _server(ground: Ground, settings: Settings, metrics: Metrics, app: Mounts, sink: Sink) -> Server:
    clock, randomness = ground.clock, ground.randomness
    return Server(
        Observe(app, clock=clock, randomness=randomness, metrics=metrics, sink=sink),
        clock=clock,
        randomness=randomness,
        count_cut=metrics.count_cut,
        closing=ground.closing,
        patience=_within_descriptors(settings.patience),
    )


@asynccontextmanager
async def _opened(settings: Settings, kinds: Registry) -> AsyncIterator[tuple[Ground, Listener]]:
    randomness = SystemRandomness()
    data = DataDirectory(settings.data)
    sealer = data.prepare(randomness)
    store = open_store(data.store, kinds, sealer)
    try:
        listener = listen(settings.listen)
        with listener.socket, data.announced(f"http://{listener.address.reachable}", os.getpid()):
            yield (
                Ground(
                    store=store,
                    clock=SystemClock(),
                    randomness=randomness,
                    sealer=sealer,
                    metrics=_metrics(),
                    closing=asyncio.Event(),
                    address=listener.address,
                    data=data,
                ),
                listener,
            )
    finally:
        await store.close()


def _metrics() -> CollectorRegistry:
    metrics = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=metrics)
    return metrics


def _within_descriptors(patience: Patience) -> Patience:
    """Let the process have all the descriptors it may, and take no more connections than that is good for."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most == resource.RLIM_INFINITY:
        return patience
    return dataclasses.replace(patience, connections=max(1, min(patience.connections, most - _SPARE_DESCRIPTORS)))


@contextmanager
def _signals() -> Iterator[_Stop]:
    """Listen for signals while the block runs; the third one does what it does to any process."""
    loop = asyncio.get_running_loop()
    stop = _Stop()

    def hear() -> None:
        if stop.told.is_set():
            stop.hurry()
            ignore()
        stop.told.set()

    def ignore() -> None:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)

    for each in _SIGNALS:
        loop.add_signal_handler(each, hear)
    try:
        yield stop
    finally:
        ignore()
