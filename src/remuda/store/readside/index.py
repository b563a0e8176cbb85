"""Terms: everything an object can be found by, as (index, value) pairs in one table.

Labels, owners, references and declared indexes differ only in the name of the index. Index names are interned as small
numbers per kind, because entries outnumber everything else in the file.
"""

from collections.abc import Iterable
from typing import Any

import apsw

from remuda.store.contract import Term, field_index, label_index
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import ResourceT
from remuda.store.readside.sql import Sql

IndexedTerm = tuple[int, str]
"""A term with the number that a file knows the index by."""

OWNER = "owner"
"""The index that finds children by the uid of their owner."""

MARKED = "marked"
"""The index that finds, under the empty value, whatever is being deleted."""


_NOTHING: frozenset[Term] = frozenset()


def reference_index(target: str) -> str:
    """Return the index that finds referrers by the name of their target."""
    return f"reference:{target}"


def terms_of(kind: Kind[ResourceT], resource: ResourceT) -> frozenset[Term]:
    """Return everything this object is found by."""
    sought = [(label_index(key), value) for key, value in resource.metadata.labels.items() if key not in kind.unsought]
    return _terms_but_labels(kind, resource).union(sought)


def moved_terms(
    kind: Kind[ResourceT], previous: ResourceT | None, resource: ResourceT
) -> tuple[frozenset[Term], frozenset[Term]]:
    """Return what an object is found by no more, and what it is found by from now on."""
    if previous is None:
        return _NOTHING, terms_of(kind, resource)
    relabelled = previous.metadata.labels != resource.metadata.labels
    read = terms_of if relabelled else _terms_but_labels
    old, new = read(kind, previous), read(kind, resource)
    return (_NOTHING, _NOTHING) if old == new else (old - new, new - old)


def _terms_but_labels(kind: Kind[ResourceT], resource: ResourceT) -> frozenset[Term]:
    terms: list[Term] = []
    if resource.metadata.owner_references:
        terms += [(OWNER, owner.uid) for owner in resource.metadata.owner_references]
    if kind.references:
        terms += [(reference_index(target), name) for target, name in kind.targets(resource)]
    if kind.indexes:
        terms += [(field_index(index.name), value) for index in kind.indexes for value in index.values(resource)]
    if resource.is_marked:
        terms.append((MARKED, ""))
    return frozenset(terms)


class Names:
    """The small numbers of kinds and indexes, read from the file and extended as new names appear."""

    def __init__(self, connection: apsw.Connection, registry: Registry) -> None:
        self._run = Sql(connection)
        self._registry = registry
        self._kinds: dict[str, int] = {}
        self._indexes: dict[tuple[int, str], int] = {}
        self._fresh: list[tuple[int, str]] = []
        self.reload()

    def reload(self) -> None:
        """Read all numbers from the file."""
        self._kinds = dict(self._run("SELECT name, id FROM kinds"))
        rows = self._run("SELECT kind, name, id FROM indexes")
        self._indexes = {(kind, name): number for kind, name, number in rows}

    def keep(self) -> None:
        """The numbers given since the last commit are in the file now."""
        self._fresh.clear()

    def forget(self) -> None:
        """Forget the numbers given since the last commit: it was rolled back. Asks nothing of the disk."""
        for fresh in self._fresh:
            self._indexes.pop(fresh, None)
        self._fresh.clear()

    def kind(self, kind: Kind[Any]) -> int:
        return self._kinds[kind.qualified]

    def find_index(self, kind: int, name: str) -> int | None:
        """Return the number of an index, or None if nothing was ever put under it."""
        return self._indexes.get((kind, name))

    def index(self, kind: int, name: str) -> int:
        """Return the number of an index, giving it one if it is new. Only inside a write transaction."""
        number: int | None = self._indexes.get((kind, name))
        if number is None:
            ((number,),) = self._run("INSERT INTO indexes (kind, name) VALUES (?, ?) RETURNING id", kind, name)
            self._indexes[kind, name] = number
            self._fresh.append((kind, name))
        return number

    def indexed(self, kind: int, terms: Iterable[Term]) -> list[IndexedTerm]:
        """Return terms with their indexes as numbers, giving new ones where needed."""
        return [(self.index(kind, name), value) for name, value in terms]

    def indexes_of(self, kind: int) -> list[int]:
        """Return the numbers of all indexes of a kind."""
        return [number for (of, _), number in self._indexes.items() if of == kind]

    def admit_kinds(self) -> list[Kind[Any]]:
        """Number the registry's kinds and return those whose index entries must be built anew."""
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
