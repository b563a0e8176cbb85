"""Mirror: the tables of one kind, updated from the events and lists of an API server in small steps.

A document that is older than its row is ignored. Of an object whose newest state cannot be decoded, the last readable
state stays in the tables: lists contain it, watches report no deletion, and a get by name asks the API server and
raises its error.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import msgspec
import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unreadable, Unsealable
from remuda.store.codec import Codec
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, ResourceT, at_version
from remuda.store.readside.change_feed import CommittedChange, Feed
from remuda.store.readside.index import OWNER
from remuda.store.readside.ingest import Ingest
from remuda.store.readside.reader import Reader
from remuda.store.readside.tables import Current

_SLICE = 25
"""Objects that are read before other tasks run."""


class InformerCache:
    """The tables that the informers fill, without objects whose newest state is unreadable."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._unreadable: dict[str, dict[str, int]] = {kind.qualified: {} for kind in reader.registry.kinds}

    def unreadable(self, kind: Kind[Any]) -> dict[str, int]:
        """Return the objects of a kind whose newest state is unreadable, and the version of that state."""
        return self._unreadable[kind.qualified]

    def find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        """Return an object, or None if only the API server knows it."""
        if name in self.unreadable(kind):
            return None
        with self._reader.storage:
            return self._reader.find(kind, name)

    def row(self, kind: Kind[Any], name: str) -> Current | None:
        """Return the document of an object, or None if only the API server knows it."""
        if name in self.unreadable(kind):
            return None
        with self._reader.storage:
            return self._reader.tables.find(self._reader.names.kind(kind), name)

    async def under(self, kind: Kind[ResourceT], index: str, value: str) -> AsyncIterator[ResourceT]:
        where = self._reader.names.find_index(self._reader.names.kind(kind), index)
        last: str | None = "" if where is not None else None
        while last is not None and where is not None:
            with self._reader.storage:
                names = self._reader.tables.names_under([(where, value)], after=last, limit=_SLICE)
                found = [self._reader.find(kind, name) for name in names]
            for resource in found:
                if resource is not None:
                    yield resource
            last = names[-1] if len(names) == _SLICE else None
            await self._reader.pause()

    async def children(self, owner: Resource) -> AsyncIterator[tuple[Kind[Any], Resource]]:
        for kind in self._reader.registry.kinds:
            async for child in self.under(kind, OWNER, owner.uid):
                yield kind, child

    def has_children(self, owner: Resource) -> bool:
        with self._reader.storage:
            return bool(self._reader.children(owner, limit=1))


MirrorChange = tuple[str, msgspec.Raw]
"""The type of a watch event, and its document."""
StateChange = tuple[Resource | None, Resource | None]
"""The states of an object before and after a change; None where there was or is none."""
OnChanges = Callable[[Kind[Any], Sequence[CommittedChange[Any]], Sequence[StateChange]], None]
"""A callback for changes: the kind, the changes with a version in the history, and the states of all changes."""
ItemT = TypeVar("ItemT")


_RANGE = 500


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    name: str = ""

    @property
    def version(self) -> int:
        return int(self.resource_version)


class _Headed(msgspec.Struct, frozen=True):
    metadata: _Head


@dataclass(frozen=True, slots=True)
class _State:
    resource: Resource
    document: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Differences:
    """The differences between a page of a list and the tables."""

    fresh: Sequence[msgspec.Raw]
    newest: Sequence[msgspec.Raw]
    """Objects with the version of the list itself, which are shown last."""
    vanished: Sequence[str]
    upto: str
    """The last name that was compared."""

    def __bool__(self) -> bool:
        return bool(self.fresh or self.newest or self.vanished)


class Mirror:
    """The writer of one informer."""

    def __init__(
        self,
        kind: Kind[Any],
        *,
        codec: Codec[Any],
        reader: Reader,
        known: InformerCache,
        clock: Clock,
        on_changes: OnChanges,
    ) -> None:
        self._kind = kind
        self._number = reader.names.kind(kind)
        self._codec, self._reader = codec, reader
        self._feed: Feed = reader.feed(kind)
        self._ingest = Ingest(reader.tables, reader.names)
        self._unreadable = known.unreadable(kind)
        self._clock, self._on_changes = clock, on_changes
        self._log = structlog.get_logger().bind(kind=kind.qualified)

    async def apply(self, changes: Sequence[MirrorChange]) -> None:
        """Apply changes in the order of their versions, and publish them to readers and watchers."""
        for part in _sliced(changes):
            applied, state_changes = self._write_all(part)
            self._reader.publish({self._number: applied})
            self._feed.advance(head_of(part[-1][1]).version)
            self._on_changes(self._kind, applied, state_changes)
            await self._reader.pause()

    async def compare(self, items: Sequence[msgspec.Raw], *, after: str, is_last: bool, newest: int) -> "Differences":
        """Return how the tables differ from a page, with names after `after`, of a list of version `newest`."""
        heads = [head_of(item) for item in items]
        upto = None if is_last else max((head.name for head in heads), default=after)
        listed = {head.name: head.version for head in heads}
        known: dict[str, int] = {}
        vanished = [name for name in self._unreadable if after < name <= (upto or name) and name not in listed]
        is_more = True
        while is_more:
            with self._reader.storage:
                rows = self._reader.tables.versions(self._number, after=after, upto=upto, limit=_RANGE)
            known |= {name: version for name, version in rows if name in listed}
            vanished += [name for name, _ in rows if name not in listed]
            is_more, after = len(rows) == _RANGE, rows[-1][0] if rows else after
            await self._reader.pause()
        new = [pair for pair in zip(items, heads, strict=True) if self._is_new(pair[1], known.get(pair[1].name))]
        return Differences(
            fresh=[item for item, head in new if head.version < newest],
            newest=[item for item, head in new if head.version >= newest],
            vanished=list(dict.fromkeys(vanished)),
            upto=upto or after,
        )

    def _is_new(self, head: _Head, known: int | None) -> bool:
        return head.version not in {known, self._unreadable.get(head.name)}

    async def catch_up(self, missed: "Differences") -> None:
        """Show readers changes that watchers cannot get in order."""
        for part in _sliced(missed.fresh):
            self.refresh(part)
            await self._reader.pause()
        for names in _sliced(missed.vanished):
            self._forget(names)
            await self._reader.pause()

    def refresh(self, items: Sequence[msgspec.Raw]) -> None:
        """Write objects and show them to readers, without events for watches."""
        applied, state_changes = self._write_all([("MODIFIED", item) for item in items])
        self._reader.refresh(self._number, applied)
        self._on_changes(self._kind, applied, state_changes)

    def _forget(self, names: Sequence[str]) -> None:
        """Remove objects that disappeared while there was no watch."""
        with self._transaction():
            gone = [found for found in (self._reader.find(self._kind, name) for name in names) if found is not None]
            for resource in gone:
                self._ingest.forget(self._kind, resource)
        for name in names:
            self._unreadable.pop(name, None)
            self._reader.drop(self._number, name)
        self._on_changes(self._kind, [], [(resource, None) for resource in gone])

    def _write_all(self, changes: Sequence[MirrorChange]) -> tuple[list[CommittedChange[Any]], list[StateChange]]:
        """Write changes into the tables; return them as history, and as states before and after."""
        now = self._clock.now().timestamp()
        seen: dict[str, Resource | None] = {}
        applied: list[CommittedChange[Any]] = []
        state_changes: list[StateChange] = []
        with self._transaction():
            for change, raw in changes:
                head = head_of(raw)
                previous = seen[head.name] if head.name in seen else self._reader.find(self._kind, head.name)
                if previous is not None and int(previous.version) >= head.version:
                    continue
                state = self._readable(change, head, raw, previous)
                if state is None or (previous is None and change == "DELETED"):
                    continue
                applied.append(self._write(change, state, previous, now=now))
                seen[head.name] = None if change == "DELETED" else state.resource
                state_changes.append((previous, seen[head.name]))
        return applied, state_changes

    def _readable(self, change: str, head: _Head, raw: msgspec.Raw, previous: Resource | None) -> "_State | None":
        """Return the state in a document. If a deleted object is unreadable, it is the last known state."""
        document = stripped(raw)
        try:
            resource: Resource = self._codec.decode(document, head.name)
        except (Unreadable, Unsealable) as error:
            self._reader.drop(self._number, head.name)  # a get by name must not find the cached state any more
            if change == "DELETED":
                self._unreadable.pop(head.name, None)
                if previous is None:
                    return None
                last = at_version(previous, head.resource_version)
                return _State(last, self._codec.encode(last))
            self._log.error("unreadable object skipped", name=head.name, cause=error.message)
            self._unreadable[head.name] = head.version
            return None
        self._unreadable.pop(head.name, None)
        return _State(resource, document)

    def _write(self, change: str, state: "_State", previous: Resource | None, *, now: float) -> CommittedChange[Any]:
        resource, document, floor = state.resource, state.document, self._feed.floor
        is_reindexed = previous is not None and self._kind.is_reindexed(resource, previous)
        before = self._codec.encode(previous) if is_reindexed else None
        ingest = self._ingest
        if change == "DELETED" and previous is not None:
            return ingest.drop(self._kind, resource, previous, document=document, before=before, time=now, floor=floor)
        return ingest.put(self._kind, resource, previous, document=document, before=before, time=now, floor=floor)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """MirrorChange the tables atomically, together with the numbers of new indexes."""
        try:
            with self._reader.storage, self._reader.tables.connection:
                yield
        except BaseException:
            self._reader.names.roll_back()
            raise
        self._reader.names.commit()


def head_of(document: msgspec.Raw | bytes) -> _Head:
    return msgspec.json.decode(document, type=_Headed).metadata


def stripped(document: msgspec.Raw | bytes) -> bytes:
    """Return a document without the API server's record of which client wrote which field."""
    decoded = msgspec.json.decode(document)
    decoded["metadata"].pop("managedFields", None)
    return msgspec.json.encode(decoded)


def _sliced(items: Sequence[ItemT]) -> Iterator[list[ItemT]]:
    waiting = iter(items)
    while part := list(islice(waiting, _SLICE)):
        yield part
