"""Change feed: the recent changes of one kind, the watchers that wait for the next one, and the change counters.

A watcher has a cursor, not a queue: it reads the shared tail, or the table if it fell behind the tail. So idle watchers
cost nothing, and a slow one gets Gone only when compaction has passed it. One of some index entries waits under these,
so that other changes do not wake it.

The change counters count publications. Of a kind whose index entries were dependencies there are also the counts of
recently changed entries; all others were not changed after `_floor`. If very many entries change at once, the whole
kind counts as changed. A counter can be too high, which costs an unnecessary read, but never too low.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic

import msgspec

from remuda.kernel.errors import Gone
from remuda.store.contract import NAME_INDEX, Change, Dependency, IndexEntry, field_index, label_index
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.tables import ChangeCode


class CommittedChange(msgspec.Struct, Generic[ResourceT], frozen=True, gc=False):
    """A durable change, as watchers need it."""

    name: str
    version: int
    code: ChangeCode
    event: Change[ResourceT]
    """The event for a watcher without a filter."""
    before: ResourceT | None
    """The state before, if the change reindexes the object: only then can it enter or leave a filter."""
    weight: int
    fully_known: bool = False
    """Whether the document is known to have no fields that our types do not know."""


_Waiter = asyncio.Future[int]

_NO_ENTRY: Sequence[IndexEntry] = (("", ""),)
"""The entry of a watcher that no change concerns: there is no object under it."""


class Feed:
    """The tail of one kind's history."""

    def __init__(self, kind: Kind[Any], *, reached: int, floor: int, keep: int, keep_bytes: int) -> None:
        self.kind, self.reached, self.floor = kind, reached, floor
        self.ticks = 0
        self.closed: Exception | None = None
        """The error that readers get once the store is closed."""
        self._keep, self._keep_bytes = keep, keep_bytes
        self._tail: list[CommittedChange[Any]] = []
        self._tail_from = reached
        self._tail_bytes = 0
        self._last_change = reached
        self._waiters: dict[_Waiter, None] = {}
        self._waiting: dict[IndexEntry, dict[_Waiter, None]] = {}
        """Waiters for changes of what is under an index entry, and of nothing else."""
        self._found: dict[_Waiter, int] = {}
        """Those of them for whom there is a change, with the version before it."""
        self._has_changes = False
        self._waiting_for_version = 0

    def extend(self, changes: Sequence[CommittedChange[Any]]) -> None:
        """Append changes in the order of their versions. Of very many, the last `keep` are enough."""
        if len(changes) >= self._keep:
            self._tail, self._tail_from, self._tail_bytes = [], changes[0].version - 1, 0
            self._find_all_waiters(0)  # there may have been changes before these
        self._tail.extend(changes)
        self._find_waiters(changes)
        self._tail_bytes += sum(change.weight for change in changes)
        self._has_changes = True
        self._last_change = max(self._last_change, changes[-1].version) if changes else self._last_change
        if len(self._tail) > 2 * self._keep or self._tail_bytes > 2 * self._keep_bytes:
            self._trim()

    def _find_waiters(self, changes: Sequence[CommittedChange[Any]]) -> None:
        for change in changes:
            if not self._waiting:
                break
            for entry in _affected_entries(self.kind, change):
                for waiter in self._waiting.pop(entry, ()):
                    self._found.setdefault(waiter, change.version - 1)

    def _trim(self) -> None:
        """Drop the oldest changes. Only at twice the limit, so that it happens rarely."""
        drop = max(0, len(self._tail) - self._keep)
        self._tail_bytes -= sum(change.weight for change in self._tail[:drop])
        while drop < len(self._tail) and self._tail_bytes > self._keep_bytes:
            self._tail_bytes -= self._tail[drop].weight
            drop += 1
        if drop:
            self._tail_from = self._tail[drop - 1].version
            del self._tail[:drop]

    def close(self, reason: Exception) -> None:
        """End all waits, because there will be no more changes."""
        self.closed = reason
        self._wake_all(self.reached)

    def advance(self, version: int) -> None:
        """Record that all changes up to this version have arrived, and notify the waiters."""
        self.reached = max(self.reached, version)
        if not self._has_changes and not self._waiting_for_version:
            return
        self._has_changes = False
        waiters, self._waiters = self._waiters, {}
        found, self._found = self._found, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(0)
        for waiter, before in found.items():
            if not waiter.done():
                waiter.set_result(before)

    def _find_all_waiters(self, upto: int) -> None:
        """Let all waiters be notified; those for whom there is no change, that there was none up to this version."""
        waiting, self._waiting = self._waiting, {}
        for waiters in waiting.values():
            for waiter in waiters:
                self._found.setdefault(waiter, upto)

    def _wake_all(self, upto: int) -> None:
        self._find_all_waiters(upto)
        self._has_changes = True
        self.advance(self.reached)

    def tick(self) -> None:
        """Make idle watchers send a bookmark."""
        self.ticks += 1
        self._wake_all(self.reached)

    def lose_history(self, version: int) -> None:
        """Record that changes up to this version were missed: watchers before it get Gone."""
        self._tail.clear()
        self._tail_bytes = 0
        self._tail_from = self._last_change = self.floor = version
        self._wake_all(0)

    def compact(self, version: int) -> None:
        """Record that history up to this version is compacted. A kind without changes in it loses nothing."""
        self.floor = max(self.floor, min(version, self._last_change))

    def after(self, cursor: int, *, limit: int) -> Sequence[CommittedChange[Any]] | None:
        """Return the next changes after a version, or None if they are older than the tail."""
        if cursor < self._tail_from:
            return None
        start = len(self._tail)
        while start and self._tail[start - 1].version > cursor:
            start -= 1
        return self._tail[start : start + limit]

    async def wait(self, entries: Sequence[IndexEntry] | None = None) -> int:
        """Wait for a change, or for one of what is under some index entries; wake for a bookmark, too.

        Return the version up to which there was none under these, so that the reader can continue from there.
        """
        if self.closed is not None:
            raise self.closed
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        for waiters in self._waiters_for(entries):
            waiters[waiter] = None
        try:
            return await waiter
        finally:
            self._remove(waiter, entries)

    def _waiters_for(self, entries: Sequence[IndexEntry] | None) -> list[dict[_Waiter, None]]:
        if entries is None:
            return [self._waiters]
        return [self._waiting.setdefault(entry, {}) for entry in entries or _NO_ENTRY]

    def _remove(self, waiter: _Waiter, entries: Sequence[IndexEntry] | None) -> None:
        self._waiters.pop(waiter, None)
        self._found.pop(waiter, None)
        for entry in (entries or _NO_ENTRY) if entries is not None else ():
            waiting = self._waiting.get(entry, {})
            waiting.pop(waiter, None)
            if not waiting:
                self._waiting.pop(entry, None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that only the arrival of versions can make true."""
        self._waiting_for_version += 1
        try:
            while not condition():
                await self.wait()
        finally:
            self._waiting_for_version -= 1

    async def reach(self, version: int, timeout_s: float) -> None:
        """Wait until everything up to `version` has arrived, or raise Gone after the timeout."""
        if self.reached >= version:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self.until(lambda: self.reached >= version)
        except TimeoutError:
            raise Gone(self.kind.name, str(version)) from None


_MAX_RECENT_ENTRIES = 4_096
"""Index entries per kind whose last change is recorded."""
_MAX_ENTRIES_PER_CHANGE = 1_000
"""Index entries that one publication may examine: it blocks the event loop meanwhile."""


class _RecentEntries:
    """The index entries of one kind that were changed last."""

    __slots__ = ("_at", "_floor")

    def __init__(self, floor: int) -> None:
        self._floor = floor
        self._at: OrderedDict[IndexEntry, int] = OrderedDict()

    def note(self, entries: Iterable[IndexEntry], count: int) -> None:
        for entry in entries:
            self._at[entry] = count
            self._at.move_to_end(entry)
        while len(self._at) > _MAX_RECENT_ENTRIES:
            _, self._floor = self._at.popitem(last=False)

    def at(self, entry: IndexEntry) -> int:
        return self._at.get(entry, self._floor)


class ChangeCounters:
    """The last changes of all kinds."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self._count = 0
        self._whole: dict[type[Resource], int] = {kind.type: 0 for kind in kinds}
        self._recent: dict[type[Resource], _RecentEntries] = {}

    def change(self, kind: Kind[Any], changes: Sequence[CommittedChange[Any]]) -> None:
        self._count += 1
        self._whole[kind.type] = self._count
        recent = self._recent.get(kind.type)
        if recent is None:
            return
        entries = list(
            islice(
                (entry for change in changes for entry in _affected_entries(kind, change)), _MAX_ENTRIES_PER_CHANGE + 1
            )
        )
        if len(entries) > _MAX_ENTRIES_PER_CHANGE:
            del self._recent[kind.type]
        else:
            recent.note(entries, self._count)

    def change_all(self, kind: Kind[Any]) -> None:
        """Record that anything of a kind may have changed."""
        self._count += 1
        self._whole[kind.type] = self._count
        self._recent.pop(kind.type, None)

    def last(self, parts: Iterable[Dependency] | None = None) -> int:
        """Return the count of the last change of any of these dependencies, or of the whole store."""
        return self._count if parts is None else max(map(self._at, parts), default=0)

    def _at(self, part: Dependency) -> int:
        if not isinstance(part, tuple):
            return self._whole[part]
        kind, entry = part
        recent = self._recent.get(kind)
        if recent is None:
            recent = self._recent[kind] = _RecentEntries(self._whole[kind])
        return recent.at(entry)


def _affected_entries(kind: Kind[Any], change: CommittedChange[Any]) -> Iterator[IndexEntry]:
    yield from found_under(kind, change.event.resource)
    if change.before is not None:
        yield from found_under(kind, change.before)


def found_under(kind: Kind[Any], resource: Resource) -> Iterator[IndexEntry]:
    """Yield the entries under which lists find an object."""
    yield NAME_INDEX, resource.name
    for key, value in resource.metadata.labels.items():
        yield label_index(key), value
    for index in kind.indexes:
        name = field_index(index.name)
        for value in index.values(resource):
            yield name, value
