"""Index entries of objects, as (index, value) pairs in one table.

Labels, owners, references and declared indexes differ only in the name of the index. Index names are interned as small
integers per kind, because there are more entries than anything else in the file.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw

from remuda.store.contract import IndexEntry, field_index, label_index
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.sql import Sql

NumberedEntry = tuple[int, str]
"""An index entry with the index as its number in the file."""

OWNER = "owner"
"""The index of children by the uid of their owner."""

DELETING = "deleting"
"""The index of objects that are being deleted, under the empty value."""


_DECLARED = field_index("")
_NO_ENTRIES: frozenset[IndexEntry] = frozenset()


def reference_index(target: str) -> str:
    return f"reference:{target}"


class IndexChange(NamedTuple):
    """The index entries that a change of an object removes and adds."""

    removed: frozenset[IndexEntry]
    added: frozenset[IndexEntry]
    unlabelled: frozenset[IndexEntry]
    """All that it has after the change, except those of its labels."""


def index_entries(kind: Kind[ResourceT], resource: ResourceT) -> frozenset[IndexEntry]:
    return _entries_except_labels(kind, resource) | _label_entries(kind, resource)


def is_reindexed(previous: Resource, resource: Resource, changed: IndexChange) -> bool:
    """Return whether a change affects labels or values in declared indexes, as `Kind.is_reindexed` does."""
    if previous.metadata.labels != resource.metadata.labels:
        return True
    return any(name.startswith(_DECLARED) for entries in (changed.removed, changed.added) for name, _ in entries)


def changed_index_entries(
    kind: Kind[ResourceT],
    previous: ResourceT | None,
    resource: ResourceT,
    *,
    before: frozenset[IndexEntry] | None = None,
) -> IndexChange:
    """Return the index entries that a change removes and adds; `before` are the unlabelled ones of the previous state.

    They are computed if the caller does not have them.
    """
    unlabelled = new = _entries_except_labels(kind, resource)
    if previous is None:
        return IndexChange(_NO_ENTRIES, new | _label_entries(kind, resource), unlabelled)
    old = _entries_except_labels(kind, previous) if before is None else before
    if previous.metadata.labels != resource.metadata.labels:
        old, new = old | _label_entries(kind, previous), new | _label_entries(kind, resource)
    if old == new:
        return IndexChange(_NO_ENTRIES, _NO_ENTRIES, unlabelled)
    return IndexChange(old - new, new - old, unlabelled)


def _label_entries(kind: Kind[ResourceT], resource: ResourceT) -> frozenset[IndexEntry]:
    labels = resource.metadata.labels
    return frozenset([(label_index(key), value) for key, value in labels.items() if key not in kind.unindexed])


def _entries_except_labels(kind: Kind[ResourceT], resource: ResourceT) -> frozenset[IndexEntry]:
    entries: list[IndexEntry] = []
    if resource.metadata.owner_references:
        entries += [(OWNER, owner.uid) for owner in resource.metadata.owner_references]
    if kind.references:
        entries += [(reference_index(target), name) for target, name in kind.targets(resource)]
    if kind.indexes:
        entries += [(field_index(index.name), value) for index in kind.indexes for value in index.values(resource)]
    if resource.is_deleting:
        entries.append((DELETING, ""))
    return frozenset(entries)


class Names:
    """The numbers of kinds and indexes, read from the file and extended for new names."""

    def __init__(self, connection: apsw.Connection, registry: Registry) -> None:
        self._run = Sql(connection)
        self._registry = registry
        self._kinds: dict[str, int] = {}
        self._indexes: dict[tuple[int, str], int] = {}
        self._uncommitted: list[tuple[int, str]] = []
        self.reload()

    def reload(self) -> None:
        self._kinds = dict(self._run("SELECT name, id FROM kinds"))
        rows = self._run("SELECT kind, name, id FROM indexes")
        self._indexes = {(kind, name): number for kind, name, number in rows}

    def commit(self) -> None:
        """Accept the numbers assigned since the last commit: they are in the file now."""
        self._uncommitted.clear()

    def roll_back(self) -> None:
        """Discard the numbers assigned since the last commit, because it was rolled back. Reads nothing from disk."""
        for uncommitted in self._uncommitted:
            self._indexes.pop(uncommitted, None)
        self._uncommitted.clear()

    def kind(self, kind: Kind[Any]) -> int:
        return self._kinds[kind.qualified]

    def find_index(self, kind: int, name: str) -> int | None:
        """Return the number of an index, or None if it never had an entry."""
        return self._indexes.get((kind, name))

    def index(self, kind: int, name: str) -> int:
        """Return the number of an index, assigning one if it is new. Only inside a write transaction."""
        number: int | None = self._indexes.get((kind, name))
        if number is None:
            ((number,),) = self._run("INSERT INTO indexes (kind, name) VALUES (?, ?) RETURNING id", kind, name)
            self._indexes[kind, name] = number
            self._uncommitted.append((kind, name))
        return number

    def indexed(self, kind: int, entries: Iterable[IndexEntry]) -> list[NumberedEntry]:
        """Return entries with their indexes as numbers, assigning new ones if needed."""
        return [(self.index(kind, name), value) for name, value in entries]

    def indexes_of(self, kind: int) -> list[int]:
        return [number for (of, _), number in self._indexes.items() if of == kind]

    def admit_kinds(self) -> list[Kind[Any]]:
        """Assign numbers to the registry's kinds, and return those whose index entries must be rebuilt."""
        known = dict(self._run("SELECT name, signature FROM kinds"))
        stale = []
        for kind in self._registry.kinds:
            if kind.qualified not in known:
                sql = "INSERT INTO kinds (name, signature) VALUES (?, ?)"
                self._run(sql, kind.qualified, kind.signature)
            elif known[kind.qualified] != kind.signature:
                sql = "UPDATE kinds SET signature = ? WHERE name = ?"
                self._run(sql, kind.signature, kind.qualified)
                stale.append(kind)
        self.reload()
        return stale
