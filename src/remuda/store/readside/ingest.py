"""Putting one change into the tables: the revision, the pointer to it, and the index entries.

Both backends change the tables here and nowhere else: the SQLite writer inside its batch, an informer for what an API
server tells it.
"""

from remuda.store.kinds import Kind
from remuda.store.objects import ResourceT
from remuda.store.readside.feed import Landed
from remuda.store.readside.tables import ADDED, DELETED, MODIFIED, Revision, Tables
from remuda.store.readside.terms import Names, moved_terms, terms_of
from remuda.store.readside.watching import landed

__all__ = ["Ingest"]


class Ingest:
    """Writes changes into the tables of one connection. Call it inside a transaction."""

    def __init__(self, tables: Tables, names: Names) -> None:
        self._tables = tables
        self._names = names

    def put(
        self,
        kind: Kind[ResourceT],
        resource: ResourceT,
        previous: ResourceT | None,
        *,
        document: bytes,
        before: bytes | None,
        time: float,
        floor: int,
        whole: bool = False,
    ) -> Landed[ResourceT]:
        """Write an object's new state. `before` is the previous document if that moved it (`Kind.is_moved`)."""
        number = self._names.kind(kind)
        code = ADDED if previous is None else MODIFIED
        revision = Revision(int(resource.version), resource.name, code, document, before)
        self._append(number, revision, previous, time=time, floor=floor)
        self._tables.point(number, resource.name, revision.version)
        old, new = moved_terms(kind, previous, resource)
        if old:
            self._tables.remove_entries(resource.name, self._names.indexed(number, sorted(old)))
        if new:
            self._tables.add_entries(resource.name, self._names.indexed(number, sorted(new)))
        return landed(revision, resource, previous if before is not None else None, whole=whole)

    def drop(
        self,
        kind: Kind[ResourceT],
        last: ResourceT,
        previous: ResourceT,
        *,
        document: bytes,
        before: bytes | None = None,
        time: float,
        floor: int,
    ) -> Landed[ResourceT]:
        """Remove an object, keeping its last state for watchers. `before` as in `put`."""
        number = self._names.kind(kind)
        revision = Revision(int(last.version), last.name, DELETED, document, before)
        self._append(number, revision, previous, time=time, floor=floor)
        self._tables.remove(number, last.name)
        self._tables.remove_entries(last.name, self._names.indexed(number, sorted(terms_of(kind, previous))))
        return landed(revision, last, previous if before is not None else None)

    def forget(self, kind: Kind[ResourceT], previous: ResourceT) -> None:
        """Remove an object that vanished while nobody watched: no change tells of it."""
        number = self._names.kind(kind)
        self._tables.remove(number, previous.name)
        self._tables.remove_entries(previous.name, self._names.indexed(number, sorted(terms_of(kind, previous))))
        self._tables.forget_revision(int(previous.version))

    def _append(self, number: int, revision: Revision, previous: ResourceT | None, *, time: float, floor: int) -> None:
        self._tables.add_revision(number, revision, time=time)
        if previous is not None and int(previous.version) <= floor:
            self._tables.forget_revision(int(previous.version))
