"""Maintenance of an open store: compaction, log retention, and an integrity check after an unclean stop.

Each is a small amount of work from time to time, in slices that pass through the writer like any other write.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Literal

import apsw

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.store.readside.history import change_bytes
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.readside.sql import Sql
from remuda.store.readside.tables import Tables
from remuda.store.sqlite.batch import Batch, WriteSide
from remuda.store.sqlite.executor import Executor, run_in
from remuda.store.sqlite.file import OpenFile
from remuda.store.sqlite.writer import Writer

Integrity = Literal["sound", "unchecked", "checking", "damaged"]
"""The known state of a file. It is not known to be sound only after an unclean stop."""

_SLICE_ROWS = 200
_MEASURED_ROWS = 5_000
_RETRY_S = 30.0
_DAMAGE = (apsw.CorruptError, apsw.NotADBError)


class Maintenance:
    """The recurring work of one open store."""

    def __init__(self, side: WriteSide, writer: Writer, *, clock: Clock, settings: MaintenanceSettings) -> None:
        self._side, self._writer, self._clock = side, writer, clock
        self._settings = settings

    async def run(self) -> None:
        """Compact history and delete old log records, until stopped. A failing disk only delays it."""
        while True:
            await self._clock.sleep(self._settings.interval_s)
            try:
                await self.compact()
                await self.trim()
            except Unavailable:
                continue

    async def compact(self) -> None:
        """Remove the history that no watch can read any more."""
        side, writer = self._side, self._writer
        oldest = (self._clock.now() - self._settings.history_age).timestamp()
        while True:
            with side.reader.storage:
                by_age = side.reader.tables.version_at(oldest, after=writer.floor, limit=_SLICE_ROWS)
            too_much = max(writer.version - self._settings.history_changes, side.history.floor())
            floor = max(by_age, min(too_much, writer.floor + _SLICE_ROWS))
            if floor <= writer.floor:
                return
            await writer.submit(lambda batch, floor=floor: batch.compact(floor, limit=2 * _SLICE_ROWS))  # type: ignore[misc]  # mypy cannot infer a default

    async def trim(self) -> None:
        for stream, age in self._settings.retention.items():
            while await self._writer.submit(lambda batch, s=stream, a=age: self._trim(batch, s, a)):  # type: ignore[misc]  # mypy cannot infer a default
                pass

    def _trim(self, batch: Batch, stream: str, age: timedelta) -> bool:
        dropped = self._side.logs.trim(stream, age, batch.now, limit=_SLICE_ROWS)
        batch.is_dirty = batch.is_dirty or dropped > 0
        return dropped == _SLICE_ROWS


async def measure_history(file: OpenFile, executor: Executor, side: WriteSide, writer: Writer, clock: Clock) -> None:
    """Count the history that earlier processes left, at low priority. A failing disk only delays it."""
    after, upto, sizes = writer.floor, writer.version, list[tuple[int, int]]()
    while after < upto:
        try:
            rows = await run_in(executor, partial(_sizes, file, after=after, upto=upto))
        except apsw.Error:
            await clock.sleep(_RETRY_S)
            continue
        sizes += [(version, change_bytes(document, before)) for version, document, before in rows]
        after = sizes[-1][0] if len(rows) == _MEASURED_ROWS else upto
    side.history.add_earlier(sizes, floor=writer.floor)


def _sizes(file: OpenFile, *, after: int, upto: int) -> Sequence[tuple[int, int, int]]:
    with contextlib.closing(file.connect()) as connection:
        return Tables(connection).sizes(after=after, upto=upto, limit=_MEASURED_ROWS)


async def check_integrity(file: OpenFile, executor: Executor, report: Callable[[Integrity, str], None]) -> None:
    """Check the whole file, table by table, at low priority. After a disk error the content stays unchecked."""
    report("checking", "")
    try:
        damage = await _damage(file, executor)
    except _DAMAGE as error:
        report("damaged", str(error))
    except apsw.Error:
        report("unchecked", "")
    else:
        report("damaged" if damage else "sound", damage)


async def _damage(file: OpenFile, executor: Executor) -> str:
    connection = file.connect()
    try:
        run = Sql(connection)
        for (table,) in await run_in(executor, lambda: run("SELECT name FROM sqlite_schema WHERE type = 'table'")):
            if damage := await run_in(executor, lambda table=table: damage_of(run, table)):  # type: ignore[misc]  # mypy cannot infer a default
                return damage
    except asyncio.CancelledError:
        connection.interrupt()  # do not wait for the rest of a large table
        raise
    finally:
        executor.submit(connection.close, lambda _: None)
    return ""


def damage_of(run: Sql, table: str) -> str:
    """Return the damage of one table and its indexes, or an empty text."""
    quoted = table.replace('"', '""')
    found = run(f'PRAGMA integrity_check("{quoted}")')
    if found == [("ok",)]:
        return ""
    lines = [line for (text,) in found for line in str(text).splitlines() if not line.startswith("***")]
    return "; ".join(lines[:3])
