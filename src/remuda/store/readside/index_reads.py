"""Reads of the index: which index entries a list reads, in which order.

A list by several index entries reads the rarest one, found by counting up to a limit. If none is rare, counting takes
as long as reading a page, so its result is reused for a while. A list by any of several entries has a scan for each.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from remuda.store.contract import NAME_INDEX, IndexEntry, field_index, label_index
from remuda.store.kinds import Kind
from remuda.store.readside.index import Names, NumberedEntry
from remuda.store.readside.tables import IndexRead, Tables

_RARE_ENOUGH = 10
"""An index entry with fewer objects is rare enough."""
_COUNT_LIMITS = (200, 1_000, 5_000)
"""Limits for counting objects, tried in turn. Beyond the last one, the order does not matter."""
_STORE_FROM = 1_000
"""Orders that are found by counting less are not stored."""
_USES_PER_COUNT = 100
"""Number of uses of a stored order before the objects are counted again."""
_MAX_STORED = 1_000
_SCAN_LENGTH = 1_000
"""Index entries that are scanned in search of a name before other tasks run."""

IndexEntries = tuple[NumberedEntry, ...]


class ScanPlanner:
    """Orders index entries for a scan, and stores the orders that were expensive to find."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[IndexEntries, tuple[IndexEntries, int]] = {}

    def by_selectivity(self, entries: Sequence[NumberedEntry]) -> Sequence[NumberedEntry]:
        """Return index entries, the one with the fewest objects first."""
        if len(entries) <= 1:
            return entries
        key = tuple(entries)
        order, uses = self._known.get(key, (key, 0))
        if not uses:
            return self._found(key)
        self._known[key] = order, uses - 1
        return order

    def _found(self, entries: IndexEntries) -> IndexEntries:
        self._known.pop(entries, None)
        order, least = self._counted(entries)
        if least >= _STORE_FROM:
            if len(self._known) >= _MAX_STORED:
                self._known.clear()
            self._known[entries] = order, _USES_PER_COUNT
        return order

    def _counted(self, entries: IndexEntries) -> tuple[IndexEntries, int]:
        """Return the entries in order, and the lower bound of the objects of the first."""
        for entry in entries:
            count = self._tables.count_under(entry, limit=_RARE_ENOUGH)
            if count < _RARE_ENOUGH:
                return (entry, *(other for other in entries if other is not entry)), count
        for limit in _COUNT_LIMITS:
            counts = {entry: self._tables.count_under(entry, limit=limit) for entry in entries}
            if min(counts.values()) < limit:
                return tuple(sorted(entries, key=counts.__getitem__)), min(counts.values())
        return entries, _COUNT_LIMITS[-1]


class IndexReader:
    """Plans lists and finds their names."""

    def __init__(self, tables: Tables, names: Names) -> None:
        self._tables, self._names = tables, names
        self._planner = ScanPlanner(tables)

    def reads(
        self,
        kind: Kind[Any],
        labels: Mapping[str, str],
        index: tuple[str, str] | None,
        any_of: Sequence[IndexEntry] | None,
    ) -> Sequence[IndexRead]:
        """Return the reads whose union is the list; none if one of the required entries has no objects."""
        kind.check_indexed(labels)
        requested = [(label_index(key), value) for key, value in labels.items()]
        if index is not None:
            kind.check_index(index[0])
            requested.append((field_index(index[0]), index[1]))
        number = self._names.kind(kind)
        required = [entry for each in requested if (entry := self._numbered(number, each)) is not None]
        if len(required) < len(requested):
            return ()
        if any_of is None:
            return [IndexRead(self._planner.by_selectivity(required))]
        return [*self._alternatives(number, required, any_of)]

    def _alternatives(
        self, kind: int, required: Sequence[NumberedEntry], any_of: Sequence[IndexEntry]
    ) -> Iterator[IndexRead]:
        if names := [value for index, value in any_of if index == NAME_INDEX]:
            yield IndexRead(required, names)
        for each in any_of:
            entry = None if each[0] == NAME_INDEX else self._numbered(kind, each)
            if entry is not None:
                entries = required if entry in required else [*required, entry]
                yield IndexRead(self._planner.by_selectivity(entries))

    def _numbered(self, kind: int, entry: IndexEntry) -> NumberedEntry | None:
        """Return an entry with the number of its index, or None if that never had an entry."""
        index = self._names.find_index(kind, entry[0])
        return None if index is None else (index, entry[1])

    def find(
        self, kind: Kind[Any], reads: Sequence[IndexRead], *, after: str, limit: int
    ) -> tuple[Sequence[str], str | None]:
        """Return the next names, and the name that the reads have reached if they stopped early."""
        if not reads:
            return (), None
        number = self._names.kind(kind)
        if not reads[0].entries and reads[0].names is None:
            return self._tables.names(number, after=after, limit=limit), None
        length = max(1, _SCAN_LENGTH // len(reads))
        reached = [
            name
            for read in reads
            if len(read.entries) > 1 and read.names is None
            if (name := self._tables.name_at(read.entries[0], after=after, distance=length)) is not None
        ]
        upto = min(reached, default=None)
        return self._tables.names_of_any(number, reads, after=after, upto=upto, limit=limit), upto
