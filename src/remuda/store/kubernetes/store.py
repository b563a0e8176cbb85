"""The Kubernetes store, put together."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import apsw

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.errors import Conflict
from remuda.kernel.sealing import Sealer
from remuda.store.background import Duties
from remuda.store.codec import Codec, codecs
from remuda.store.contract import View
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.client import ApiClient
from remuda.store.kubernetes.delivery import Delivery, Written
from remuda.store.kubernetes.errands import Errands
from remuda.store.kubernetes.garbage_collector import Collector
from remuda.store.kubernetes.informer import Informer
from remuda.store.kubernetes.journal import JournalLog
from remuda.store.kubernetes.kinds import JOURNAL
from remuda.store.kubernetes.known import Known
from remuda.store.kubernetes.login import Login, Source
from remuda.store.kubernetes.looking import Looking
from remuda.store.kubernetes.mirror import Mirror, Move
from remuda.store.kubernetes.resource_client import ResourceApi
from remuda.store.kubernetes.settings import KubernetesPorts, KubernetesSettings
from remuda.store.kubernetes.upkeep import Upkeep
from remuda.store.kubernetes.writer import Writer
from remuda.store.logs import LogPage, Record
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.change_feed import Landed
from remuda.store.readside.index import Names
from remuda.store.readside.layout import migrate
from remuda.store.readside.reader import Reader
from remuda.store.readside.reads import Reads
from remuda.store.readside.storage import Storage
from remuda.store.readside.tables import Tables
from remuda.store.readside.upkeep import send_bookmarks

ResultT = TypeVar("ResultT", bound=Resource | None)
AnyT = TypeVar("AnyT")

_CLOSING_S = 5.0
"""How long closing waits for writes that are under way."""


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
        self._ports, self._settings = ports, settings
        self._backoffs = RetryTimers(ports.clock, ports.randomness)
        self._known = Known(reader)
        self._delivery = Delivery(reader, patience_s=settings.delivery_patience_s)
        self._errands = Errands(self._backoffs)
        apis = {kind.type: ResourceApi(kind, client, namespace=settings.namespace) for kind in self.registry.kinds}
        self._writer = Writer(
            reader, self._known, apis=apis, codecs=codecs, errands=self._errands, backoffs=self._backoffs
        )
        self._log = JournalLog(
            self._known,
            self._writer,
            self._delivery,
            clock=ports.clock,
            backoffs=self._backoffs,
            errands=self._errands,
            sinks=ports.sinks,
        )
        self.upkeep = Upkeep(reader, self._log, ports.clock, settings.upkeep)
        looking = Looking(reader, self._known, apis=apis, codecs=codecs)
        self._collector = Collector(reader, self._known, self._writer, looking, self._backoffs)
        self._informers = [self._informer(api, codecs[api.kind.type]) for api in apis.values()]
        self._duties = Duties(ports.clock)
        self._writes: set[asyncio.Task[Any]] = set()

    def _informer(self, api: ResourceApi[Any], codec: Codec[Any]) -> Informer:
        reader, ports = self._reader, self._ports
        mirror = Mirror(api.kind, codec=codec, reader=reader, known=self._known, clock=ports.clock, notice=self._notice)
        return Informer(
            api,
            mirror,
            reader.feed(api.kind),
            clock=ports.clock,
            randomness=ports.randomness,
            backoffs=self._backoffs,
            silence_s=self._settings.watch_silence_s,
        )

    async def start(self) -> None:
        """Return when every kind has been listed; raise what keeps one from being listed."""
        opening = [asyncio.create_task(self._open(informer)) for informer in self._informers]
        try:
            await asyncio.gather(*opening)
        finally:
            for task in opening:
                task.cancel()
            await asyncio.gather(*opening, return_exceptions=True)
        self._duties.start("bookmarks", lambda: send_bookmarks(self._reader, self._ports.clock))
        self._duties.start("upkeep", self.upkeep.forget)
        self._duties.start("errands", self._errands.run)
        if self._settings.collects:
            self._duties.start("collector", self._collector.run)

    async def _open(self, informer: Informer) -> None:
        await informer.open(self._settings.opening_patience_s)
        self._duties.start(informer.name, informer.run)

    def _notice(self, kind: Kind[Any], changes: Sequence[Landed[Any]], moves: Sequence[Move]) -> None:
        self._collector.notice(kind, moves)
        self.upkeep.notice(changes)

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        """Return the object, asking the API server if our informer has not seen it."""
        of = self.registry.of(kind)
        return self._known.find(of, name) or await self._writer.fetch(of, name)

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        """Return the rendered object, asking the API server if our informer has not seen it."""
        if self._known.find(self.registry.of(kind), name) is None:
            return view(await self.get(kind, name))
        return await super().get_view(kind, name, view)

    async def create(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Store a new object, and keep its log records."""
        return await self._write(lambda: self._writer.create(resource), log)

    async def update(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write metadata and spec over the version that was read."""
        return await self._write(lambda: self._writer.update(resource), log)

    async def update_status(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write status over the version that was read."""
        return await self._write(lambda: self._writer.update_status(resource), log)

    async def delete(
        self,
        kind: type[ResourceT],
        name: str,
        *,
        uid: str,
        version: str | None = None,
        unused: bool = False,
        log: Sequence[Record] = (),
    ) -> ResourceT | None:
        """Request deletion. Return the marked object, or None if it is gone already."""
        of = self.registry.of(kind)
        if unused and await self.referrers(kind, name, limit=1):
            raise Conflict(of.name, name)
        return await self._write(lambda: self._writer.delete(of, name, uid=uid, version=version), log)

    async def append(self, records: Sequence[Record]) -> None:
        """Keep log records that belong to no write of an object."""
        await self._finish(self._log.append(records))

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return the log entries of a subject in the order they were written."""
        return await self._log.read(stream, subject, after=after, limit=limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        """Return the log entries of a subject, the latest first."""
        return await self._log.read_back(stream, subject, before=before, limit=limit)

    async def close(self) -> None:
        """Finish what was begun, stop following and close all connections. Closing twice is fine."""
        await self._duties.stop()
        if self._writes:
            await asyncio.wait(self._writes, timeout=_CLOSING_S)
        for write in self._writes:
            write.cancel()
        await asyncio.gather(*self._writes, return_exceptions=True)
        await self._client.close()
        self._reader.close()
        self._reader.tables.connection.close()

    async def _write(self, write: Callable[[], Awaitable[Written[ResultT]]], log: Sequence[Record]) -> ResultT:
        return await self._delivery.shown(await self._finish(self._log.around(write, log)))

    async def _finish(self, work: Coroutine[Any, Any, AnyT]) -> AnyT:
        """Do what must not be left half done, even if the caller goes away."""
        task = asyncio.create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._finished)
        return await asyncio.shield(task)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # if the caller went away, nobody else asks for it


async def open_kubernetes_store(
    source: Source,
    registry: Registry,
    sealer: Sealer,
    *,
    ports: KubernetesPorts | None = None,
    settings: KubernetesSettings | None = None,
) -> KubernetesStore:
    """Connect, list everything once, and return the store."""
    ports, settings = ports or KubernetesPorts(), settings or KubernetesSettings()
    login = Login(source)
    whole = Registry([*registry.kinds, JOURNAL])
    known = codecs(whole, sealer)
    reader = _scratch_reader(whole, known, ports=ports, settings=settings)
    store = KubernetesStore(reader, ApiClient(login, ports.clock), codecs=known, ports=ports, settings=settings)
    try:
        await store.start()
    except BaseException:
        await store.close()
        raise
    return store


def _scratch_reader(
    registry: Registry,
    codecs: Mapping[type[Resource], Codec[Any]],
    *,
    ports: KubernetesPorts,
    settings: KubernetesSettings,
) -> Reader:
    connection = apsw.Connection("")  # SQLite's scratch file: nameless, and gone with the connection
    migrate(connection)
    names = Names(connection, registry)
    names.admit_kinds()
    tables = Tables(connection)
    reader = Reader(
        registry=registry, codecs=codecs, tables=tables, names=names, clock=ports.clock, settings=settings.reader
    )
    reader.storage = Storage("the scratch file in the directory for temporary files")
    return reader
