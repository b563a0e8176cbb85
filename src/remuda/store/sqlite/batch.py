"""Batch: the writes that share one commit, and the state they see.

Every request of a batch is validated against the published state plus the earlier writes of the batch, so that two
writes in one commit conflict just as in two commits. Readers see nothing of it before it is published. Log records are
written in the commit of the change they belong to.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from remuda.kernel.errors import AlreadyExists
from remuda.kernel.randomness import Randomness
from remuda.store.codec import Codec
from remuda.store.contract import Referrer, Rendering, label_index
from remuda.store.kinds import Kind, Registry
from remuda.store.logs import Record
from remuda.store.objects import Resource, ResourceT, at_version
from remuda.store.readside.cache import CachedObject
from remuda.store.readside.change_feed import CommittedChange
from remuda.store.readside.history import HistorySize, change_bytes
from remuda.store.readside.index import OWNER, Names, changed_index_entries, is_reindexed, reference_index
from remuda.store.readside.ingest import Ingest
from remuda.store.readside.reader import Reader
from remuda.store.readside.tables import Tables
from remuda.store.sqlite.log_tables import LogTables
from remuda.store.sqlite.written_objects import RecentWrites, WrittenObject
from remuda.store.validation import DOCUMENT_LIMIT, check_size


@dataclass(frozen=True, kw_only=True)
class WriteSide:
    """The parts of the store that a batch needs: the connection that writes, and the published state."""

    registry: Registry
    codecs: Mapping[type[Resource], Codec[Any]]
    tables: Tables
    logs: LogTables
    names: Names
    reader: Reader
    randomness: Randomness
    history: HistorySize
    recent: RecentWrites = field(default_factory=RecentWrites)


_COMPACTION_ROWS = 50
"""Revisions that one step of a batch removes."""


class Batch:
    """The writes of one transaction."""

    def __init__(self, side: WriteSide, *, version: int, floor: int, now: datetime) -> None:
        self.registry = side.registry
        self.randomness = side.randomness
        self.now = now
        self.second = now.replace(microsecond=0)
        """The present time with the precision of documents."""
        self.version, self.floor = version, floor
        self.bytes = 0
        """Size of the changes in the batch."""
        self.is_dirty = False
        self._side = side
        self._time = now.timestamp()
        self._ingest = Ingest(side.tables, side.names)
        self._changes: dict[int, deque[CommittedChange[Any]]] = {}
        self._evicted: set[tuple[int, str]] = set()
        """Objects whose changes are too many to keep: watchers read them from the tables."""
        self._entries: dict[tuple[int, str], CachedObject[Any] | None] = {}
        """Objects as the batch has found or changed them."""
        self._sizes: list[tuple[int, int]] = []
        self._is_compacting = False
        self._cascades: deque[Callable[[Batch], None]] = deque()
        self._after_cascades: dict[tuple[str, str], Callable[[Batch], None]] = {}

    def find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        entry = self._entry(kind, name)
        return entry.resource if entry else None

    def state_of(self, kind: Kind[ResourceT], found: ResourceT) -> ResourceT | None:
        """Return the present state of an object that the batch has found before, without reading from disk."""
        entry = self._entries[self._side.names.kind(kind), found.name]
        return entry.resource if entry is not None and entry.resource.uid == found.uid else None

    def put(
        self, kind: Kind[ResourceT], resource: ResourceT, previous: ResourceT | None, *, is_requested: bool = False
    ) -> ResourceT:
        """Write an object under the next version and return it with that version.

        Only a write that a caller requests is limited in size: the store itself must be able to remove any finalizer.
        """
        number = self._side.names.kind(kind)
        resource = self._with_next_version(resource)
        codec = self._side.codecs[kind.type]
        whole = previous is None or self._resolve_fully_known(kind, previous)
        if whole:
            document = codec.encode(resource)
        else:
            current = self._side.tables.find(number, resource.name)
            assert current is not None, "the previous state of an object is in the tables"
            document = codec.encode_over(current.document, resource)
        if is_requested and len(document) > DOCUMENT_LIMIT:
            current = self._side.tables.find(number, resource.name)
            check_size(document, before=len(current.document) if current else 0)
        written = None if previous is None else self._side.recent.find(previous)
        changed = changed_index_entries(kind, previous, resource, before=None if written is None else written.entries)
        before = None
        if previous is not None and is_reindexed(previous, resource, changed):
            before = codec.encode(previous) if written is None else written.document
        change = self._ingest.put(
            kind,
            resource,
            previous,
            document=document,
            before=before,
            time=self._time,
            floor=self.floor,
            fully_known=whole,
            changed=changed,
        )
        if whole:
            self._side.recent.add(WrittenObject(resource, document, changed.unlabelled))
        self._record(number, change, CachedObject(resource, change.weight, whole))
        self._grow_history(change.version, change_bytes(document, before))
        return resource

    def needs_sealing(self, kind: Kind[ResourceT], stored: ResourceT) -> bool:
        """Return whether the stored object is sealed with an earlier key, so that a rewrite changes it."""
        if not kind.has_secrets:
            return False
        current = self._side.tables.find(self._side.names.kind(kind), stored.name)
        return current is not None and self._side.codecs[kind.type].is_sealed_by_an_earlier_key(
            current.document, stored.name
        )

    def drop(self, kind: Kind[ResourceT], last: ResourceT, previous: ResourceT) -> ResourceT:
        """Remove an object, keeping its last state for watchers, and return that state."""
        last = self._with_next_version(last)
        codec = self._side.codecs[kind.type]
        document = codec.encode(last)
        before = codec.encode(previous) if kind.is_reindexed(last, previous) else None
        change = self._ingest.drop(
            kind,
            last,
            previous,
            document=document,
            before=before,
            time=self._time,
            floor=self.floor,
            later=lambda work: self.cascade(lambda _: work()),
        )
        self._record(self._side.names.kind(kind), change, None)
        self._grow_history(change.version, change_bytes(document, before))
        return last

    def compact(self, floor: int, *, limit: int) -> None:
        """Remove superseded revisions up to a version, among the next `limit` rows, and raise the floor to there."""
        if floor > self.floor:
            self.floor = self._side.tables.compact(after=self.floor, upto=floor, limit=limit)
            self._side.tables.set_floor(self.floor)
            self.is_dirty = True

    def _grow_history(self, version: int, size: int) -> None:
        """Count a change, and drop as much of the history as it takes beyond the limit, in the same commit."""
        self.bytes += size
        self._sizes.append((version, size))
        if not self._is_compacting and self._side.history.bytes + self.bytes > self._side.history.limit:
            self._is_compacting = True
            self.cascade(Batch._compact_excess)

    def _compact_excess(self) -> None:
        floor = self._side.history.floor(self.bytes)
        self.compact(floor, limit=_COMPACTION_ROWS)
        self._is_compacting = floor > self.floor
        if self._is_compacting:
            self.cascade(Batch._compact_excess)

    def log(self, records: Sequence[Record]) -> None:
        once = [(record.stream, record.subject) for record in records if record.once]
        for stream, subject in once:
            if once.count((stream, subject)) > 1 or self._side.logs.has(stream, subject):
                raise AlreadyExists(stream, subject)
        if records:
            self.is_dirty = True
            self._side.logs.append(records, self.now)
            for record in records:
                record.acknowledge()

    def children(self, owner: Resource, *, after: str = "", limit: int = 100) -> Iterator[tuple[Kind[Any], str]]:
        """Yield some of the children of an owner: of each kind those whose names come after `after`."""
        for kind in self.registry.kinds:
            index = self._side.names.find_index(self._side.names.kind(kind), OWNER)
            if index is not None:
                for name in self._side.tables.names_under([(index, owner.uid)], after=after, limit=limit):
                    yield kind, name

    def referrers(self, target: Kind[Any], name: str) -> Iterator[Referrer]:
        for kind in self.registry.referrers_of(target):
            index = self._side.names.find_index(self._side.names.kind(kind), reference_index(target.qualified))
            after = ""
            while index is not None and (
                names := self._side.tables.names_under([(index, name)], after=after, limit=50)
            ):
                yield from (Referrer(kind, referrer) for referrer in names)
                after = names[-1]

    def count_labelled(self, kind: Kind[Any], label: str, value: str, limit: int) -> int:
        """Return the number of objects with a label, including those of this batch, up to a limit."""
        index = self._side.names.find_index(self._side.names.kind(kind), label_index(label))
        return 0 if index is None else self._side.tables.count_under((index, value), limit=limit)

    def cascade(self, step: Callable[["Batch"], None]) -> None:
        """Schedule a step for later in the same commit."""
        self._cascades.append(step)

    def after_cascades(self, kind: Kind[Any], name: str, step: Callable[["Batch"], None]) -> None:
        """Schedule a step that runs once per object, after all cascades."""
        self._after_cascades[kind.qualified, name] = step

    def drop_work(self) -> None:
        """Discard the scheduled steps of a request that was rejected."""
        self._cascades.clear()
        self._after_cascades.clear()

    def has_work(self) -> bool:
        """Return whether a request has scheduled steps that must run before the next request."""
        return bool(self._cascades or self._after_cascades)

    def work(self) -> None:
        if self._cascades:
            self._cascades.popleft()(self)
        else:
            key = next(iter(self._after_cascades))
            self._after_cascades.pop(key)(self)

    def put_rendering(self, kind: int, form: str, rendering: Rendering) -> None:
        """Store the rendering of an object, if that is still its state."""
        row = rendering.name, int(rendering.version), rendering.labels, rendering.body
        self._side.tables.put_renderings(kind, [row], form=form)
        self.is_dirty = True

    def publish(self) -> None:
        """Publish the batch to readers and watchers: it is durable."""
        reader = self._side.reader
        reader.drop_all(self._evicted)
        reader.publish(self._changes)
        reader.advance(self.version)
        for version, size in self._sizes:
            self._side.history.add(version, size)
        self._side.history.drop(self.floor)

    def entries(self) -> list[object]:
        """Return everything that the batch holds in memory."""
        return list(self._entries.values())

    def _with_next_version(self, resource: ResourceT) -> ResourceT:
        self.version += 1
        return at_version(resource, str(self.version))

    def _entry(self, kind: Kind[ResourceT], name: str) -> CachedObject[ResourceT] | None:
        key = self._side.names.kind(kind), name
        if key not in self._entries:
            self._entries[key] = self._side.reader.entry(kind, name)
        return self._entries[key]

    def _resolve_fully_known(self, kind: Kind[ResourceT], previous: ResourceT) -> bool:
        """Return whether the stored document has only fields that our types know, and cache that."""
        entry = self._entry(kind, previous.name)
        if entry is not None and not entry.fully_known:
            current = self._side.tables.find(self._side.names.kind(kind), previous.name)
            entry.fully_known = current is not None and current.document == self._side.codecs[kind.type].encode(
                previous
            )
        return entry is not None and entry.fully_known

    def _record(self, number: int, change: CommittedChange[Any], current_entry: CachedObject[Any] | None) -> None:
        changes = self._changes.setdefault(number, deque())
        changes.append(change)
        if len(changes) > self._side.reader.settings.tail_changes:
            evicted = number, changes.popleft().name
            self._evicted.add(evicted)
            self._side.reader.drop(*evicted)  # now, so that little is left to free when the batch is published
        self._entries[number, change.name] = current_entry
        self.is_dirty = True
