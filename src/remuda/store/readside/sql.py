"""SQL of the store's file: statements, tables, migrations, and errors.

Documents are in `revisions`, one row per change, like the revisions of etcd: an object's row only points to its current
one. So a change is written once, serves readers and watchers, and a superseded revision is history that compaction
removes.
"""

import errno
from collections.abc import Iterable
from typing import Any

import apsw

from remuda.kernel.errors import StorageFailing, StorageFull, StoreClosed, StoreDamaged
from remuda.kernel.files import DATA_FORMAT


class Sql:
    """The statements of one connection. Rows are returned as a list, because an open statement pins its snapshot."""

    __slots__ = ("_cursor", "_execute")

    def __init__(self, connection: apsw.Connection) -> None:
        # One plan for all bindings: otherwise SQLite plans again for each, which doubles the cost of a point get.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._cursor = connection.cursor()
        self._execute = self._cursor.execute

    def __call__(self, sql: str, *bindings: object) -> list[Any]:
        """Run a statement to its end and return its rows."""
        try:
            return self._execute(sql, bindings).fetchall()
        except UnicodeDecodeError:  # SQLite does not validate the encoding of texts
            raise apsw.CorruptError("a stored text is not UTF-8") from None

    def each(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement without results once for each row of bindings."""
        self._cursor.executemany(sql, rows)


APPLICATION_ID = 0x52454D55
"""Identifies a file as ours ('REMU' in the SQLite header)."""

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

_DERIVED = """
CREATE TABLE IF NOT EXISTS renderings (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    form TEXT NOT NULL,
    labels BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
"""
"""Tables that can be emptied at any time. A program that does not know them leaves them as they are, so they belong to
no format: what is in them counts only together with a version of an object and the revision of the code."""

TABLES: tuple[str, ...] = ("kinds", "indexes", "objects", "entries", "revisions", "horizon", "logs")
"""The tables of every store, whatever its format."""
MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""Scripts that each upgrade a file by one format: the first one creates `DATA_FORMAT` from an empty file."""


def newest_format(migrations: tuple[str, ...] = MIGRATIONS) -> int:
    return DATA_FORMAT + len(migrations) - 1


def migrate(connection: apsw.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Upgrade the file to the newest format, all steps in one transaction."""
    found, newest = connection.pragma("user_version"), newest_format(migrations)
    if found == newest:
        connection.execute(_DERIVED)
        return
    with connection:
        connection.execute(_DERIVED)
        for script in migrations[len(migrations) - (newest - found) if found else 0 :]:
            connection.execute(script)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", newest)


class Storage:
    """The file behind a reader, as a context manager that translates SQLite's errors."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        """Begin to use the file."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, apsw.Error):
            raise storage_error(self.path, error) from None


def storage_error(path: str, error: BaseException) -> Exception:
    """Return our error for an error of SQLite or of the operating system."""
    if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError)):
        return StoreClosed(path)
    if isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return StorageFull(path)
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return StoreDamaged(path, str(error))
    return StorageFailing(path, str(error))
