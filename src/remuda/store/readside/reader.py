"""Reads: get, list, views, referrers, all from the loop's own connection and the cache.

The reader sees exactly what has *landed*: a commit becomes visible to every method at once, on the loop, when
`land` is called. While a commit is under way the connection is pinned to the state before it.

Under which of several terms a walk is short.

Entries are counted, no further than the rarest goes. Where none is rare that takes as long as reading a page, so what
was found then holds for a while: a walk in another order finds the same, only not as soon.

Continue tokens: where a list stopped, and the version of its first page.
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
from remuda.store.contract import Page, Part, Referrer, View, field_index, label_index
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.cache import Cache, Entry
from remuda.store.readside.change_feed import Feed, Landed, Stamps
from remuda.store.readside.index import OWNER, IndexedTerm, Names, reference_index
from remuda.store.readside.sql import Storage
from remuda.store.readside.tables import DELETED, Tables
from remuda.store.validation import check_limit, check_selector

_FEW = 10
"""A term with fewer entries than this is as rare as need be."""
_COUNTS = (200, 1_000, 5_000)
"""How far index entries are counted, in turn: beyond the last, any term is as good as another."""
_RARE = 1_000
"""Counting no further than this is done every time."""
_USES = 100
"""So often an order is used before entries are counted again."""
_MOST = 1_000

Terms = tuple[IndexedTerm, ...]


class Orders:
    """Orders terms, and remembers the orders that took long to find."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[Terms, tuple[Terms, int]] = {}

    def rarest_first(self, terms: Sequence[IndexedTerm]) -> Sequence[IndexedTerm]:
        """Order terms so that a walk under the first is short."""
        if len(terms) <= 1:
            return terms
        asked = tuple(terms)
        order, uses = self._known.get(asked, (asked, 0))
        if not uses:
            return self._found(asked)
        self._known[asked] = order, uses - 1
        return order

    def _found(self, terms: Terms) -> Terms:
        self._known.pop(terms, None)
        order, least = self._counted(terms)
        if least >= _RARE:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[terms] = order, _USES
        return order

    def _counted(self, terms: Terms) -> tuple[Terms, int]:
        """Return terms in order, and how many entries the rarest has at least."""
        for term in terms:
            count = self._tables.count_under(term, limit=_FEW)
            if count < _FEW:
                return (term, *(other for other in terms if other is not term)), count
        for limit in _COUNTS:
            counts = {term: self._tables.count_under(term, limit=limit) for term in terms}
            if min(counts.values()) < limit:
                return tuple(sorted(terms, key=counts.__getitem__)), min(counts.values())
        return terms, _COUNTS[-1]


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a list has come."""

    version: int
    after: str


def write_token(position: Position) -> str:
    """Return the opaque text for a position."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def read_token(token: str) -> Position:
    """Return the position, or raise Invalid if the text is not one of ours."""
    try:
        padded = token + "=" * (-len(token) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Position)
    except (binascii.Error, ValueError):
        raise Invalid("continue", "is not a token of this list", remedy="start again without it") from None


ItemT = TypeVar("ItemT")

_ALL = -1  # SQLite's word for no limit
_WALK = 1_000
"""Index entries that are looked at in search of a name before others get their turn."""


@dataclass(frozen=True, kw_only=True)
class ReaderSettings:
    """What bounds the read side."""

    cache_bytes: int = 32 << 20
    tail_changes: int = 1_000
    """Changes per kind that watchers find in memory."""
    tail_bytes: int = 4 << 20
    """Bytes of documents among them, at most."""
    bookmark_interval_s: float = 30.0
    ahead_patience_s: float = 3.0
    """How long a version that lies ahead is waited for."""
    slice_objects: int = 100
    """Objects of a long list that are read before others get their turn."""


class Reader:
    """The state that has landed."""

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
        self.registry = registry
        self.tables = tables
        self.names = names
        self.settings = settings
        self.storage = Storage(tables.connection.filename)
        self._clock = clock
        self._codecs = codecs
        self._cache = Cache(settings.cache_bytes)
        self._orders = Orders(tables)
        self._kinds: dict[int, Kind[Any]] = {names.kind(kind): kind for kind in registry.kinds}
        self._stamps = Stamps(registry.kinds)
        version, floor = tables.horizon()
        self._feeds = {
            names.kind(kind): Feed(
                kind.name,
                reached=version,
                floor=floor,
                keep=settings.tail_changes,
                keep_bytes=settings.tail_bytes,
            )
            for kind in registry.kinds
        }

    def feed(self, kind: Kind[Any]) -> Feed:
        return self._feeds[self.names.kind(kind)]

    def feeds(self) -> Iterator[Feed]:
        """Return the changes of every kind."""
        return iter(self._feeds.values())

    def land(self, changes: Mapping[int, Sequence[Landed[Any]]]) -> None:
        """Make changes visible that are durable and in the tables, by kind and in the order of versions."""
        for kind, landed in changes.items():
            self.refresh(kind, landed)
            self._feeds[kind].extend(landed)

    def refresh(self, kind: int, changes: Sequence[Landed[Any]]) -> None:
        """Make changes visible to reads, and tell no watch."""
        self._stamps.change(self._kinds[kind], changes)
        for change in changes:
            if change.code == DELETED:
                self._cache.drop(kind, change.name)
            else:
                entry = Entry(change.event.resource, weight=change.weight, whole=change.whole)
                self._cache.put(kind, change.name, entry)

    def drop(self, kind: int, name: str) -> None:
        """Forget what is remembered of an object."""
        self._stamps.change_all(self._kinds[kind])
        self._cache.drop(kind, name)

    def drop_all(self, keys: set[tuple[int, str]]) -> None:
        """Forget what is remembered of many objects, by kind and name."""
        for kind in {kind for kind, _ in keys}:
            self._stamps.change_all(self._kinds[kind])
        self._cache.drop_all(keys)

    def stamp(self, parts: Iterable[Part] | None) -> int:
        """Return a number that stays the same for as long as every read of these parts, or of anything, does."""
        return self._stamps.last(parts)

    def advance(self, version: int) -> None:
        """Tell every kind that all changes up to this version have landed."""
        for feed in self._feeds.values():
            feed.advance(version)

    def pin(self) -> None:
        """Keep reading the present state while a commit is under way."""
        self.tables.connection.execute("BEGIN")
        try:
            self.tables.horizon()  # a transaction takes its snapshot at its first read
        except BaseException:
            self.unpin()
            raise

    def unpin(self) -> None:
        """Read the newest state again."""
        if self.tables.connection.in_transaction:  # SQLite ends it by itself when a read fails
            self.tables.connection.execute("COMMIT")

    def close(self) -> None:
        """End all watches: nothing will land any more."""
        for feed in self._feeds.values():
            feed.close(StoreClosed(self.storage.path))

    async def pause(self) -> None:
        """Let others have the loop."""
        await self._clock.sleep(0)

    def entry(self, kind: Kind[ResourceT], name: str) -> Entry[ResourceT] | None:
        """Return an object with what is known about it, or None."""
        number = self.names.kind(kind)
        return self._cache.find(number, name) or self._load(kind, number, name)

    def find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        entry = self.entry(kind, name)
        return entry.resource if entry else None

    def get(self, kind: Kind[ResourceT], name: str) -> ResourceT:
        """Return an object, or raise NotFound."""
        found = self.find(kind, name)
        if found is None:
            raise NotFound(kind.name, name)
        return found

    def view(self, kind: Kind[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        """Return a rendered object, or raise NotFound."""
        number = self.names.kind(kind)
        rendered = self._cache.render(number, name, view)
        return view(self.get(kind, name)) if rendered is None else rendered

    def views(self, kind: Kind[ResourceT], names: Sequence[str], view: View[ResourceT]) -> Sequence[bytes]:
        """Return rendered objects, or raise NotFound."""
        found = self._cache.rendered(self.names.kind(kind), names, view)
        return [known or self.view(kind, name, view) for name, known in zip(names, found, strict=True)]

    def decode(self, kind: Kind[ResourceT], document: bytes, name: str) -> ResourceT:
        """Return the object in a stored document."""
        return self._codecs[kind.type].decode(document, name)  # type: ignore[no-any-return]  # codecs are by type

    def _load(self, kind: Kind[ResourceT], number: int, name: str) -> Entry[ResourceT] | None:
        row = self.tables.find(number, name)
        if row is None:
            return None
        entry = Entry(self.decode(kind, row.document, name), weight=len(row.document))
        self._cache.put(number, name, entry)
        return entry

    async def page(
        self,
        kind: Kind[Any],
        read: Callable[[Sequence[str]], Sequence[ItemT]],
        *,
        labels: Mapping[str, str] | None,
        index: tuple[str, str] | None,
        limit: int | None,
        after: str | None,
    ) -> Page[ItemT]:
        """Return a page whose items `read` makes from names."""
        check_selector(labels or {})
        check_limit(limit)
        position = read_token(after) if after else Position(self.feed(kind).reached, "")
        terms = self._terms(kind, labels or {}, index)
        if terms is None:
            return Page([], str(position.version), None)
        items: list[ItemT] = []
        last, at_most = position.after, self.settings.slice_objects
        while True:
            wanted = at_most if limit is None else min(limit - len(items), at_most)
            names, walked_to = self._names(kind, terms, after=last, limit=wanted + 1)
            items.extend(read(names[:wanted]))
            if len(names) > wanted:
                last = names[wanted - 1]
                if len(items) == limit:
                    return Page(items, str(position.version), write_token(Position(position.version, last)))
            elif walked_to is not None:
                last = walked_to
            else:
                return Page(items, str(position.version), None)
            await self.pause()

    def _names(
        self, kind: Kind[Any], terms: Sequence[IndexedTerm], *, after: str, limit: int
    ) -> tuple[Sequence[str], str | None]:
        """Return the next names, and how far the walk came if it ended early: under several terms they can be far."""
        if not terms:
            return self.tables.names(self.names.kind(kind), after=after, limit=limit), None
        if len(terms) == 1:
            return self.tables.names_under(terms, after=after, limit=limit), None
        upto = self.tables.name_at(terms[0], after=after, distance=_WALK)
        return self.tables.names_under(terms, after=after, upto=upto, limit=limit), upto

    def _terms(
        self, kind: Kind[Any], labels: Mapping[str, str], index: tuple[str, str] | None
    ) -> Sequence[IndexedTerm] | None:
        """Return what to look under, or None if nothing was ever put under one of these."""
        kind.check_sought(labels)
        wanted = [(label_index(key), value) for key, value in labels.items()]
        if index is not None:
            kind.check_index(index[0])
            wanted.append((field_index(index[0]), index[1]))
        number = self.names.kind(kind)
        found = [(self.names.find_index(number, name), value) for name, value in wanted]
        terms = [(where, value) for where, value in found if where is not None]
        return self._orders.rarest_first(terms) if len(terms) == len(found) else None

    def children(self, owner: Resource, *, limit: int = _ALL) -> Sequence[tuple[Kind[Any], str]]:
        found: list[tuple[Kind[Any], str]] = []
        for kind in self.registry.kinds:
            where = self.names.find_index(self.names.kind(kind), OWNER)
            if where is not None:
                names = self.tables.names_under([(where, owner.uid)], after="", limit=limit)
                found += [(kind, name) for name in names]
        return found

    def referrers(self, target: Kind[Any], name: str, *, limit: int) -> Sequence[Referrer]:
        """Return some of those that refer to an object."""
        found: list[Referrer] = []
        for kind in self.registry.referrers_of(target):
            index = self.names.find_index(self.names.kind(kind), reference_index(target.qualified))
            if index is not None and len(found) < limit:
                names = self.tables.names_under([(index, name)], after="", limit=limit - len(found))
                found += [Referrer(kind, referrer) for referrer in names]
        return found
