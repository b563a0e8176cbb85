"""Database of the simulated cloud: one SQLite file with transactions and a change log.

One connection is used on the event loop. A transaction is synchronous, so no reader sees half of it; it may contain
several writes, each of which is atomic by itself. Another process may have the file open too (`remuda sim`): a write
waits briefly for it, and `announce_foreign_changes` announces what it did. Every change is recorded with
`record_change` before it is made, which gives the object its version, notifies listeners after the commit, and lets
stale reads remember the previous state.

Columns hold what is searched for; the rest of an object is one document. `state`, `next` and `due` mean that an object
is in one state until that time, and in the other afterwards. `changes` tells other processes that have the file open
what happened; its sequence numbers are the versions of servers.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError, StoreForeign
from remuda.kernel.files import DATA_FORMAT, check_format, require_format
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import CloudEvent, EventSubject
from remuda.store.readside.sql import storage_error
from remuda.store.sqlite.file import opening_error

APPLICATION_ID = 0x52454D43
"""Identifies a file as a simulated cloud ('REMC' in the SQLite header)."""

SCHEMA = """
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    subject TEXT NOT NULL,
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL
) STRICT;

CREATE TABLE tenancies (name TEXT PRIMARY KEY, document BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE networks (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    vlan INTEGER UNIQUE,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE groups (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE addresses (
    tenancy TEXT NOT NULL,
    network TEXT NOT NULL,
    address TEXT NOT NULL,
    holder TEXT NOT NULL,
    PRIMARY KEY (tenancy, network, address)
) STRICT, WITHOUT ROWID;

CREATE TABLE public_addresses (
    position INTEGER PRIMARY KEY,
    address TEXT NOT NULL UNIQUE,
    tenancy TEXT,
    holder TEXT,
    is_offered INTEGER NOT NULL
) STRICT;
CREATE INDEX free_public_addresses ON public_addresses (position) WHERE holder IS NULL AND is_offered;
CREATE UNIQUE INDEX assigned_public_addresses ON public_addresses (tenancy, holder) WHERE holder IS NOT NULL;

CREATE TABLE ports (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE memberships (
    tenancy TEXT NOT NULL,
    member TEXT NOT NULL,
    port TEXT NOT NULL,
    PRIMARY KEY (tenancy, member, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE hosts (
    flavor TEXT NOT NULL,
    host TEXT NOT NULL,
    size INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (flavor, host)
) STRICT, WITHOUT ROWID;
CREATE INDEX hosts_by_usage ON hosts (flavor, used, host);

CREATE TABLE servers (
    number INTEGER PRIMARY KEY,
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    next TEXT,
    due REAL,
    created REAL NOT NULL,
    launched REAL,
    flavor TEXT NOT NULL,
    image TEXT NOT NULL,
    rebuilds INTEGER NOT NULL DEFAULT 0,
    port TEXT NOT NULL,
    host TEXT NOT NULL,
    fault TEXT NOT NULL DEFAULT '',
    boot_s REAL NOT NULL,
    boots BLOB NOT NULL,
    document BLOB NOT NULL,
    UNIQUE (tenancy, name),
    UNIQUE (tenancy, port)
) STRICT;
CREATE INDEX servers_due ON servers (due) WHERE due IS NOT NULL;
CREATE INDEX servers_by_image ON servers (image);

CREATE TABLE consoles (digest BLOB PRIMARY KEY, server TEXT NOT NULL, until REAL NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE images (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    next TEXT,
    due REAL,
    created REAL NOT NULL,
    size_gib INTEGER NOT NULL,
    digest TEXT NOT NULL,
    document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX images_due ON images (due) WHERE due IS NOT NULL;

CREATE TABLE balancers (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    next TEXT,
    due REAL,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX balancers_due ON balancers (due) WHERE due IS NOT NULL;

CREATE TABLE storages (
    name TEXT PRIMARY KEY,
    used_bytes INTEGER NOT NULL DEFAULT 0,
    document BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attachments (
    tenancy TEXT NOT NULL,
    network TEXT NOT NULL,
    storage TEXT NOT NULL,
    PRIMARY KEY (tenancy, network, storage)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_storage ON attachments (storage);
"""


class CloudTime:
    """The cloud's own clock, in seconds since 1970.

    It is set from the wall clock when the cloud is opened, and then runs by monotonic time: the cloud is somewhere
    else, so a correction of our wall clock must not change the duration of a boot. It never goes back behind the last
    stored change.
    """

    def __init__(self, clock: Clock, *, last: float = 0.0) -> None:
        self._clock = clock
        self._start = max(clock.now().timestamp(), last) - clock.monotonic()

    def now(self) -> float:
        return self._start + self._clock.monotonic()


def as_datetime(moment: float) -> datetime:
    """Convert a time of the cloud into a datetime."""
    return datetime.fromtimestamp(moment, UTC)


T = TypeVar("T")
_Touched = tuple[int, CloudEvent]

_BUSY_TIMEOUT_MS = 2000
_LOG_LENGTH = 10_000
_LOG_SLACK = 1_000


SyncMode = Literal["never", "elsewhere", "itself"]
"""Component that syncs commits to the disk: none, a `Disk` beside the connection, or SQLite itself."""


ShouldAnnounce = Callable[[Any], bool]
"""Decides by the result of a write whether its changes are announced."""


def open_database(path: Path | None, *, clock: Clock, syncs: SyncMode = "never") -> "CloudDatabase":
    """Open or create the file, or raise the Unusable error with the cause; without a path, open it in memory."""
    if path is None:
        connection = apsw.Connection(":memory:")
        _prepare(connection, "", syncs)
        return CloudDatabase(connection, clock)
    connections: list[apsw.Connection] = []
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_format(path)  # before anything is written
        if not path.exists():
            path.touch(mode=0o600)
        connections.append(apsw.Connection(str(path)))
        _prepare(connections[0], str(path), syncs)
    except (apsw.Error, OSError, RemudaError) as error:
        for each in connections:
            each.close(force=True)
        raise opening_error(path, error) from None
    return CloudDatabase(connections[0], clock)


class CloudDatabase:
    """An open database."""

    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self.is_shared = connection.filename != ""
        """Whether another process may have it open."""
        self.before_change: Callable[[EventSubject, Handle], None] = lambda _subject, _handle: None
        """Called before an object changes."""
        self.after_commit: Callable[[Iterable[CloudEvent]], None] = lambda _events: None
        """Called with the changes of a commit."""
        self._connection = connection
        self._execute = connection.execute
        self._path = connection.filename or "of the simulated cloud"
        self._touched: list[_Touched] = []
        self._data_version = connection.pragma("data_version")
        self._last_announced, last = next(
            connection.execute("SELECT coalesce(max(sequence), 0), coalesce(max(time), 0) FROM changes")
        )
        self._time = CloudTime(clock, last=last)

    def now(self) -> float:
        return self._time.now()

    def write(self, effect: Callable[[], T], *, should_announce: ShouldAnnounce = lambda _: True) -> T:
        """Run a write atomically, or raise its error. `should_announce` decides by the result."""
        (outcome,) = self.write_all([effect], should_announce=should_announce)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def write_all(
        self, effects: Sequence[Callable[[], T]], *, should_announce: ShouldAnnounce
    ) -> Sequence[T | Exception]:
        """Run writes in one commit, each atomic by itself; return for each its result or error."""
        try:
            self._execute("BEGIN IMMEDIATE")
            try:
                done = [self._attempt(effect) for effect in effects]
                self._execute("COMMIT")
            except BaseException:
                self._touched.clear()
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")
                raise
        except apsw.Error as error:
            return [storage_error(self._path, error) for _ in effects]
        for outcome, touched in done:
            self._announce(touched, should_announce=should_announce(outcome))
        return [outcome for outcome, _ in done]

    def record_change(self, subject: EventSubject, handle: Handle) -> int:
        """Record that an object is about to change; return the number of the change."""
        self.before_change(subject, handle)
        self._execute(
            "INSERT INTO changes (time, subject, tenancy, name) VALUES (?, ?, ?, ?)",
            (self.now(), subject, handle.tenancy, handle.name),
        )
        number = self._connection.last_insert_rowid()
        self._touched.append((number, CloudEvent(subject, handle)))
        if number % _LOG_SLACK == 0:
            self._execute("DELETE FROM changes WHERE sequence <= ?", (number - _LOG_LENGTH,))
        return number

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        self._execute(statement, values)
        return self._connection.changes()

    def row(self, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        found = self.rows(query, values)
        return found[0] if found else None

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._execute(query, values).fetchall()
        except apsw.Error as error:
            raise storage_error(self._path, error) from None

    def has(self, query: str, values: Sequence[Any] = ()) -> bool:
        """Return whether the query finds a row."""
        return bool(self.rows(query, values))

    def announce_foreign_changes(self) -> bool:
        """Announce the changes of another process since the last call; return whether there were any."""
        (version,) = self.rows("PRAGMA data_version")[0]
        if version == self._data_version:
            return False
        self._announce_since(self._last_announced)
        self._data_version = version
        return True

    def close(self) -> None:
        self._connection.close()

    def _attempt(self, effect: Callable[[], T]) -> tuple[T | Exception, Sequence[_Touched]]:
        """Run one write of several, and undo it alone if it fails; return its changes as well."""
        self._execute("SAVEPOINT effect")
        try:
            outcome: T | Exception = effect()
        except Exception as error:
            if not self._connection.in_transaction:  # SQLite has undone all of them: the disk is full or fails
                raise
            self._execute("ROLLBACK TO effect")
            self._touched.clear()
            outcome = storage_error(self._path, error) if isinstance(error, apsw.Error) else error
        self._execute("RELEASE effect")
        touched, self._touched = self._touched, []
        return outcome, touched

    def _announce(self, touched: Sequence[_Touched], *, should_announce: bool) -> None:
        if not touched:
            return
        if touched[0][0] != self._last_announced + 1:
            self._announce_since(self._last_announced)
            return
        self._last_announced = touched[-1][0]
        if should_announce:
            self.after_commit([event for _, event in touched])

    def _announce_since(self, number: int) -> None:
        found = self.rows(
            "SELECT sequence, subject, tenancy, name FROM changes WHERE sequence > ? ORDER BY sequence", (number,)
        )
        if found:
            self._last_announced = found[-1][0]
            self.after_commit([CloudEvent(subject, Handle(tenancy, name)) for _, subject, tenancy, name in found])


def _prepare(connection: apsw.Connection, path: str, syncs: SyncMode) -> None:
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    is_empty = not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    if application != APPLICATION_ID and not (application == 0 and is_empty):
        raise StoreForeign(path)
    require_format(Path(path), version)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full" if syncs == "itself" else "off")
    if syncs == "elsewhere":
        connection.wal_autocheckpoint(0)  # a checkpoint would move the log into the file without a sync
    if version < DATA_FORMAT:
        _create_tables(connection)


def _create_tables(connection: apsw.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if connection.pragma("user_version") < DATA_FORMAT:  # no other process was first
        connection.execute(SCHEMA)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", DATA_FORMAT)
    connection.execute("COMMIT")
