"""Cache of whole lists, as they were last sent to readers with the same permissions.

A list is kept with the rendered bytes of each object and the store's mark of the state that it shows. At the next
request the changes since that mark are applied: a changed object is checked and rendered again, the others are not even
looked at. If the store does not know the changes any more, the list is read again. So a list is never older than the
request for it. What a reader may see is part of the key: with other permissions it is another list.

A list that must be read takes rendered objects from the store if it has them (`Store.list_renderings`), and has the
store keep those that it rendered itself, for the next process.

The ETag of a list names its contents in this process: they get another one whenever they change.
"""

import asyncio
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from remuda.http.buffer_shares import SLICE_BYTES
from remuda.http.page_reads import Reading
from remuda.http.responses import Collection, StoredForm, body_of
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.randomness import Randomness
from remuda.store.contract import Change, Mark, Page, Rendering
from remuda.store.objects import NAME_LABEL, Resource

MAX_ITEMS = 1_000
"""A longer list is not kept."""
MAX_BYTES = 1 << 20
"""Neither is one with more bytes."""
_CACHE_BYTES = 16 << 20
_ITEM_BYTES = 150
"""Memory of an item beside its bytes."""
_LIST_BYTES = 2 << 10
"""Memory of a list beside its items and its query, also of an empty one."""
_QUERY_FACTOR = 10
"""Memory of a query for each of its characters: a short parameter is an object of its own."""
_MAX_READ = 2_000
"""Number of objects that are read for one list at most, visible or not."""
_SLICE = 50
"""Objects that are read and rendered before the event loop continues with other work."""
_STORED_SLICE = 100
"""The same after a page whose visible objects were all rendered before."""


@dataclass(slots=True)
class CachedList:
    """A list as the store had it at a mark."""

    mark: Mark
    etag: bytes
    query_length: int = 0
    """Length of the query, which is kept with the list."""
    names: list[str] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    """Names of the objects whose guarded parts are shown."""
    item_bytes: int = 0
    _body: bytes = b""

    @property
    def weight(self) -> int:
        """The memory that it takes: each byte is in an item, and in the body. Callers choose any number of queries."""
        kept_for = _LIST_BYTES + _QUERY_FACTOR * self.query_length
        return kept_for + 2 * self.item_bytes + _ITEM_BYTES * len(self.items)

    @property
    def is_too_large(self) -> bool:
        return len(self.items) > MAX_ITEMS or self.item_bytes > MAX_BYTES

    @property
    def body(self) -> bytes:
        if not self._body:
            self._body = array(self.items)
        return self._body

    def append(self, name: str, item: bytes) -> None:
        """Add the object with the last name."""
        self.names.append(name)
        self.items.append(item)
        self.item_bytes += len(item)

    def put(self, name: str, item: bytes) -> None:
        """Add an object, or replace it."""
        at = bisect_left(self.names, name)
        if at < len(self.names) and self.names[at] == name:
            self.item_bytes -= len(self.items[at])
            self.items[at] = item
        else:
            self.names.insert(at, name)
            self.items.insert(at, item)
        self.item_bytes += len(item)
        self._body = b""

    def remove(self, name: str) -> bool:
        """Remove an object; return whether it was there."""
        at = bisect_left(self.names, name)
        if at == len(self.names) or self.names[at] != name:
            return False
        self.item_bytes -= len(self.items.pop(at))
        del self.names[at]
        self.secrets.discard(name)
        self._body = b""
        return True


@dataclass(frozen=True, slots=True)
class LongList:
    """A list that is too long to be kept: its version, and its beginning, if that is short."""

    version: str
    first: Page[bytes] | None
    """A slow reader occupies it until it is sent. None if the list is to be read from the beginning."""


class ListCache:
    """The lists that were requested last."""

    def __init__(self, randomness: Randomness, *, limit_bytes: int = _CACHE_BYTES) -> None:
        self._limit, self._randomness = limit_bytes, randomness
        self._process = b""
        self._numbers = count(1)
        self._lists: OrderedDict[Hashable, CachedList] = OrderedDict()
        self._weight = 0
        self._reading: dict[Hashable, asyncio.Lock] = {}

    def __len__(self) -> int:
        return len(self._lists)

    async def get(
        self, collection: Collection[Any, Any], *, access: str, reading: Reading, query_length: int = 0
    ) -> CachedList | LongList:
        """Return the list of a reader with this digest of permissions, as it is now.

        The digest is long enough that a caller cannot find other permissions with the same one.
        """
        if collection.is_empty:  # needs no memory, and no change can concern it
            return CachedList(collection.store.recent_changes(collection.kind).mark, self._etag(0))
        key = (collection.kind, collection.view, tuple(sorted(collection.labels.items())), collection.selection, access)
        if (found := self._current(key, collection)) is not None:
            return found
        lock = self._reading.setdefault(key, asyncio.Lock())
        try:
            async with lock:  # requests for one list at the same time read it once
                if (found := self._current(key, collection)) is not None:
                    return found
                async with reading.page():
                    read = await self._read(collection, reading)
                if isinstance(read, CachedList):
                    read.query_length = query_length
                    self._keep(key, read)
                return read
        finally:
            if not lock.locked():
                self._reading.pop(key, None)

    def _current(self, key: Hashable, collection: Collection[Any, Any]) -> CachedList | None:
        """Return a kept list with the changes since then, or None if it must be read."""
        found = self._lists.get(key)
        if found is None:
            return None
        del self._lists[key]  # it stays away if the update fails
        self._weight -= found.weight
        if not self._update(found, collection) or found.is_too_large:
            return None
        self._keep(key, found)
        return found

    def _update(self, found: CachedList, collection: Collection[Any, Any]) -> bool:
        """Apply the changes since a list was read; return whether they are all known."""
        recent = collection.store.recent_changes(collection.kind, found.mark)
        if recent.changes is None:
            return False
        if sum([_apply(found, change, collection) for change in recent.changes]):
            found.etag = self._new_etag()
        found.mark = recent.mark
        return True

    async def _read(self, collection: Collection[Any, Any], reading: Reading) -> CachedList | LongList:
        found = CachedList(collection.store.recent_changes(collection.kind).mark, self._new_etag())
        first, after, read = LongList(found.mark.version, None), None, 0
        items = _ItemReader(collection)
        while True:
            page = await items.page(found, after)
            read, after = read + len(page.items), page.next
            reading.count(len(page.items))
            if found.item_bytes <= SLICE_BYTES:
                first = LongList(first.version, Page([*found.items], first.version, after))
            if found.is_too_large or (read >= _MAX_READ and after is not None):
                return first
            if after is None:
                break
            await yield_to_loop()
        if not self._update(found, collection) or found.is_too_large:
            return first
        return found

    def _new_etag(self) -> bytes:
        return self._etag(next(self._numbers))

    def _etag(self, number: int) -> bytes:
        self._process = self._process or self._randomness.token_bytes(8).hex().encode()
        return b'"%s-%x"' % (self._process, number)

    def _keep(self, key: Hashable, read: CachedList) -> None:
        before = self._lists.pop(key, None)
        self._weight += read.weight - (0 if before is None else before.weight)
        self._lists[key] = read
        while self._weight > self._limit:
            self._weight -= self._lists.popitem(last=False)[1].weight


class _ItemReader:
    """Reads the items of a list: from stored renderings, as far as there are some, and otherwise from the objects."""

    def __init__(self, collection: Collection[Any, Any]) -> None:
        self._collection = collection
        self._visible: dict[bytes, bool] = {}
        """By labels, whether objects with these are visible: few differ."""
        self._limit = _SLICE

    async def page(self, found: CachedList, after: str | None) -> Page[Any]:
        """Read a page, and add its visible objects to a list."""
        collection = self._collection
        store, kind, form = collection.store, collection.kind, collection.stored_form
        if form is None:
            page: Page[Any] = await store.list(kind, **collection.listed, limit=_SLICE, after=after)
        else:
            page = await store.list_renderings(kind, form.name, **collection.listed, limit=self._limit, after=after)
        rendered: list[tuple[Resource, bytes]] = []
        for item in page.items:
            if isinstance(item, Rendering):
                if form is not None and self._visibility(form, item.labels):
                    found.append(item.name, item.body)
            elif collection.visible is None or collection.visible(item):
                _add(found, item, collection)
                rendered.append((item, found.items[-1]))
        self._limit = _SLICE if rendered else _STORED_SLICE
        _store(rendered, collection)
        return page

    def _visibility(self, form: StoredForm, labels: bytes) -> bool:
        known = self._visible.get(labels)
        if known is None:
            known = self._visible[labels] = form.is_visible(msgspec.json.decode(labels))
        return known


def _store(rendered: Sequence[tuple[Resource, bytes]], collection: Collection[Any, Any]) -> None:
    """Have the store keep what was rendered, as far as all readers see the same of it."""
    form = collection.stored_form
    if form is None:
        return
    kept = [
        Rendering(resource.name, resource.version, _labels_of(resource), body)
        for resource, body in rendered
        if collection.is_same_for_all(resource)
    ]
    if kept:
        collection.store.store_renderings(collection.kind, form.name, kept)


def _labels_of(resource: Resource) -> bytes:
    labels = resource.metadata.labels
    return msgspec.json.encode({key: value for key, value in labels.items() if key != NAME_LABEL}, order="sorted")


def _apply(found: CachedList, change: Change[Any], collection: Collection[Any, Any]) -> bool:
    """Apply a change to a list; return whether the list is another one now."""
    resource = change.resource
    is_listed = (
        change.type != "deleted"
        and collection.labels.items() <= resource.metadata.labels.items()
        and (collection.visible is None or collection.visible(resource))
    )
    if not is_listed:
        return found.remove(resource.name)
    found.secrets.discard(resource.name)
    _store([(resource, _render(found, resource, collection, found.put))], collection)
    return True


def _add(found: CachedList, resource: Resource, collection: Collection[Any, Any]) -> None:
    _render(found, resource, collection, found.append)


def _render(
    found: CachedList, resource: Resource, collection: Collection[Any, Any], put: Callable[[str, bytes], None]
) -> bytes:
    view = collection.view_of(resource)
    body = body_of(view, resource)
    put(resource.name, body)
    if collection.has_secret and view.shows_secret(resource):  # type: ignore[attr-defined]  # it is guarded then
        found.secrets.add(resource.name)
    return body


def array(items: Sequence[bytes]) -> bytes:
    """Join items with one copy of each: adding a bracket to the result would copy it whole."""
    if not items:
        return b"[]"
    first, *others = items
    return b",".join([b"[" + first, *others[:-1], others[-1] + b"]"]) if others else b"[" + first + b"]"
