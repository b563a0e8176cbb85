"""Files that are written with bare SQL, in one go: that of a store among them, as the store itself would have."""

from pathlib import Path
from typing import Self

import apsw
from msgspec.structs import replace

from bench.kinds import SEALER
from remuda.app import registry
from remuda.store.codec import codecs
from remuda.store.objects import Resource
from remuda.store.readside.index import Names, index_entries
from remuda.store.readside.tables import ADDED, MODIFIED, ChangeCode, Tables
from remuda.store.sqlite.file import open_file
from remuda.store.sqlite.store import admit_kinds

__all__ = ["BareFile", "BareStore"]

_REVISION = (
    "INSERT INTO revisions (version, kind, name, change, time, document, before) VALUES (?, ?, ?, ?, ?, ?, NULL)"
)
_OBJECT = "INSERT OR REPLACE INTO objects (kind, name, version) VALUES (?, ?, ?)"
_ENTRY = "INSERT INTO entries (index_id, value, name) VALUES (?, ?, ?)"


class BareFile:
    """A file, and what is written to it while a block runs."""

    connection: apsw.Connection

    def __enter__(self) -> Self:
        self.connection.pragma("synchronous", "off")
        self.connection.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.execute("COMMIT")
        self.close()

    def close(self) -> None:
        """Release it."""
        self.connection.close()


class BareStore(BareFile):
    """A store's file, with the kinds of all services."""

    def __init__(self, path: Path) -> None:
        self._file, known = open_file(path), registry()
        self.connection = self._file.writer
        self._names, self._codecs = Names(self.connection, known), codecs(known, SEALER)
        self._known = known
        admit_kinds(Tables(self.connection), self._names, self._codecs)
        self._version, _ = Tables(self.connection).horizon()

    def add(self, resource: Resource) -> None:
        """Write an object."""
        number = self._write(resource, ADDED)
        terms = self._names.indexed(number, sorted(index_entries(self._known.of(type(resource)), resource)))
        self.connection.executemany(_ENTRY, [(index, value, resource.name) for index, value in terms])

    def change(self, resource: Resource) -> None:
        """Write an object that is there otherwise, but for what it is found by."""
        self._write(resource, MODIFIED)

    def _write(self, resource: Resource, change: ChangeCode) -> int:
        self._version += 1
        number, name = self._names.kind(self._known.of(type(resource))), resource.name
        born = resource.metadata.creation_timestamp
        stamped = replace(resource, metadata=replace(resource.metadata, resource_version=str(self._version)))
        document = self._codecs[type(resource)].encode(stamped)
        assert born is not None
        self.connection.execute(_REVISION, (self._version, number, name, change, born.timestamp(), document))
        self.connection.execute(_OBJECT, (number, name, self._version))
        return number

    def close(self) -> None:
        """Say how far the store has come, and release it."""
        self.connection.execute("UPDATE horizon SET version = ?", (self._version,))
        self._file.close()
