"""A batch: the writes that will share one commit, and the state they see.

Every request of a batch is judged against the landed state plus what the batch has written so far, so that two writes
in one commit conflict just as two commits would. Nothing of it is visible to readers before it lands.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from remuda.kernel.errors import AlreadyExists
from remuda.kernel.randomness import Randomness
from remuda.store.checks import check_size
from remuda.store.codec import Codec
from remuda.store.contract import Referrer
from remuda.store.kinds import Kind, Registry
from remuda.store.logs import Record
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.feed import Landed
from remuda.store.readside.reader import Reader
from remuda.store.readside.tables import ADDED, DELETED, MODIFIED, Revision, Tables
from remuda.store.readside.terms import OWNER, Names, reference_index, terms_of
from remuda.store.readside.watching import landed
from remuda.store.sqlite.logs import LogTables

__all__ = ["Batch", "WriteSide"]


@dataclass(frozen=True, kw_only=True)
class WriteSide:
    """What a batch needs of the store: the connection that writes, and the landed state."""

    registry: Registry
    codecs: Mapping[type[Resource], Codec[Any]]
    tables: Tables
    logs: LogTables
    names: Names
    reader: Reader
    randomness: Randomness


@dataclass(frozen=True, slots=True)
class _Held:
    """An object as the batch has left it; `whole` as in the cache."""

    resource: Any
    whole: bool


class Batch:
    """Writes under way."""

    def __init__(self, side: WriteSide, *, version: int, floor: int, now: datetime) -> None:
        self.registry = side.registry
        self.randomness = side.randomness
        self.now = now
        self.version = version
        self.floor = floor
        self.changes: dict[int, list[Landed[Any]]] = {}
        self.is_dirty = False
        self.after_landing: list[Callable[[], None]] = []
        self._side = side
        self._held: dict[tuple[int, str], _Held | None] = {}
        self._cascades: deque[Callable[[Batch], None]] = deque()
        self._unsettled: dict[tuple[str, str], Callable[[Batch], None]] = {}

    def find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        """Return an object as the batch has left it."""
        key = self._side.names.kind(kind), name
        if key in self._held:
            held = self._held[key]
            return held.resource if held else None
        return self._side.reader.find(kind, name)

    def left_of(self, kind: Kind[ResourceT], found: ResourceT) -> ResourceT | None:
        """Return what the batch has left of an object it has found. Asks nothing of the disk."""
        held = self._held.get((self._side.names.kind(kind), found.name), _Held(found, whole=False))
        return held.resource if held is not None and held.resource.uid == found.uid else None

    def put(self, kind: Kind[ResourceT], resource: ResourceT, previous: ResourceT | None) -> ResourceT:
        """Write an object under the next version and return it with that version."""
        number, name = self._side.names.kind(kind), resource.name
        resource = self._stamp(resource)
        codec = self._side.codecs[kind.type]
        whole = previous is None or self._is_whole(kind, number, previous)
        if whole:
            document = codec.encode(resource)
        else:
            current = self._side.tables.find(number, name)
            assert current is not None, "the previous state of an object is in the tables"
            document = codec.encode_over(current.document, resource)
        check_size(document)
        relabelled = previous is not None and previous.metadata.labels != resource.metadata.labels
        before = codec.encode(previous) if relabelled else None
        revision = Revision(self.version, name, ADDED if previous is None else MODIFIED, document, before)
        self._record(number, revision, resource, previous, whole=whole)
        self._side.tables.point(number, name, self.version)
        self._reindex(kind, number, resource, previous)
        self._held[number, name] = _Held(resource, whole)
        return resource

    def drop(self, kind: Kind[ResourceT], last: ResourceT, previous: ResourceT) -> ResourceT:
        """Remove an object, leaving its last state to watchers, and return that state."""
        number = self._side.names.kind(kind)
        last = self._stamp(last)
        document = self._side.codecs[kind.type].encode(last)
        self._record(number, Revision(self.version, last.name, DELETED, document, None), last, previous)
        self._side.tables.remove(number, last.name)
        terms = self._side.names.indexed(number, terms_of(kind, previous))
        self._side.tables.remove_entries(last.name, terms)
        self._held[number, last.name] = None
        return last

    def log(self, records: Sequence[Record]) -> None:
        """Append log records to this commit."""
        for record in records:
            if record.once and self._side.logs.has(record.stream, record.subject):
                raise AlreadyExists(record.stream, record.subject)
        for record in records:
            self.is_dirty = True
            self._side.logs.append(record, self.now)

    def children(self, owner: Resource, *, after: str = "", limit: int = 100) -> Iterator[tuple[Kind[Any], str]]:
        """Yield some of the objects that an owner owns, of each kind those whose names come after `after`."""
        for kind in self.registry.kinds:
            index = self._side.names.find_index(self._side.names.kind(kind), OWNER)
            if index is not None:
                for name in self._side.tables.names_under([(index, owner.uid)], after=after, limit=limit):
                    yield kind, name

    def referrers(self, target: Kind[Any], name: str) -> Iterator[Referrer]:
        """Yield everything that refers to an object."""
        for kind in self.registry.referrers_of(target):
            index = self._side.names.find_index(self._side.names.kind(kind), reference_index(target.qualified))
            after = ""
            while index is not None and (
                names := self._side.tables.names_under([(index, name)], after=after, limit=50)
            ):
                yield from (Referrer(kind, referrer) for referrer in names)
                after = names[-1]

    def cascade(self, step: Callable[["Batch"], None]) -> None:
        """Do this in the same commit, after the present step."""
        self._cascades.append(step)

    def settle(self, kind: Kind[Any], name: str, step: Callable[["Batch"], None]) -> None:
        """Do this once for an object, when all cascades are through."""
        self._unsettled[kind.qualified, name] = step

    def has_work(self) -> bool:
        """Tell whether a request has left work to do before the next one."""
        return bool(self._cascades or self._unsettled)

    def work(self) -> None:
        """Do one piece of it."""
        if self._cascades:
            self._cascades.popleft()(self)
        else:
            key = next(iter(self._unsettled))
            self._unsettled.pop(key)(self)

    def _stamp(self, resource: ResourceT) -> ResourceT:
        self.version += 1
        metadata = msgspec.structs.replace(resource.metadata, resource_version=str(self.version))
        return msgspec.structs.replace(resource, metadata=metadata)

    def _is_whole(self, kind: Kind[ResourceT], number: int, previous: ResourceT) -> bool:
        """Tell whether the stored document holds only what our types know."""
        held = self._held.get((number, previous.name))
        if held is not None:
            return held.whole
        entry = self._side.reader.entry(kind, previous.name)
        if entry is not None and not entry.whole:
            current = self._side.tables.find(number, previous.name)
            entry.whole = current is not None and current.document == self._side.codecs[kind.type].encode(previous)
        return entry is not None and entry.whole

    def _record(
        self,
        number: int,
        revision: Revision,
        resource: ResourceT,
        previous: ResourceT | None,
        *,
        whole: bool = False,
    ) -> None:
        """Append a change to history and to what will land."""
        self._side.tables.add_revision(number, revision, time=self.now.timestamp())
        if previous is not None and int(previous.version) <= self.floor:
            self._side.tables.forget_revision(int(previous.version))
        before = previous if revision.before is not None else None
        self.changes.setdefault(number, []).append(landed(revision, resource, before, whole=whole))
        self.is_dirty = True

    def _reindex(self, kind: Kind[ResourceT], number: int, resource: ResourceT, previous: ResourceT | None) -> None:
        new = terms_of(kind, resource)
        old = terms_of(kind, previous) if previous is not None else frozenset()
        if new != old:
            names, tables = self._side.names, self._side.tables
            tables.remove_entries(resource.name, names.indexed(number, sorted(old - new)))
            tables.add_entries(resource.name, names.indexed(number, sorted(new - old)))
