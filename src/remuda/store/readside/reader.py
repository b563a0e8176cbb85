"""Reader: get, list, views and referrers, from the event loop's own connection and the cache.

A commit becomes visible to all methods at once, on the event loop, when `publish` is called; during it the connection
keeps the snapshot before it. A continue token contains the last name of a page, and the version of the list's first
page.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, NotFound, StoreClosed
from remuda.store.codec import Codec
from remuda.store.contract import (
    Dependency,
    IndexEntry,
    Mark,
    Page,
    RecentChanges,
    Referrer,
    Rendering,
    View,
    label_index,
)
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.cache import Cache, CachedObject
from remuda.store.readside.change_feed import ChangeCounters, CommittedChange, Feed
from remuda.store.readside.index import OWNER, Names, reference_index
from remuda.store.readside.index_reads import IndexReader
from remuda.store.readside.sql import Storage
from remuda.store.readside.tables import DELETED, Tables
from remuda.store.validation import check_limit, check_selector


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The position of a list: the version of its first page and the last name."""

    version: int
    after: str


def write_token(position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def read_token(token: str) -> Position:
    try:
        padded = token + "=" * (-len(token) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Position)
    except (binascii.Error, ValueError):
        raise Invalid("continue", "is not a token of this list", remedy="start again without it") from None


ItemT = TypeVar("ItemT")

_ALL = -1  # means no limit to SQLite


@dataclass(frozen=True, kw_only=True)
class ReaderSettings:
    """Limits of the read side."""

    cache_bytes: int = 32 << 20
    tail_changes: int = 1_000
    """Changes per kind that watchers find in memory."""
    tail_bytes: int = 4 << 20
    """Maximum bytes of their documents."""
    bookmark_interval_s: float = 30.0
    ahead_timeout_s: float = 3.0
    """Time to wait for a version in the future."""
    code_revision: str = ""
    """The revision of the code that renders objects. Renderings are stored under it; without one, none are."""
    slice_objects: int = 100
    """Objects of a long list that are read before other tasks run."""


class Reader:
    """The published state."""

    def __init__(
        self,
        *,
        registry: Registry,
        codecs: Mapping[type[Resource], Codec[Any]],
        tables: Tables,
        names: Names,
        clock: Clock,
        settings: ReaderSettings,
    ) -> None:
        self.registry, self.tables, self.names = registry, tables, names
        self.settings = settings
        self.storage = Storage(tables.connection.filename)
        self._clock, self._codecs = clock, codecs
        self._cache = Cache(settings.cache_bytes)
        self._index_reader = IndexReader(tables, names)
        self._kinds: dict[int, Kind[Any]] = {names.kind(kind): kind for kind in registry.kinds}
        self._numbers: dict[type[Resource], int] = {kind.type: names.kind(kind) for kind in registry.kinds}
        self._counters = ChangeCounters(registry.kinds)
        self._unrecorded = dict.fromkeys(self._kinds, 0)
        """By kind, the number of times that reads changed without a change in the feed."""
        version, floor = tables.horizon()
        self._feeds = {
            names.kind(kind): Feed(
                kind, reached=version, floor=floor, keep=settings.tail_changes, keep_bytes=settings.tail_bytes
            )
            for kind in registry.kinds
        }

    def feed(self, kind: Kind[Any]) -> Feed:
        return self._feeds[self.names.kind(kind)]

    def feeds(self) -> Iterator[Feed]:
        return iter(self._feeds.values())

    def publish(self, changes: Mapping[int, Sequence[CommittedChange[Any]]]) -> None:
        """Publish changes that are durable and in the tables, by kind and in the order of versions."""
        for kind, landed in changes.items():
            self._show(kind, landed)
            self._feeds[kind].extend(landed)

    def refresh(self, kind: int, changes: Sequence[CommittedChange[Any]]) -> None:
        """Make changes visible to reads, without an event for watches."""
        self._unrecorded[kind] += 1
        self._show(kind, changes)

    def _show(self, kind: int, changes: Sequence[CommittedChange[Any]]) -> None:
        self._counters.change(self._kinds[kind], changes)
        for change in changes:
            if change.code == DELETED:
                self._cache.drop(kind, change.name)
            else:
                entry = CachedObject(change.event.resource, weight=change.weight, fully_known=change.fully_known)
                self._cache.put(kind, change.name, entry)

    def drop(self, kind: int, name: str) -> None:
        self._unrecorded[kind] += 1
        self._counters.change_all(self._kinds[kind])
        self._cache.drop(kind, name)

    def drop_all(self, keys: set[tuple[int, str]]) -> None:
        for kind in {kind for kind, _ in keys}:
            self._unrecorded[kind] += 1
            self._counters.change_all(self._kinds[kind])
        self._cache.drop_all(keys)

    def change_counter(self, dependencies: Iterable[Dependency] | None) -> int:
        return self._counters.last(dependencies)

    def recent_changes(self, kind: Kind[ResourceT], since: Mark | None) -> RecentChanges[ResourceT]:
        """Return the changes since a mark that are in memory, and the mark of the present."""
        number = self.names.kind(kind)
        feed = self._feeds[number]
        now = Mark(str(feed.reached), self._unrecorded[number])
        if since is None or since.unrecorded != now.unrecorded:
            return RecentChanges(now, None)
        found = feed.after(int(since.version), limit=self.settings.tail_changes)
        if found is None or len(found) == self.settings.tail_changes:
            return RecentChanges(now, None)
        return RecentChanges(now, [each.event for each in found])

    def advance(self, version: int) -> None:
        """Tell all feeds that the changes up to this version are published."""
        for feed in self._feeds.values():
            feed.advance(version)

    def pin(self) -> None:
        """Keep the present snapshot while a commit runs."""
        self.tables.connection.execute("BEGIN")
        try:
            self.tables.horizon()  # a transaction takes its snapshot at its first read
        except BaseException:
            self.unpin()
            raise

    def unpin(self) -> None:
        if self.tables.connection.in_transaction:  # SQLite ends it by itself when a read fails
            self.tables.connection.execute("COMMIT")

    def close(self) -> None:
        """End all watches: nothing will be published any more."""
        for feed in self._feeds.values():
            feed.close(StoreClosed(self.storage.path))

    async def pause(self) -> None:
        await self._clock.sleep(0)

    def cached(self, kind: type[ResourceT], name: str) -> ResourceT | None:
        """Return an object if the cache has it; most gets end here."""
        number = self._numbers.get(kind)
        found = None if number is None else self._cache.find(number, name)
        return None if found is None else found.resource

    def entry(self, kind: Kind[ResourceT], name: str) -> CachedObject[ResourceT] | None:
        number = self.names.kind(kind)
        return self._cache.find(number, name) or self._load(kind, number, name)

    def find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        entry = self.entry(kind, name)
        return entry.resource if entry else None

    def get(self, kind: Kind[ResourceT], name: str) -> ResourceT:
        found = self.find(kind, name)
        if found is None:
            raise NotFound(kind.name, name)
        return found

    def view(self, kind: Kind[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        number = self.names.kind(kind)
        rendered = self._cache.render(number, name, view)
        return view(self.get(kind, name)) if rendered is None else rendered

    def get_all(self, kind: Kind[ResourceT], names: Sequence[str]) -> Sequence[ResourceT]:
        """Return objects by name; those that are not cached are read together."""
        number, read = self.names.kind(kind), self._cache.find
        found = [read(number, name) for name in names]
        if None not in found:
            return [entry.resource for entry in found if entry is not None]
        loaded = self._load_all(kind, number, [name for name, entry in zip(names, found, strict=True) if entry is None])
        return [
            self.get(kind, name) if resource is None else resource
            for name, resource in (
                (name, loaded.get(name) if entry is None else entry.resource)
                for name, entry in zip(names, found, strict=True)
            )
        ]

    def views(self, kind: Kind[ResourceT], names: Sequence[str], view: View[ResourceT]) -> Sequence[bytes]:
        number = self.names.kind(kind)
        if missing := [name for name in names if not self._cache.has(number, name)]:
            self._load_all(kind, number, missing)
        found = self._cache.rendered(self.names.kind(kind), names, view)
        return [known or self.view(kind, name, view) for name, known in zip(names, found, strict=True)]

    def renderings(self, kind: Kind[ResourceT], names: Sequence[str], form: str) -> Sequence[Rendering | ResourceT]:
        """Return the stored renderings of present states, and the objects that have none."""
        if not self.settings.code_revision:
            return self.get_all(kind, names)
        rows = self.tables.renderings(self.names.kind(kind), names, form=self.stored_form(form))
        stored = {row[0]: Rendering(row[0], str(row[1]), row[2], row[3]) for row in rows}
        if len(stored) == len(names):
            return [stored[name] for name in names]
        missing = [name for name in names if name not in stored]
        objects = dict(zip(missing, self.get_all(kind, missing), strict=True))
        return [stored.get(name) or objects[name] for name in names]

    def stored_form(self, form: str) -> str:
        """Return the form of renderings with the revision of the code."""
        return f"{self.settings.code_revision} {form}"

    def decode(self, kind: Kind[ResourceT], document: bytes, name: str) -> ResourceT:
        return self._codecs[kind.type].decode(document, name)  # type: ignore[no-any-return]  # codecs are by type

    def _load(self, kind: Kind[ResourceT], number: int, name: str) -> CachedObject[ResourceT] | None:
        row = self.tables.find(number, name)
        if row is None:
            return None
        entry = CachedObject(self.decode(kind, row.document, name), weight=len(row.document))
        self._cache.put(number, name, entry)
        return entry

    def _load_all(self, kind: Kind[ResourceT], number: int, names: Sequence[str]) -> dict[str, ResourceT]:
        loaded = {}
        for name, document in self.tables.find_many(number, names):
            loaded[name] = self.decode(kind, document, name)
            self._cache.put(number, name, CachedObject(loaded[name], weight=len(document)))
        return loaded

    async def page(
        self,
        kind: Kind[Any],
        read: Callable[[Sequence[str]], Sequence[ItemT]],
        *,
        labels: Mapping[str, str] | None = None,
        index: tuple[str, str] | None = None,
        any_of: Sequence[IndexEntry] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[ItemT]:
        check_selector(labels or {})
        check_limit(limit)
        position = read_token(after) if after else Position(self.feed(kind).reached, "")
        reads = self._index_reader.reads(kind, labels or {}, index, any_of)
        items: list[ItemT] = []
        last, at_most = position.after, self.settings.slice_objects
        while True:
            requested = at_most if limit is None else min(limit - len(items), at_most)
            names, scanned_to = self._index_reader.find(kind, reads, after=last, limit=requested + 1)
            items.extend(read(names[:requested]))
            if len(names) > requested:
                last = names[requested - 1]
                if len(items) == limit:
                    return Page(items, str(position.version), write_token(Position(position.version, last)))
            elif scanned_to is not None:
                last = scanned_to
            else:
                return Page(items, str(position.version), None)
            await self.pause()

    def count_labelled(self, kind: Kind[Any], label: str, value: str, limit: int) -> int:
        """Return the number of objects with a label, up to a limit."""
        index = self.names.find_index(self.names.kind(kind), label_index(label))
        return 0 if index is None else self.tables.count_under((index, value), limit=limit)

    def children(self, owner: Resource, *, limit: int = _ALL) -> Sequence[tuple[Kind[Any], str]]:
        found: list[tuple[Kind[Any], str]] = []
        for kind in self.registry.kinds:
            where = self.names.find_index(self.names.kind(kind), OWNER)
            if where is not None:
                names = self.tables.names_under([(where, owner.uid)], after="", limit=limit)
                found += [(kind, name) for name in names]
        return found

    def referrers(self, target: Kind[Any], name: str, *, limit: int) -> Sequence[Referrer]:
        found: list[Referrer] = []
        for kind in self.registry.referrers_of(target):
            index = self.names.find_index(self.names.kind(kind), reference_index(target.qualified))
            if index is not None and len(found) < limit:
                names = self.tables.names_under([(index, name)], after="", limit=limit - len(found))
                found += [Referrer(kind, referrer) for referrer in names]
        return found
