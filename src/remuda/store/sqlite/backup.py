"""Backup and inspection of a store's file, also while a process has it open.

A backup is one consistent snapshot, compact, and gets its name only when it is complete and on disk. An inspection only
reads, each time one committed state. Secrets stay sealed in both.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec

from remuda.kernel.errors import Invalid
from remuda.store.contract import field_index
from remuda.store.kinds import Kind
from remuda.store.readside.sql import TABLES, Sql, storage_error
from remuda.store.sqlite.file import check_header, opening_error
from remuda.store.sqlite.maintenance import damage_of


def copy_store(connect: Callable[[], apsw.Connection], target: Path) -> None:
    """Write a copy of the store that `connect` opens to `target`, which must not exist yet."""
    if target.exists():
        raise Invalid("The backup", f"would overwrite {target}", remedy="choose a name that is not taken")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        _write(connect, unfinished)
        unfinished.rename(target)
        _flush(target.parent)
    except (apsw.Error, OSError) as error:
        raise storage_error(str(target), error) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _write(connect: Callable[[], apsw.Connection], path: Path) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)  # before it has content, so that no other user can read it
    with contextlib.closing(connect()) as connection:
        connection.execute("VACUUM INTO ?", (str(path),))
    _flush(path)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_BUSY_TIMEOUT_MS = 5_000


class Inspection:
    """A store's file, opened for reading."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self._path, self._run = path, Sql(connection)

    def damage(self) -> str:
        """Check the whole file, and return a description of its damage, or an empty text."""
        try:
            tables = [name for (name,) in self._run("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            if missing := [name for name in TABLES if name not in tables]:
                return f"it has no table {missing[0]}" if tables else "it is empty"
            return next(filter(None, (damage_of(self._run, table) for table in tables)), "")
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return str(error)

    def latest(self) -> datetime | None:
        """Return the time of the last write, by the clock of that time; None if there was none."""
        last_rows = (
            "SELECT time FROM revisions ORDER BY version DESC LIMIT 1",
            "SELECT time FROM logs ORDER BY position DESC LIMIT 1",
        )
        times = [time for sql in last_rows for (time,) in self._run(sql)]
        return datetime.fromtimestamp(max(times), UTC) if times else None

    def documents(self, kind: Kind[Any], *, index: tuple[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the stored documents of a kind, or those with this value in a declared index."""
        found = self._run("SELECT id FROM kinds WHERE name = ?", kind.qualified)
        for (number,) in found:
            for (document,) in self._all(number) if index is None else self._under(number, *index):
                yield msgspec.json.decode(document)

    def copy(self, target: Path) -> None:
        copy_store(lambda: _connected(self._path), target)

    def _all(self, kind: int) -> list[Any]:
        return self._run(
            "SELECT r.document FROM objects o JOIN revisions r ON r.version = o.version WHERE o.kind = ?", kind
        )

    def _under(self, kind: int, name: str, value: str) -> list[Any]:
        return self._run(
            "SELECT r.document FROM indexes i JOIN entries e ON e.index_id = i.id AND e.value = ?"
            " JOIN objects o ON o.kind = i.kind AND o.name = e.name JOIN revisions r ON r.version = o.version"
            " WHERE i.kind = ? AND i.name = ?",
            value,
            kind,
            field_index(name),
        )


@contextmanager
def inspected(path: Path) -> Iterator[Inspection]:
    """Open the store in `path` for inspection, or raise the Unusable error that says why that is impossible."""
    connections: list[apsw.Connection] = []
    try:
        connections.append(_connected(path))
        check_header(path, connections[0])
        yield Inspection(path, connections[0])
    except apsw.Error as error:
        raise opening_error(path, error) from None
    finally:
        for connection in connections:
            connection.close(force=True)


def _connected(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    return connection
