"""One process: the embedded store and every API on one loop, from the first start to a clean stop.

Everything it keeps is in one directory that only its owner can enter: the store's file and, beside it, the file with
the sealing keys. Both are made at the first start. No backup of the store has the keys: they need one of their own.

It stops on SIGTERM or SIGINT: requests in flight are finished, then the store is closed. A second signal breaks the
requests off, and a third one ends the process as if nobody had asked for any of this. After `kill -9` it starts again.
"""

import asyncio
import contextlib
import dataclasses
import resource
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from remuda.app import prepare_interpreter, registry
from remuda.http.health import PAGES, PROCESS, Check, ProcessPages, store_check
from remuda.http.lines import LineWriter, Sink
from remuda.http.metrics import Metrics, measure_loop_lag
from remuda.http.mounts import Mounted, Mounts
from remuda.http.observe import Observe
from remuda.http.patience import Patience
from remuda.http.server import Address, Server
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import Invalid
from remuda.kernel.keyfile import create_keyring_file
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.logs import log_to
from remuda.store.duties import Duties
from remuda.store.sqlite.store import SqliteStore, open_store
from remuda.version import describe

__all__ = ["Assembled", "Ground", "Services", "Settings", "run"]

_STORE, _KEYS = "remuda.db", "keys.json"
_STDERR = 2
_PRIVATE = 0o700
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
    closing: asyncio.Event
    """Set when the process begins to stop: streams end by it."""


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """The services of a process."""

    mounted: Sequence[Mounted] = ()
    checks: Sequence[Check] = ()
    """What must hold for them before the process is ready, such as that the controllers have started."""


Services = Callable[[Ground], Assembled]
"""Puts the services together."""


def _no_services(_ground: Ground) -> Assembled:
    return Assembled()


async def run(settings: Settings, *, announce: Callable[[Address], None], services: Services = _no_services) -> None:
    """Run until a signal says stop. `announce` is called with the address as soon as the process answers there."""
    with contextlib.closing(LineWriter(_STDERR)) as sink:
        log_to(sink)
        async with _opened(settings.data) as ground:
            await _serve(ground, settings, services(ground), sink, announce)


async def _serve(
    ground: Ground, settings: Settings, services: Assembled, sink: Sink, announce: Callable[[Address], None]
) -> None:
    collectors = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=collectors)
    metrics = Metrics(collectors, [PROCESS, *(one.table for one in services.mounted)])
    server = _server(ground, settings, metrics, _app(ground, services, metrics), sink)
    duties = Duties(ground.clock)
    duties.start("loop lag", lambda: measure_loop_lag(metrics, ground.clock))
    try:
        with _signals(server) as told:
            address = await server.start(settings.listen)
            prepare_interpreter()
            announce(address)
            await told.wait()
            await server.stop()
    finally:
        await duties.stop()


def _app(ground: Ground, services: Assembled, metrics: Metrics) -> Mounts:
    store = ground.store
    pages = ProcessPages(
        description=describe(),
        checks=[store_check(lambda: store.integrity, lambda: store.failing), *services.checks],
        registry=metrics.registry,
        mounted=services.mounted,
    )
    return Mounts(services.mounted, pages, kept=PAGES)


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
async def _opened(data: Path) -> AsyncIterator[Ground]:
    randomness = SystemRandomness()
    sealer = _sealer(data, randomness)
    store = open_store(data / _STORE, registry(), sealer)
    try:
        yield Ground(store=store, clock=SystemClock(), randomness=randomness, closing=asyncio.Event())
    finally:
        await store.close()


def _sealer(data: Path, randomness: Randomness) -> Sealer:
    """Make the directory and the keys if this is the first start, and only then."""
    try:
        data.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid("--data", f"{data} cannot be made ({cause})", remedy="choose another directory") from None
    keys = data / _KEYS
    if (data / _STORE).exists() and not keys.exists():
        remedy = f"restore {keys} from its backup, because what it sealed opens with nothing else"
        raise Invalid("--data", f"{data} holds a store without its keys", remedy=remedy)
    return Sealer(create_keyring_file(keys, randomness))


def _within_descriptors(patience: Patience) -> Patience:
    """Let the process have all the descriptors it may, and take no more connections than that is good for."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most == resource.RLIM_INFINITY:
        return patience
    return dataclasses.replace(patience, connections=max(1, min(patience.connections, most - _SPARE_DESCRIPTORS)))


@contextmanager
def _signals(server: Server) -> Iterator[asyncio.Event]:
    """Listen for signals; the event says that one came."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    def hear() -> None:
        if told.is_set():
            server.hurry()
            ignore()
        told.set()

    def ignore() -> None:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)

    for each in _SIGNALS:
        loop.add_signal_handler(each, hear)
    try:
        yield told
    finally:
        ignore()
