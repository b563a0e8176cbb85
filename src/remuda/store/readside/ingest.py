"""Ingest of changes into the tables: the revision, the pointer to it, and the index entries.

Both backends change the tables only here: the SQLite writer inside its batch, an informer for the events of an API
server.
"""

from collections.abc import Callable, Iterable
from functools import partial

from remuda.store.kinds import Kind
from remuda.store.objects import ResourceT
from remuda.store.readside.change_feed import CommittedChange
from remuda.store.readside.index import IndexChange, Names, changed_index_entries, index_entries
from remuda.store.readside.reads import committed_change
from remuda.store.readside.tables import ADDED, DELETED, MODIFIED, Revision, Tables

Later = Callable[[Callable[[], None]], None]
"""Schedules work for later in the same transaction."""

_ENTRIES_PER_STEP = 500


class Ingest:
    """Writes changes into the tables of one connection. Call it inside a transaction."""

    def __init__(self, tables: Tables, names: Names) -> None:
        self._tables, self._names = tables, names

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
        fully_known: bool = False,
        changed: IndexChange | None = None,
    ) -> CommittedChange[ResourceT]:
        """Write an object's new state.

        `before` is the previous document if `Kind.is_reindexed` by the change, and `changed` are the
        `changed_index_entries` if the caller has them.
        """
        number = self._names.kind(kind)
        code = ADDED if previous is None else MODIFIED
        revision = Revision(int(resource.version), resource.name, code, document, before)
        self._append(number, revision, previous, time=time, floor=floor)
        self._tables.point(number, resource.name, revision.version)
        changed = changed or changed_index_entries(kind, previous, resource)
        if changed.removed:
            self._tables.remove_entries(resource.name, self._names.indexed(number, sorted(changed.removed)))
        if changed.added:
            self._tables.add_entries(resource.name, self._names.indexed(number, sorted(changed.added)))
        return committed_change(revision, resource, previous if before is not None else None, fully_known=fully_known)

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
    ) -> CommittedChange[ResourceT]:
        """Remove an object, keeping its last state for watchers. With `later`, index entries go in several steps."""
        number = self._names.kind(kind)
        revision = Revision(int(last.version), last.name, DELETED, document, before)
        self._append(number, revision, previous, time=time, floor=floor)
        self._tables.remove(number, last.name)
        entries = list(index_entries(kind, previous))
        self._remove_entries(number, last.name, entries[:_ENTRIES_PER_STEP])
        for start in range(_ENTRIES_PER_STEP, len(entries), _ENTRIES_PER_STEP):
            remove = partial(self._remove_entries, number, last.name, entries[start : start + _ENTRIES_PER_STEP])
            remove() if later is None else later(remove)
        return committed_change(revision, last, previous if before is not None else None)

    def forget(self, kind: Kind[ResourceT], previous: ResourceT) -> None:
        """Remove an object that disappeared while there was no watch, so that there is no change to record."""
        number = self._names.kind(kind)
        self._tables.remove(number, previous.name)
        self._remove_entries(number, previous.name, index_entries(kind, previous))
        self._tables.forget_revision(int(previous.version))

    def _remove_entries(self, number: int, name: str, entries: Iterable[tuple[str, str]]) -> None:
        self._tables.remove_entries(name, self._names.indexed(number, sorted(entries)))

    def _append(self, number: int, revision: Revision, previous: ResourceT | None, *, time: float, floor: int) -> None:
        self._tables.add_revision(number, revision, time=time)
        if previous is not None and int(previous.version) <= floor:
            self._tables.forget_revision(int(previous.version))
