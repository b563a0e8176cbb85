"""The Kubernetes store, put together."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import apsw
from lightkube.config.kubeconfig import KubeConfig, SingleConfig

from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import RemudaError, Unavailable, Unusable
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.codec import Codec, codecs
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.client import ApiClient
from remuda.store.kubernetes.collector import Collector
from remuda.store.kubernetes.informer import Informer
from remuda.store.kubernetes.journal import JournalLog, Sink
from remuda.store.kubernetes.kinds import JOURNAL
from remuda.store.kubernetes.login import Login
from remuda.store.kubernetes.resources import ResourceApi
from remuda.store.kubernetes.upkeep import Upkeep
from remuda.store.kubernetes.writer import Writer
from remuda.store.logs import LogPage, Record
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.feed import Landed
from remuda.store.readside.ingest import Ingest
from remuda.store.readside.layout import migrate
from remuda.store.readside.reader import Reader, ReaderSettings
from remuda.store.readside.reads import Reads
from remuda.store.readside.tables import Tables
from remuda.store.readside.terms import Names
from remuda.store.readside.upkeep import UpkeepSettings, send_bookmarks

__all__ = ["KubernetesPorts", "KubernetesSettings", "KubernetesStore", "kubeconfig", "open_kubernetes_store"]

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, kw_only=True)
class KubernetesPorts:
    """Everything outside the store that it touches, the network excepted."""

    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    """Where the log streams go that are not kept in journals."""


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """What an operator may set."""

    namespace: str = "remuda"
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    upkeep: UpkeepSettings = field(default_factory=UpkeepSettings)
    delivery_patience_s: float = 30.0
    """How long a write waits to be seen by its own informer."""
    collects: bool = True
    """Whether this process lets marked objects go that nobody refers to. One is enough; more do no harm."""


class KubernetesStore(Reads):
    """The contract on an API server. Open it with `open_kubernetes_store`, end it with `close`."""

    def __init__(
        self,
        reader: Reader,
        client: ApiClient,
        *,
        codecs: Mapping[type[Resource], Codec[Any]],
        ports: KubernetesPorts,
        settings: KubernetesSettings,
    ) -> None:
        super().__init__(reader)
        self.requests = client.requests
        """How often the API server was asked what, by verb and plural."""
        self._client = client
        self._clock = ports.clock
        apis = {kind.type: ResourceApi(kind, client, namespace=settings.namespace) for kind in self.registry.kinds}
        self._writer = Writer(reader, apis, codecs, patience_s=settings.delivery_patience_s)
        self._log = JournalLog(reader, self._writer, ports.clock, sinks=ports.sinks)
        self.upkeep = Upkeep(reader, self._log, ports.clock, settings.upkeep)
        self._collector = Collector(reader, self._writer, ports.clock, apis=apis, codecs=codecs)
        self._informers = [
            Informer(
                api,
                codec=codecs[api.kind.type],
                reader=reader,
                ingest=Ingest(reader.tables, reader.names),
                clock=ports.clock,
                randomness=ports.randomness,
                on_change=self._notice,
            )
            for api in apis.values()
        ]
        self._collects = settings.collects
        self._duties: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Return when every kind has been listed; raise what keeps one from being listed."""
        following = [asyncio.create_task(informer.run()) for informer in self._informers]
        self._duties += following
        synced = asyncio.create_task(self._synced())
        await asyncio.wait([synced, *following], return_when=asyncio.FIRST_COMPLETED)
        if not synced.done():
            synced.cancel()
            await asyncio.gather(*(task for task in following if task.done()))
        duties = [send_bookmarks(self._reader, self._clock), self.upkeep.forget()]
        duties += [self._collector.run()] if self._collects else []
        self._duties += [asyncio.create_task(duty) for duty in duties]

    def _notice(self, kind: Kind[Any], changes: Sequence[Landed[Any]]) -> None:
        self._collector.notice(kind, changes)
        self.upkeep.notice(changes)

    async def _synced(self) -> None:
        for informer in self._informers:
            await informer.synced.wait()

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        """Return the object, asking the API server if our informer has not seen it."""
        of = self.registry.of(kind)
        return self._reader.find(of, name) or await self._writer.fetch(of, name)

    async def create(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Store a new object, and keep its log records."""
        return await self._logged(lambda: self._writer.create(resource), log)

    async def update(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write metadata and spec over the version that was read."""
        return await self._logged(lambda: self._writer.update(resource), log)

    async def update_status(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write status over the version that was read."""
        return await self._logged(lambda: self._writer.update_status(resource), log)

    async def delete(
        self,
        kind: type[ResourceT],
        name: str,
        *,
        uid: str,
        version: str | None = None,
        log: Sequence[Record] = (),
    ) -> ResourceT | None:
        """Request deletion. Return the marked object, or None if it is gone already."""
        of = self.registry.of(kind)
        return await self._logged(lambda: self._writer.delete(of, name, uid=uid, version=version), log)

    async def append(self, records: Sequence[Record]) -> None:
        """Keep log records that belong to no write of an object."""
        await self._log.append(records)

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return the log entries of a subject in the order they were written."""
        return await self._log.read(stream, subject, after=after, limit=limit)

    async def close(self) -> None:
        """Stop following and close all connections."""
        for duty in self._duties:
            duty.cancel()
        await asyncio.gather(*self._duties, return_exceptions=True)
        await self._client.close()
        self._reader.tables.connection.close()

    async def _logged(self, write: Callable[[], Awaitable[ResultT]], log: Sequence[Record]) -> ResultT:
        if not log:
            return await write()
        made = await self._log.before(log)
        try:
            written = await write()
        except Unavailable:
            raise  # whether it was written is not known, so its records stay
        except RemudaError:
            await self._log.take_back(made)
            raise
        await self._log.after(log)
        return written


def kubeconfig(path: str | None = None, *, context: str | None = None) -> Callable[[], SingleConfig]:
    """Return a source that reads a kubeconfig each time it is asked: `path`, else as kubectl would find it."""

    def read() -> SingleConfig:
        config = KubeConfig.from_file(path) if path else KubeConfig.from_env()
        found = config.get(context)
        if found is None:
            raise Unusable("The kubeconfig names no current context: choose one with --context.")
        return found

    return read


async def open_kubernetes_store(
    source: Callable[[], SingleConfig],
    registry: Registry,
    sealer: Sealer,
    *,
    ports: KubernetesPorts | None = None,
    settings: KubernetesSettings | None = None,
) -> KubernetesStore:
    """Connect, list everything once, and return the store."""
    ports, settings = ports or KubernetesPorts(), settings or KubernetesSettings()
    whole = Registry([*registry.kinds, JOURNAL])
    known = codecs(whole, sealer)
    connection = apsw.Connection("")  # SQLite's scratch file: nameless, and gone with the connection
    migrate(connection)
    names = Names(connection, whole)
    names.admit_kinds()
    reader = Reader(
        registry=whole,
        codecs=known,
        tables=Tables(connection),
        names=names,
        clock=ports.clock,
        settings=settings.reader,
    )
    client = ApiClient(Login(source), ports.clock)
    store = KubernetesStore(reader, client, codecs=known, ports=ports, settings=settings)
    try:
        await store.start()
    except BaseException:
        await store.close()
        raise
    return store
