"""File of a store: its lock, its header, and its errors.

Opening is fast however large the file is: the header, the schema version, and SQLite's own recovery of the write-ahead
log. A lock file beside it excludes a second process. The kernel holds the lock, so it is released however the process
ends.
"""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

import apsw

from remuda.kernel.errors import RemudaError, StoreDamaged, StoreForeign, StoreInaccessible, StoreLocked
from remuda.kernel.files import check_format, require_format
from remuda.store.readside.sql import APPLICATION_ID, MIGRATIONS, migrate, newest_format

_PAGE_SIZE = 8192
_LOG_BYTES = 64 << 20
"""Size to which the write-ahead log shrinks after a burst, when it starts again."""
_PAGE_CACHE_KIB = 32 * 1024


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    """A locked file and the connections to it."""

    path: Path
    writer: apsw.Connection
    reader: apsw.Connection
    was_clean: bool
    """Whether the last process closed the file; if not, its content should be checked."""
    lock: int
    vfs: str | None

    def connect(self) -> apsw.Connection:
        """Return another read-only connection, for work of its own."""
        return _connect(self.path, self.vfs, apsw.SQLITE_OPEN_READONLY)

    def close(self, *, is_sound: bool = True) -> None:
        """Close everything. Unless the content is sound, the lock file tells the next process to check it."""
        try:
            with contextlib.closing(self.writer), contextlib.closing(self.reader):
                pass
            if is_sound:
                os.ftruncate(self.lock, 0)
        finally:
            os.close(self.lock)

    def abandon(self) -> None:
        """Release everything, ignoring errors of the disk."""
        for connection in (self.reader, self.writer):
            with contextlib.suppress(apsw.Error):
                connection.close(force=True)
        os.close(self.lock)


def open_file(path: Path, *, vfs: str | None = None, migrations: tuple[str, ...] = MIGRATIONS) -> OpenFile:
    """Open or create a store's file, or raise the Unusable error that says why that is impossible."""
    lock = take_lock(path)
    connections: list[apsw.Connection] = []
    try:
        check_format(path, newest=newest_format(migrations))  # before anything is written
        has_log = _has_log(path)
        was_clean = not os.fstat(lock).st_size and not has_log
        if not path.exists():
            _mark_open(lock)  # first, so that an empty file with an empty lock is one that was emptied
            path.touch(mode=0o600)  # SQLite would make it readable for all users; its log files get the same mode
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        writer = _connect(path, vfs, flags)
        connections.append(writer)
        writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(has_log))  # a rejected file stays as it is
        check_header(path, writer, migrations)
        writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        _mark_open(lock)
        _prepare(writer)
        migrate(writer, migrations)
        reader = _connect(path, vfs, apsw.SQLITE_OPEN_READONLY)
        connections.append(reader)
        reader.pragma("cache_size", -_PAGE_CACHE_KIB)
    except (apsw.Error, OSError, RemudaError) as error:
        for connection in reversed(connections):
            with contextlib.suppress(apsw.Error):
                connection.close(force=True)
        os.close(lock)
        raise opening_error(path, error) from None
    return OpenFile(path=path, writer=writer, reader=reader, was_clean=was_clean, lock=lock, vfs=vfs)


def _mark_open(lock: int) -> None:
    with contextlib.suppress(OSError):  # on a full disk the write-ahead log is the only sign of an open file
        os.pwrite(lock, b"open\n", 0)


def opening_error(path: Path, error: Exception) -> Exception:
    """Return the error for a caller that tries to open a store."""
    while isinstance(error.__context__, apsw.Error):  # the first error is the cause of the others
        error = error.__context__
    if isinstance(error, apsw.NotADBError):
        return StoreForeign(str(path))
    if isinstance(error, apsw.CorruptError | apsw.SQLError):  # our SQL is correct, so the tables are not
        return StoreDamaged(str(path), str(error))
    if isinstance(error, apsw.Error | OSError):
        return StoreInaccessible(str(path), str(error))
    return error


def take_lock(path: Path) -> int:
    """Lock a store against all other processes and return the lock, which ends when it is closed. Raise StoreLocked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreInaccessible(str(path), error.strerror or str(error)) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise StoreLocked(str(path)) from None
    return lock


def _has_log(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _connect(path: Path, vfs: str | None, flags: int) -> apsw.Connection:
    return apsw.Connection(str(path), flags=flags, vfs=vfs)


def check_header(path: Path, connection: apsw.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Raise StoreForeign if the file is not ours, and StoreTooOld or StoreTooNew if it has another format."""
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    is_empty = not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    if application != APPLICATION_ID and not (application == 0 and is_empty):
        raise StoreForeign(str(path))
    require_format(path, version, newest=newest_format(migrations))


def _prepare(connection: apsw.Connection) -> None:
    connection.pragma("page_size", _PAGE_SIZE)
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StoreInaccessible(connection.filename, "its file system does not support a write-ahead log")
    connection.pragma("synchronous", "full")
    connection.pragma("cache_size", -_PAGE_CACHE_KIB)
    connection.pragma("cache_spill", 0)  # so that SQL on the event loop never waits for the disk: only COMMIT writes
    connection.pragma("journal_size_limit", _LOG_BYTES)
    connection.wal_autocheckpoint(0)  # the writer checkpoints between batches, when no snapshot is pinned
