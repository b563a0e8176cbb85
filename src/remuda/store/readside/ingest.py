"""Putting one change into the tables: the revision, the pointer to it, and the index entries.

Both backends change the tables here and nowhere else: the SQLite writer inside its batch, an informer for what an API
server tells it.
"""

from collections.abc import Callable, Iterable
from functools import partial

from remuda.store.kinds import Kind
from remuda.store.objects import ResourceT
from remuda.store.readside.change_feed import Landed
from remuda.store.readside.index import Names, moved_terms, terms_of
from remuda.store.readside.reads import landed
from remuda.store.readside.tables import ADDED, DELETED, MODIFIED, Revision, Tables

Later = Callable[[Callable[[], None]], None]
"""Takes work that has to be done in the same transaction, and not at once."""

_AT_ONCE = 500


def _now(work: Callable[[], None]) -> None:
    work()


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
        later: Later | None = None,
    ) -> Landed[ResourceT]:
        """Remove an object, keeping its last state for watchers. `before` as in `put`.

        An object may be found by thousands of terms. With `later` they are removed some at a time.
        """
        number = self._names.kind(kind)
        revision = Revision(int(last.version), last.name, DELETED, document, before)
        self._append(number, revision, previous, time=time, floor=floor)
        self._tables.remove(number, last.name)
        terms = list(terms_of(kind, previous))
        self._remove_terms(number, last.name, terms[:_AT_ONCE])
        for start in range(_AT_ONCE, len(terms), _AT_ONCE):
            remove = partial(self._remove_terms, number, last.name, terms[start : start + _AT_ONCE])
            (later or _now)(remove)
        return landed(revision, last, previous if before is not None else None)

    def forget(self, kind: Kind[ResourceT], previous: ResourceT) -> None:
        """Remove an object that vanished while nobody watched: no change tells of it."""
        number = self._names.kind(kind)
        self._tables.remove(number, previous.name)
        self._remove_terms(number, previous.name, terms_of(kind, previous))
        self._tables.forget_revision(int(previous.version))

    def _remove_terms(self, number: int, name: str, terms: Iterable[tuple[str, str]]) -> None:
        self._tables.remove_entries(name, self._names.indexed(number, sorted(terms)))

    def _append(self, number: int, revision: Revision, previous: ResourceT | None, *, time: float, floor: int) -> None:
        self._tables.add_revision(number, revision, time=time)
        if previous is not None and int(previous.version) <= floor:
            self._tables.forget_revision(int(previous.version))
