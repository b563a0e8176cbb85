"""The tables, and how an older file becomes a current one.

Documents live in `revisions`, one row per change, like the revisions of etcd: an object's row only points to its
current one. So a change is written once, serves both readers and watchers, and a superseded revision is history that
compaction removes.

Running statements so that none is left open.

A statement that was not read to its end pins the snapshot it reads, so rows always come as a list.

What a caller reads when the disk, not the request, is to blame.
"""

import errno
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import apsw

from remuda.kernel.errors import StorageFailing, StorageFull, StoreClosed, StoreDamaged


class Sql:
    """One connection's statements: call it with SQL and bindings, get all rows."""

    __slots__ = ("_cursor", "_execute")

    def __init__(self, connection: apsw.Connection) -> None:
        # One plan for all bindings: else SQLite plans anew for each, which doubles the cost of a point get.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._cursor = connection.cursor()
        self._execute = self._cursor.execute

    def __call__(self, sql: str, *bindings: object) -> list[Any]:
        """Run a statement to its end and return its rows."""
        try:
            return self._execute(sql, bindings).fetchall()
        except UnicodeDecodeError:  # SQLite hands on whatever bytes it finds where a text should be
            raise apsw.CorruptError("a stored text is not UTF-8") from None

    def each(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement that returns nothing once for each row of bindings."""
        self._cursor.executemany(sql, rows)


APPLICATION_ID = 0x52454D55
"""Marks a file as ours ('REMU' in the SQLite header)."""

_FIRST = """
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    signature TEXT NOT NULL
) STRICT;

CREATE TABLE indexes (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (kind, name)
) STRICT;

CREATE TABLE objects (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE entries (
    index_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (index_id, value, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE revisions (
    version INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    change INTEGER NOT NULL,
    time REAL NOT NULL,
    document BLOB NOT NULL,
    before BLOB
) STRICT;

CREATE INDEX revisions_by_kind ON revisions (kind);

CREATE TABLE horizon (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    floor INTEGER NOT NULL
) STRICT;

CREATE TABLE logs (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    subject TEXT NOT NULL,
    time REAL NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE INDEX logs_by_subject ON logs (stream, subject, position);
CREATE INDEX logs_by_time ON logs (stream, time);

INSERT INTO horizon (id, version, floor) VALUES (1, 0, 0);
"""

TABLES: tuple[str, ...] = ("kinds", "indexes", "objects", "entries", "revisions", "horizon", "logs")
"""What every store has, of whatever version."""
MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""Each script takes a file from the version before to its own: the first one makes version 1 from an empty file."""


def migrate(connection: apsw.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest version, all steps in one transaction."""
    found = connection.pragma("user_version")
    if found == len(migrations):
        return
    with connection:
        for script in migrations[found:]:
            connection.execute(script)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(migrations))


class Storage:
    """The file behind a reader, as a context in which SQLite's errors become ours."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        """Begin to use the file."""

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Say what an error of the file means."""
        if isinstance(error, apsw.Error):
            raise storage_error(self.path, error) from None


def storage_error(path: str, error: BaseException) -> Exception:
    """Return our error for what SQLite or the system said about a file."""
    if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError)):
        return StoreClosed(path)
    if isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return StorageFull(path)
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return StoreDamaged(path, str(error))
    return StorageFailing(path, str(error))
