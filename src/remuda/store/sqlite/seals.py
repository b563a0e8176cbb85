"""Seals in an SQLite file: which keys they need, and the removal of seals that history has kept.

A rotation of the sealing keys is complete when no row contains a seal of an earlier key. That is searched in every
column of every table, so that no kind of row can be forgotten. The files are searched while a process has them open;
their history is removed only while none has.
"""

import contextlib
import os
import re
from collections import Counter
from pathlib import Path

import apsw

from remuda.store.sqlite.file import opening_error, take_lock

_SEAL = re.compile(rb"sealed:v1:([a-z0-9-]{1,32}):")
_BEGIN = b"sealed:v1:"
_BUSY_TIMEOUT_MS = 5_000


def keys_of_seals(path: Path) -> Counter[str]:
    """Return the ids of the keys of all seals in a file, with the number of seals."""
    found: Counter[str] = Counter()
    try:
        with contextlib.closing(_connect(path, apsw.SQLITE_OPEN_READONLY)) as connection:
            for table, column in _columns(connection):
                for (value,) in connection.execute(_with_seals(table, column), (_BEGIN,)):
                    found.update(match.decode() for match in _SEAL.findall(value))
    except apsw.Error as error:
        raise opening_error(path, error) from None
    return found


def drop_history(store: Path) -> None:
    """Remove the superseded revisions of a store that no process has open, and their remains in the file.

    Clients that watch start over afterwards, as they do after a longer absence.
    """
    lock = take_lock(store)
    try:
        with contextlib.closing(_connect(store, apsw.SQLITE_OPEN_READWRITE)) as connection:
            with connection:
                connection.execute(
                    "DELETE FROM revisions WHERE NOT EXISTS (SELECT 1 FROM objects o WHERE o.kind = revisions.kind"
                    " AND o.name = revisions.name AND o.version = revisions.version)"
                )
                connection.execute("UPDATE revisions SET before = NULL WHERE before IS NOT NULL")
                connection.execute("UPDATE horizon SET floor = version")
            _rewrite(connection)
    except apsw.Error as error:
        raise opening_error(store, error) from None
    finally:
        os.close(lock)


def drop_remains(path: Path) -> None:
    """Rewrite a file, so that it contains nothing of rows that were changed or deleted."""
    try:
        with contextlib.closing(_connect(path, apsw.SQLITE_OPEN_READWRITE)) as connection:
            _rewrite(connection)
    except apsw.Error as error:
        raise opening_error(path, error) from None


def _rewrite(connection: apsw.Connection) -> None:
    connection.execute("VACUUM")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    return connection


def _columns(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Return the columns that can contain a text, with their tables."""
    found = connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c"
        " WHERE t.type = 'table' AND upper(c.type) NOT IN ('INTEGER', 'REAL')"
    )
    return [(str(table), str(column)) for table, column in found]


def _with_seals(table: str, column: str) -> str:
    quoted_table, quoted = (name.replace('"', '""') for name in (table, column))
    value = f'CAST("{quoted}" AS BLOB)'
    return f'SELECT {value} FROM "{quoted_table}" WHERE instr({value}, ?) > 0'  # noqa: S608  names of the file's own schema
