"""Kubernetes store: the implementation of the store contract on an API server, its settings and its maintenance."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import apsw

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import Conflict, NotFound, OutcomeUnknown, RemudaError, TooManyObjects, Unavailable
from remuda.kernel.locks import KeyedLock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.background import BackgroundTasks
from remuda.store.codec import Codec, codecs
from remuda.store.contract import View
from remuda.store.kinds import Kind, ObjectLimit, Registry
from remuda.store.kubernetes.client import ApiClient, Login, Source
from remuda.store.kubernetes.garbage_collector import GarbageCollector
from remuda.store.kubernetes.informer import Informer
from remuda.store.kubernetes.journal import JournalLog, Sink
from remuda.store.kubernetes.kinds import JOURNAL
from remuda.store.kubernetes.mirror import InformerCache, Mirror, StateChange
from remuda.store.kubernetes.references import ReferrerReader
from remuda.store.kubernetes.resource_client import ResourceApi
from remuda.store.kubernetes.writer import DeliveryBarrier, RetryQueue, Writer, Written
from remuda.store.logs import LogPage, Record
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.change_feed import CommittedChange
from remuda.store.readside.history import HistorySize, change_bytes
from remuda.store.readside.index import Names
from remuda.store.readside.reader import Reader, ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings, Reads, send_bookmarks
from remuda.store.readside.sql import Storage, migrate
from remuda.store.readside.tables import ADDED, Tables
from remuda.store.validation import check_object_limit


@dataclass(frozen=True, kw_only=True)
class KubernetesPorts:
    """Everything outside the store that it uses, except the network."""

    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    """Destinations of the log streams that are not stored in journals."""


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """Namespace and timeouts of the store on a Kubernetes API server."""

    namespace: str = "remuda"
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    maintenance: MaintenanceSettings = field(default_factory=MaintenanceSettings)
    delivery_timeout_s: float = 30.0
    """Time a write waits until its own informer has seen it."""
    opening_timeout_s: float = 60.0
    """Time that opening waits for a server that does not respond."""
    watch_silence_s: float = 90.0
    """Time without an event after which a watch counts as dead. A server sends one about every minute."""
    collects_garbage: bool = True
    """Whether this process runs the garbage collector. One is enough; more do no harm."""


_SLICE_ROWS = 200


class TableMaintenance:
    """The recurring work of one open store: compaction of the tables, retention of journals."""

    def __init__(self, reader: Reader, log: JournalLog, clock: Clock, settings: MaintenanceSettings) -> None:
        self._reader, self._log, self._clock = reader, log, clock
        self._settings = settings
        self._floor = 0
        self._changes = 0
        self._history = HistorySize(settings.history_bytes)
        self._milestones: deque[int] = deque(maxlen=settings.history_changes // _SLICE_ROWS + 1)
        """The version of every n-th change: history before the oldest is too much."""

    def on_changes(self, changes: Sequence[CommittedChange[Any]]) -> None:
        for change in changes:
            self._floor = min(self._floor, change.version - 1)  # a kind that lags behind: compact there again
            self._changes += 1
            self._history.add(change.version, change_bytes(change.weight, change.weight if change.before else None))
            if self._changes % _SLICE_ROWS == 0:
                self._milestones.append(change.version)
        while self._compact(self._history.floor()):
            pass

    async def run(self) -> None:
        """Compact history and delete old journals, until stopped. A server that does not respond only delays it."""
        while True:
            await self._clock.sleep(self._settings.interval_s)
            try:
                await self.compact()
                await self._log.trim(self._settings.retention)
            except RemudaError:
                continue

    async def compact(self) -> None:
        """Remove the history that no watch can read any more."""
        oldest = (self._clock.now() - self._settings.history_age).timestamp()
        is_full = len(self._milestones) == self._milestones.maxlen
        too_many = self._milestones[0] if is_full else 0
        while self._compact(too_many, oldest=oldest):
            await self._clock.sleep(0)

    def _compact(self, upto: int, *, oldest: float = 0.0) -> bool:
        """Remove the next history up to a version, or older than a time; return whether there was any."""
        tables = self._reader.tables
        if max(upto, oldest) <= 0:
            return False
        floor = max(
            tables.version_at(oldest, after=self._floor, limit=_SLICE_ROWS),
            tables.version_upto(upto, after=self._floor, limit=_SLICE_ROWS),
        )
        if floor <= self._floor:
            return False
        with tables.connection:
            tables.compact(after=self._floor, upto=floor, limit=2 * _SLICE_ROWS)
        self._floor = floor
        self._history.drop(floor)
        for feed in self._reader.feeds():
            feed.compact(floor)
        return True


ResultT = TypeVar("ResultT", bound=Resource | None)
AnyT = TypeVar("AnyT")

_CLOSING_S = 5.0


class KubernetesStore(Reads):
    """The store contract on an API server. Open it with `open_kubernetes_store`, end it with `close`."""

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
        """Number of requests to the API server, by verb and plural."""
        self._client = client
        self._ports, self._settings = ports, settings
        self._backoffs = RetryTimers(ports.clock, ports.randomness)
        self._known = InformerCache(reader)
        self._barrier = DeliveryBarrier(reader, timeout_s=settings.delivery_timeout_s)
        self._retry_queue = RetryQueue(self._backoffs)
        apis = {kind.type: ResourceApi(kind, client, namespace=settings.namespace) for kind in self.registry.kinds}
        self._writer = Writer(
            reader, self._known, apis=apis, codecs=codecs, retry_queue=self._retry_queue, backoffs=self._backoffs
        )
        self._log = JournalLog(
            self._known,
            self._writer,
            self._barrier,
            clock=ports.clock,
            backoffs=self._backoffs,
            retry_queue=self._retry_queue,
            sinks=ports.sinks,
        )
        self.maintenance = TableMaintenance(reader, self._log, ports.clock, settings.maintenance)
        referrer_reader = ReferrerReader(reader, self._known, apis=apis, codecs=codecs)
        self._collector = GarbageCollector(reader, self._known, self._writer, referrer_reader, self._backoffs)
        self._informers = [self._informer(api, codecs[api.kind.type]) for api in apis.values()]
        self._tasks = BackgroundTasks(ports.clock)
        self._writes: set[asyncio.Task[Any]] = set()
        self._creating = KeyedLock()

    def _informer(self, api: ResourceApi[Any], codec: Codec[Any]) -> Informer:
        reader, ports = self._reader, self._ports
        mirror = Mirror(
            api.kind, codec=codec, reader=reader, known=self._known, clock=ports.clock, on_changes=self._on_changes
        )
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
        """Return when every kind has been listed; raise the error that prevents it."""
        opening = [asyncio.create_task(self._open(informer)) for informer in self._informers]
        try:
            await asyncio.gather(*opening)
        finally:
            for task in opening:
                task.cancel()
            await asyncio.gather(*opening, return_exceptions=True)
        self._tasks.start("bookmarks", lambda: send_bookmarks(self._reader, self._ports.clock))
        self._tasks.start("maintenance", self.maintenance.run)
        self._tasks.start("retries", self._retry_queue.run)
        if self._settings.collects_garbage:
            self._tasks.start("collector", self._collector.run)

    async def _open(self, informer: Informer) -> None:
        await informer.open(self._settings.opening_timeout_s)
        self._tasks.start(informer.name, informer.run)

    def _on_changes(
        self, kind: Kind[Any], changes: Sequence[CommittedChange[Any]], state_changes: Sequence[StateChange]
    ) -> None:
        self._collector.on_changes(kind, state_changes)
        self.maintenance.on_changes(changes)

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        """Return the object, reading it from the API server if our informer does not have it."""
        of = self.registry.of(kind)
        return self._known.find(of, name) or await self._writer.fetch(of, name)

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        """Return the rendered object, reading it from the API server if our informer does not have it."""
        if self._known.find(self.registry.of(kind), name) is None:
            return view(await self.get(kind, name))
        return await super().get_view(kind, name, view)

    async def create(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        limit = self.registry.object_limit(self.registry.of(type(resource)), resource)
        if limit is None:
            return await self._write(lambda: self._writer.create(resource), log)
        return await self._finish(self._create_counted(resource, limit, log))

    async def _create_counted(self, resource: ResourceT, limit: ObjectLimit, log: Sequence[Record]) -> ResourceT:
        """Create an object within its limit, one of a scope after the other in this process."""
        kind = self.registry.of(type(resource))
        async with self._creating.acquire(f"{kind.qualified} {limit.value}"):
            if self._known.find(kind, resource.name) is None:
                check_object_limit(self.registry, kind, resource, self._reader.count_labelled)
            return await self._write(lambda: self._create_within_limit(resource, limit), log)

    async def _create_within_limit(self, resource: ResourceT, limit: ObjectLimit) -> Written[ResourceT]:
        """Create an object, and delete it again if other processes have reached the limit before it.

        All processes see the creates of a kind in the same order, so of those that race for the last place the first
        keeps it. Until the others are deleted there are at most as many too many as are being created.
        """
        written = await self._writer.create(resource)

        async def confirm() -> None:
            await self._barrier.wait(written)
            earlier = self._count_earlier(written, limit)
            try:
                check_object_limit(self.registry, written.kind, resource, lambda *_: earlier)
            except TooManyObjects:
                with suppress(NotFound):
                    await self._writer.delete(written.kind, resource.name, uid=written.resource.uid, version=None)
                raise

        try:
            await confirm()
        except Unavailable as error:
            self._retry_queue.add(f"check the limit of {written.kind.name} {resource.name}", confirm)
            raise OutcomeUnknown(f"the check of the limit of {written.kind.name} {resource.name}") from error
        return written

    def _count_earlier(self, created: Written[ResourceT], limit: ObjectLimit) -> int:
        """Return the number of other objects in a scope, without those that are known to be created later."""
        kind, reader, own = created.kind, self._reader, created.resource
        with reader.storage:
            count = reader.count_labelled(kind, limit.label, limit.value, limit.most + _SLICE_ROWS)
            if count <= limit.most:
                return count - 1
            later = reader.tables.changes(reader.names.kind(kind), after=int(own.version), limit=_SLICE_ROWS)
            added = {change.name for change in later if change.change == ADDED and change.name != own.name}
            found = [reader.find(kind, name) for name in added]
        in_scope = [each for each in found if each and each.metadata.labels.get(limit.label) == limit.value]
        return count - 1 - len(in_scope)

    async def update(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        return await self._write(lambda: self._writer.update(resource), log)

    async def update_status(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
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
        """Request deletion. Return the object that is being deleted, or None if it was removed at once."""
        of = self.registry.of(kind)
        if unused and await self.referrers(kind, name, limit=1):
            raise Conflict(of.name, name)
        return await self._write(lambda: self._writer.delete(of, name, uid=uid, version=version), log)

    async def append(self, records: Sequence[Record]) -> None:
        await self._finish(self._log.append(records))

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self._log.read(stream, subject, after=after, limit=limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        return await self._log.read_back(stream, subject, before=before, limit=limit)

    async def close(self) -> None:
        """Finish pending writes, stop the informers and close all connections. Closing twice is allowed."""
        await self._tasks.stop()
        if self._writes:
            await asyncio.wait(self._writes, timeout=_CLOSING_S)
        for write in self._writes:
            write.cancel()
        await asyncio.gather(*self._writes, return_exceptions=True)
        await self._client.close()
        self._reader.close()
        self._reader.tables.connection.close()

    async def _write(self, write: Callable[[], Awaitable[Written[ResultT]]], log: Sequence[Record]) -> ResultT:
        return await self._barrier.wait(await self._finish(self._log.around(write, log)))

    async def _finish(self, work: Coroutine[Any, Any, AnyT]) -> AnyT:
        """Complete work that must not be left half done, even if the caller is cancelled."""
        task = asyncio.create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._finished)
        return await asyncio.shield(task)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # a cancelled caller does not retrieve it


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
    all_kinds = Registry([*registry.kinds, JOURNAL], limits=registry.limits)
    known = codecs(all_kinds, sealer)
    reader = _temporary_reader(all_kinds, known, ports=ports, settings=settings)
    store = KubernetesStore(
        reader, ApiClient(login, ports.clock, ports.randomness), codecs=known, ports=ports, settings=settings
    )
    try:
        await store.start()
    except BaseException:
        await store.close()
        raise
    return store


def _temporary_reader(
    registry: Registry,
    codecs: Mapping[type[Resource], Codec[Any]],
    *,
    ports: KubernetesPorts,
    settings: KubernetesSettings,
) -> Reader:
    connection = apsw.Connection("")  # a temporary file, deleted with the connection
    migrate(connection)
    names = Names(connection, registry)
    names.admit_kinds()
    tables = Tables(connection)
    reader = Reader(
        registry=registry, codecs=codecs, tables=tables, names=names, clock=ports.clock, settings=settings.reader
    )
    reader.storage = Storage("the temporary file of the Kubernetes store")
    return reader
