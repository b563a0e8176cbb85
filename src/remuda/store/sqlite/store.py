"""SQLite store: the implementation of the store contract on one file.

When a file is opened, the kinds of the registry get their numbers, and indexes whose declaration changed are rebuilt.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import structlog

from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import StoreClosed
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.kernel.sealing import Sealer
from remuda.store.background import BackgroundTasks
from remuda.store.codec import Codec, codecs
from remuda.store.contract import Rendering
from remuda.store.kinds import Kind, Registry
from remuda.store.logs import LogPage, Record, StreamEntry, StreamPage
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.history import HistorySize
from remuda.store.readside.index import Names, index_entries
from remuda.store.readside.reader import Reader, ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings, Reads, send_bookmarks
from remuda.store.readside.tables import Tables
from remuda.store.sqlite import rules
from remuda.store.sqlite.backup import copy_store
from remuda.store.sqlite.batch import WriteSide
from remuda.store.sqlite.executor import Executor, ThreadExecutor, run_in
from remuda.store.sqlite.file import OpenFile, open_file, opening_error
from remuda.store.sqlite.log_tables import LogTables
from remuda.store.sqlite.maintenance import Integrity, Maintenance, check_integrity, measure_history
from remuda.store.sqlite.renderings import RenderingWriter
from remuda.store.sqlite.writer import Writer
from remuda.store.validation import check_resource

_REBUILD_STEP = 500


def admit_kinds(tables: Tables, names: Names, codecs: Mapping[type[Resource], Codec[Any]]) -> None:
    """Assign numbers to the kinds, and rebuild the entries of those with changed indexes or references."""
    with tables.connection:
        for kind in names.admit_kinds():
            _rebuild(tables, names, kind, codecs[kind.type])


def _rebuild(tables: Tables, names: Names, kind: Kind[Any], codec: Codec[Any]) -> None:
    number = names.kind(kind)
    for index in names.indexes_of(number):
        tables.clear_index(index)
    after = ""
    while page := tables.names(number, after=after, limit=_REBUILD_STEP):
        for name in page:
            row = tables.find(number, name)
            assert row is not None, "a name in the objects table has a document"
            entries = index_entries(kind, codec.decode(row.document, name))
            tables.add_entries(name, names.indexed(number, sorted(entries)))
        after = page[-1]


@dataclass(frozen=True, kw_only=True)
class SqlitePorts:
    """Everything outside the store that it uses."""

    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    commits: Callable[[], Executor] = lambda: ThreadExecutor("remuda-commit")
    background: Callable[[], Executor] = lambda: ThreadExecutor("remuda-background", idle=True)
    vfs: str | None = None
    """The SQLite file system: the default one unless a test passes its own."""


@dataclass(frozen=True, kw_only=True)
class SqliteSettings:
    """Settings of the readers and of the maintenance."""

    reader: ReaderSettings = field(default_factory=ReaderSettings)
    maintenance: MaintenanceSettings = field(default_factory=MaintenanceSettings)


class SqliteStore(Reads):
    """The store contract on one file. Open it with `open_store`, end it with `close`."""

    def __init__(self, file: OpenFile, side: WriteSide, *, ports: SqlitePorts, settings: SqliteSettings) -> None:
        super().__init__(side.reader)
        horizon = side.tables.horizon()  # may fail, so it comes before executors are started
        self.integrity: Integrity = "sound" if file.was_clean else "unchecked"
        self._file = file
        self._logs = LogTables(file.reader)
        self._commits, self._background = ports.commits(), ports.background()
        self._writer = Writer(side, horizon, executor=self._commits, clock=ports.clock, path=str(file.path))
        self.maintenance = Maintenance(side, self._writer, clock=ports.clock, settings=settings.maintenance)
        self._is_closed = False
        self._tasks = BackgroundTasks(ports.clock)
        self._renderings = RenderingWriter(self._writer, ports.clock)
        if settings.reader.code_revision:
            self._tasks.start("renderings", self._renderings.run)
        self._tasks.start("bookmarks", lambda: send_bookmarks(side.reader, ports.clock))
        self._tasks.start("maintenance", self.maintenance.run)
        self._tasks.start("history", lambda: measure_history(file, self._background, side, self._writer, ports.clock))
        if not file.was_clean:
            self._tasks.start("integrity", lambda: check_integrity(file, self._background, self._report))

    @property
    def failing(self) -> Mapping[str, str]:
        return self._tasks.failing

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def pending_writes(self) -> int:
        """Number of writes that are not durable yet."""
        return self._writer.pending

    async def create(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        kind = self.registry.of(type(resource))
        check_resource(kind, resource)
        return await self._writer.submit(lambda batch: rules.create(batch, kind, resource, log))

    async def update(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        kind = self.registry.of(type(resource))
        return await self._writer.submit(lambda batch: rules.update(batch, kind, resource, log))

    async def update_status(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        kind = self.registry.of(type(resource))
        return await self._writer.submit(lambda batch: rules.update_status(batch, kind, resource, log))

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
        outcome = await self._writer.submit(
            lambda batch: rules.delete(batch, of, name, uid, version, log, unused=unused)
        )
        return outcome()

    def store_renderings(self, kind: type[Resource], form: str, renderings: Sequence[Rendering]) -> None:
        if self._reader.settings.code_revision:
            number = self._reader.names.kind(self.registry.of(kind))
            self._renderings.add(number, self._reader.stored_form(form), renderings)

    async def append(self, records: Sequence[Record]) -> None:
        await self._writer.submit(lambda batch: batch.log(records))

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        with self._reader.storage:
            return self._logs.read(stream, subject, after=after, limit=limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        with self._reader.storage:
            return self._logs.read_back(stream, subject, before=before, limit=limit)

    async def read_stream(self, stream: str, *, after: int) -> StreamPage:
        with self._reader.storage:
            return self._logs.read_stream(stream, after=after)

    async def entry_at(self, stream: str, position: int) -> StreamEntry | None:
        with self._reader.storage:
            return self._logs.entry_at(stream, position)

    async def newest_position(self) -> int:
        with self._reader.storage:
            return self._logs.newest_position()

    async def back_up(self, target: Path) -> None:
        """Write a consistent copy of the store to `target` while it stays in use."""
        if self._is_closed:
            raise StoreClosed(str(self._file.path))
        await run_in(self._background, lambda: copy_store(self._file.connect, target))

    async def close(self) -> None:
        """Finish pending writes, accept no new ones, and close the file. Closing twice is allowed."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._tasks.stop()
        await self._renderings.flush()
        await self._writer.close()
        self._reader.close()
        for executor in (self._commits, self._background):
            await run_in(executor, lambda: None)  # wait here, so that closing it does not block the event loop
            executor.close()
        self._file.close(is_sound=self.integrity == "sound")

    def _report(self, integrity: Integrity, damage: str) -> None:
        self.integrity = integrity
        if damage:
            structlog.get_logger().error("store damaged", path=str(self._file.path), damage=damage)


def open_store(
    path: Path,
    registry: Registry,
    sealer: Sealer,
    *,
    ports: SqlitePorts | None = None,
    settings: SqliteSettings | None = None,
) -> SqliteStore:
    """Open or create the store in `path`, on a running event loop, or raise the Unusable error that says why not."""
    ports, settings = ports or SqlitePorts(), settings or SqliteSettings()
    file = open_file(path, vfs=ports.vfs)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(file.abandon)
        try:
            side = _write_side(file, registry, codecs(registry, sealer), ports=ports, settings=settings)
            store = SqliteStore(file, side, ports=ports, settings=settings)
        except apsw.Error as error:
            raise opening_error(path, error) from None
        on_failure.pop_all()
        return store


def _write_side(
    file: OpenFile,
    registry: Registry,
    codecs: Mapping[type[Resource], Codec[Any]],
    *,
    ports: SqlitePorts,
    settings: SqliteSettings,
) -> WriteSide:
    tables = Tables(file.writer)
    names = Names(file.writer, registry)
    admit_kinds(tables, names, codecs)
    reader = Reader(
        registry=registry,
        codecs=codecs,
        tables=Tables(file.reader),
        names=names,
        clock=ports.clock,
        settings=settings.reader,
    )
    return WriteSide(
        registry=registry,
        codecs=codecs,
        tables=tables,
        logs=LogTables(file.writer),
        names=names,
        reader=reader,
        randomness=ports.randomness,
        history=HistorySize(settings.maintenance.history_bytes),
    )
