"""The rows behind objects, written by a bare synchronous loop: the limit of our writes, and a quick way to large files.

The rows are made beforehand, by our own codec, so that the bare loop does nothing but insert and commit.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from msgspec.structs import replace

from bench.kinds import BORN, MACHINE, REGISTRY, SEALER, Machine, machine
from remuda.store.codec import Codec, codecs
from remuda.store.readside.index import Names, index_entries
from remuda.store.readside.tables import ADDED, MODIFIED, ChangeCode, Tables
from remuda.store.sqlite.file import open_file
from remuda.store.sqlite.store import admit_kinds

__all__ = ["BareFile", "Rows", "stamped"]

_REVISION = (
    "INSERT INTO revisions (version, kind, name, change, time, document, before) VALUES (?, ?, ?, ?, ?, ?, NULL)"
)
_OBJECT = "INSERT OR REPLACE INTO objects (kind, name, version) VALUES (?, ?, ?)"
_ENTRY = "INSERT INTO entries (index_id, value, name) VALUES (?, ?, ?)"
_FORGET = "DELETE FROM revisions WHERE version = ?"
_HORIZON = "UPDATE horizon SET version = ?"
_CHECKPOINT_PAGES = 8_000


class Rows(NamedTuple):
    """Everything one write leaves in the tables."""

    version: int
    revision: tuple[Any, ...]
    pointer: tuple[Any, ...]
    entries: Sequence[tuple[Any, ...]]
    superseded: int | None
    """The revision that goes because history does not reach back to it."""


def stamped(resource: Machine, version: int, *, generation: int = 1) -> Machine:
    """Return a machine as the store would have written it."""
    metadata = replace(
        resource.metadata,
        uid=resource.name,
        generation=generation,
        resource_version=str(version),
        creation_timestamp=BORN,
    )
    return replace(resource, metadata=metadata)


class BareFile:
    """A store's file, opened by the store's own code and then written with bare SQL."""

    def __init__(self, path: Path) -> None:
        self._file = open_file(path)
        self.connection = self._file.writer
        self.connection.wal_autocheckpoint(_CHECKPOINT_PAGES)
        self._names = Names(self.connection, REGISTRY)
        self._codec = Codec(MACHINE, SEALER)
        admit_kinds(Tables(self.connection), self._names, codecs(REGISTRY, SEALER))
        self._kind = self._names.kind(MACHINE)
        self._version, _ = Tables(self.connection).horizon()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def rows(self, resource: Machine, *, change: ChangeCode = ADDED, superseded: int | None = None) -> Rows:
        """Return the rows of the next write, which is of `resource`."""
        self._version += 1
        version, name = self._version, resource.name
        document = self._codec.encode(stamped(resource, version))
        terms = self._names.indexed(self._kind, sorted(index_entries(MACHINE, resource))) if change == ADDED else []
        return Rows(
            version,
            (version, self._kind, name, change, BORN.timestamp(), document),
            (self._kind, name, version),
            [(index, value, name) for index, value in terms],
            superseded,
        )

    def write(self, rows: Iterable[Rows], *, commit_every: int) -> None:
        """Insert the rows of each write, and commit now and then."""
        execute = self.connection.execute
        pending = 0
        for version, revision, pointer, entries, superseded in rows:
            if not pending:
                execute("BEGIN IMMEDIATE")
            execute(_REVISION, revision)
            execute(_OBJECT, pointer)
            if entries:
                self.connection.executemany(_ENTRY, entries)
            if superseded is not None:
                execute(_FORGET, (superseded,))
            pending += 1
            if pending == commit_every:
                _commit(self.connection, version)
                pending = 0
        if pending:
            _commit(self.connection, version)

    def fill(self, *, objects: int, changes: int) -> None:
        """Write many machines at once, and change them in turn until there were so many changes."""
        self.connection.pragma("synchronous", "off")
        self.write(self._history(objects, changes), commit_every=20_000)
        self.connection.pragma("synchronous", "full")

    def _history(self, objects: int, changes: int) -> Iterator[Rows]:
        for number in range(changes):
            resource = machine(number % objects, total=objects)
            yield self.rows(resource, change=ADDED if number < objects else MODIFIED)


def _commit(connection: apsw.Connection, version: int) -> None:
    connection.execute(_HORIZON, (version,))
    connection.execute("COMMIT")
