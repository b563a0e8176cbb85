"""Bounded cache of decoded objects and their rendered views.

Entries are replaced after a commit, so readers see only durable state. The limit is in bytes. A long list adds and
evicts many entries, which delays garbage collections until one blocks the event loop. So keys are strings instead of
tuples, the first view is stored in its entry, and the youngest generation is collected after every few hundred
evictions.
"""

import gc
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Generic

import msgspec

from remuda.store.contract import View
from remuda.store.objects import ResourceT

_EVICTIONS_PER_COLLECTION = 500
"""Evictions after which the youngest generation is collected."""


class CachedObject(msgspec.Struct, Generic[ResourceT], gc=False):
    """One object with its rendered views. It has no reference cycles, so it is not tracked by the garbage collector."""

    resource: ResourceT
    weight: int
    fully_known: bool = False
    """Whether the stored document is known to have no fields that our types do not know."""
    view: View[ResourceT] | None = None
    """The view that was rendered first. Most objects only ever have one."""
    rendered: bytes = b""
    others: dict[View[ResourceT], bytes] | None = None

    def of(self, view: View[ResourceT]) -> bytes | None:
        if self.view is view:
            return self.rendered
        return None if self.others is None else self.others.get(view)

    def put(self, view: View[ResourceT], rendered: bytes) -> None:
        self.weight += len(rendered)
        if self.view is None:
            self.view, self.rendered = view, rendered
        else:
            self.others = {**(self.others or {}), view: rendered}


class Cache:
    """The most recently used entries, by kind and name."""

    def __init__(self, limit_bytes: int, *, object_bytes: int = 1024) -> None:
        """Set the limit, and the overhead in memory of an object beyond its document."""
        self._limit, self._object_bytes = limit_bytes, object_bytes
        self._entries: OrderedDict[str, CachedObject[Any]] = OrderedDict()
        self._weight = 0
        self._evictions = 0

    def find(self, kind: int, name: str) -> CachedObject[Any] | None:
        """Return an entry and mark it as used."""
        key = f"{kind}/{name}"
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def has(self, kind: int, name: str) -> bool:
        """Return whether there is an entry, which is not used by that."""
        return f"{kind}/{name}" in self._entries

    def put(self, kind: int, name: str, entry: CachedObject[Any]) -> None:
        """Store an entry in place of an older one, and evict the least recently used ones if needed."""
        self.drop(kind, name)
        self._entries[f"{kind}/{name}"] = entry
        self._weight += entry.weight + self._object_bytes
        self._evict()

    def render(self, kind: int, name: str, view: View[Any]) -> bytes | None:
        """Return a view of a cached object, rendered at the first use; None if the object is not cached."""
        entry = self.find(kind, name)
        if entry is None:
            return None
        rendered = entry.of(view)
        if rendered is None:
            rendered = view(entry.resource)
            entry.put(view, rendered)
            self._weight += len(rendered)
            self._evict()
        return rendered

    def rendered(self, kind: int, names: Sequence[str], view: View[Any]) -> list[bytes | None]:
        """Return views of many objects and mark them as used; None for each that is not rendered yet."""
        entries, use = self._entries, self._entries.move_to_end
        found: list[bytes | None] = []
        for name in names:
            key = f"{kind}/{name}"
            entry = entries.get(key)
            if entry is None:
                found.append(None)
            else:
                use(key)
                found.append(entry.rendered if entry.view is view else entry.of(view))
        return found

    def drop(self, kind: int, name: str) -> None:
        self._evicted(self._entries.pop(f"{kind}/{name}", None))

    def drop_all(self, keys: set[tuple[int, str]]) -> None:
        for key in self._entries.keys() & {f"{kind}/{name}" for kind, name in keys}:
            self._evicted(self._entries.pop(key))

    def clear(self) -> None:
        self._entries.clear()
        self._weight = 0

    def _evict(self) -> None:
        while self._weight > self._limit:
            self._evicted(self._entries.popitem(last=False)[1])

    def _evicted(self, entry: CachedObject[Any] | None) -> None:
        if entry is not None:
            self._weight -= entry.weight + self._object_bytes
            self._evictions += 1
            if self._evictions == _EVICTIONS_PER_COLLECTION:
                self._evictions = 0
                gc.collect(0)
