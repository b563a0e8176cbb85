"""The file: who may open it, whether it is ours, and what its errors mean.

Opening is quick however large the file is: the header, the schema version and SQLite's own recovery of the write-ahead
log. A lock beside the file, held by the kernel and so released by any kind of death, keeps a second process out.
"""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

import apsw

from remuda.kernel.errors import RemudaError, StoreDamaged, StoreForeign, StoreInaccessible, StoreLocked, StoreTooNew
from remuda.store.readside.sql import APPLICATION_ID, MIGRATIONS, migrate

_PAGE_SIZE = 8192
_PAGE_CACHE_KIB = 32 * 1024


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    """A locked file and the connections to it."""

    path: Path
    writer: apsw.Connection
    reader: apsw.Connection
    was_clean: bool
    """The last process closed the file; if not, its content deserves a check."""
    lock: int
    vfs: str | None

    def connect(self) -> apsw.Connection:
        """Return one more connection that only reads, for work of its own."""
        return _connect(self.path, self.vfs, apsw.SQLITE_OPEN_READONLY)

    def close(self, *, is_sound: bool = True) -> None:
        """Close everything; the last connection moves the write-ahead log into the file.

        If the content is not known to be sound, the next one to open the file is told that it deserves a check.
        """
        try:
            with contextlib.closing(self.writer), contextlib.closing(self.reader):
                pass
            if is_sound:
                os.ftruncate(self.lock, 0)
        finally:
            os.close(self.lock)

    def abandon(self) -> None:
        """Let go of everything, whatever the disk says."""
        for connection in (self.reader, self.writer):
            with contextlib.suppress(apsw.Error):
                connection.close(force=True)
        os.close(self.lock)


def open_file(path: Path, *, vfs: str | None = None, migrations: tuple[str, ...] = MIGRATIONS) -> OpenFile:
    """Open or create a store's file, or raise the Unusable error that says why not."""
    lock = take_lock(path)
    connections: list[apsw.Connection] = []
    try:
        was_clean = _begin_use(path, lock)
        path.touch(mode=0o600)  # SQLite would let everybody read it; its log files take their mode from it
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        writer = _connect(path, vfs, flags)
        connections.append(writer)
        check_header(path, writer, len(migrations))
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


def opening_error(path: Path, error: Exception) -> Exception:
    """Return what somebody who tries to open a store should read."""
    while isinstance(error.__context__, apsw.Error):  # the first one says what happened, the others what followed
        error = error.__context__
    if isinstance(error, apsw.NotADBError):
        return StoreForeign(str(path))
    if isinstance(error, apsw.CorruptError | apsw.SQLError):  # our SQL is right, so the tables are not
        return StoreDamaged(str(path), str(error))
    if isinstance(error, apsw.Error | OSError):
        return StoreInaccessible(str(path), str(error))
    return error


def take_lock(path: Path) -> int:
    """Keep every process away from a store; return the lock, which ends when it is closed. Raise StoreLocked."""
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


def _begin_use(path: Path, lock: int) -> bool:
    """Tell whether the last process closed the file, and leave a sign that this one has not done so yet."""
    log = path.with_name(path.name + "-wal")
    was_clean = not os.fstat(lock).st_size and not (log.exists() and log.stat().st_size)
    with contextlib.suppress(OSError):  # on a full disk the write-ahead log alone has to tell
        os.pwrite(lock, b"open\n", 0)
    return was_clean


def _connect(path: Path, vfs: str | None, flags: int) -> apsw.Connection:
    return apsw.Connection(str(path), flags=flags, vfs=vfs)


def check_header(path: Path, connection: apsw.Connection, known: int = len(MIGRATIONS)) -> None:
    """Raise StoreForeign if a file is none of ours, and StoreTooNew if only a later release knows its version."""
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    is_empty = not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    if application != APPLICATION_ID and not (application == 0 and is_empty):
        raise StoreForeign(str(path))
    if version > known:
        raise StoreTooNew(str(path), found=version, known=known)


def _prepare(connection: apsw.Connection) -> None:
    connection.pragma("page_size", _PAGE_SIZE)
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StoreInaccessible(connection.filename, "its file system cannot hold a write-ahead log")
    connection.pragma("synchronous", "full")
    connection.pragma("cache_size", -_PAGE_CACHE_KIB)
    connection.pragma("cache_spill", 0)  # so that SQL on the loop never waits for the disk: only COMMIT writes
    connection.wal_autocheckpoint(0)  # the writer checkpoints between batches, when no reader is pinned
