"""A bounded cache of decoded objects and their rendered views.

Entries are replaced when a commit lands, never written through, so a reader sees what is durable and nothing else. The
bound is in bytes of documents: memory stays flat however many objects there are.
"""

from collections import OrderedDict
from typing import Any, Generic

import msgspec

from remuda.store.contract import View
from remuda.store.objects import ResourceT

__all__ = ["Cache", "Entry"]


class Entry(msgspec.Struct, Generic[ResourceT], gc=False):
    """One object as it stands, with what was rendered from it. Nothing in it points back, so no collector need look."""

    resource: ResourceT
    weight: int
    whole: bool = False
    """Known to be all there is: the stored document holds nothing that our types do not know."""
    views: dict[View[ResourceT], bytes] = {}


class Cache:
    """The most recently used entries, by kind and name."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._entries: OrderedDict[tuple[int, str], Entry[Any]] = OrderedDict()
        self._weight = 0

    def find(self, kind: int, name: str) -> Entry[Any] | None:
        """Return an entry and remember that it was used."""
        entry = self._entries.get((kind, name))
        if entry is not None:
            self._entries.move_to_end((kind, name))
        return entry

    def put(self, kind: int, name: str, entry: Entry[Any]) -> None:
        """Keep an entry in place of any older one, dropping what was used least if there is no room."""
        self.drop(kind, name)
        self._entries[kind, name] = entry
        self._weight += entry.weight
        self._evict()

    def render(self, kind: int, name: str, view: View[Any]) -> bytes | None:
        """Return a view of a cached object, rendering it the first time; None if the object is not here."""
        entry = self.find(kind, name)
        if entry is None:
            return None
        rendered = entry.views.get(view)
        if rendered is None:
            rendered = entry.views[view] = view(entry.resource)
            entry.weight += len(rendered)
            self._weight += len(rendered)
            self._evict()
        return rendered

    def drop(self, kind: int, name: str) -> None:
        """Forget an object."""
        entry = self._entries.pop((kind, name), None)
        if entry is not None:
            self._weight -= entry.weight

    def drop_all(self, keys: set[tuple[int, str]]) -> None:
        """Forget many objects, of which few are here."""
        for key in self._entries.keys() & keys:
            self.drop(*key)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._weight = 0

    def _evict(self) -> None:
        while self._weight > self._limit:
            _, oldest = self._entries.popitem(last=False)
            self._weight -= oldest.weight
