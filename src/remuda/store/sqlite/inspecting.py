"""A look at a store's file from outside, whether or not a process has it open: nothing is changed by it.

What is read is one state of the store after the other, as SQLite lets any reader see them. Documents come as they are
stored: secrets in them are sealed, and stay so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec

from remuda.store.kinds import Kind
from remuda.store.parts import field_index
from remuda.store.readside.layout import TABLES
from remuda.store.readside.sql import Sql
from remuda.store.sqlite.backup import copy_store
from remuda.store.sqlite.file import check_header, opening_error
from remuda.store.sqlite.maintenance import damage_of

_PATIENCE_MS = 5_000


class Inspection:
    """A store's file, opened to be looked at."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self._path, self._run = path, Sql(connection)

    def damage(self) -> str:
        """Look through the whole file, and return what is wrong with it, or nothing."""
        try:
            tables = [name for (name,) in self._run("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            if missing := [name for name in TABLES if name not in tables]:
                return f"it has no table {missing[0]}" if tables else "it is empty"
            return next(filter(None, (damage_of(self._run, table) for table in tables)), "")
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return str(error)

    def latest(self) -> datetime | None:
        """Return when the store was last written to, by the clock of that time; None if it never was."""
        last_rows = (
            "SELECT time FROM revisions ORDER BY version DESC LIMIT 1",
            "SELECT time FROM logs ORDER BY position DESC LIMIT 1",
        )
        times = [time for sql in last_rows for (time,) in self._run(sql)]
        return datetime.fromtimestamp(max(times), UTC) if times else None

    def documents(self, kind: Kind[Any], *, index: tuple[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the objects of a kind, or those that lie under this value of a declared index, as they are stored."""
        found = self._run("SELECT id FROM kinds WHERE name = ?", kind.qualified)
        for (number,) in found:
            for (document,) in self._all(number) if index is None else self._under(number, *index):
                yield msgspec.json.decode(document)

    def copy(self, target: Path) -> None:
        """Write a copy to `target`, which must not exist yet."""
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
    """Look at the store in `path`, or raise the Unusable error that says why it is none that we can read."""
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
    connection.set_busy_timeout(_PATIENCE_MS)
    return connection
