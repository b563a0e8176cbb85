"""A bounded cache of decoded objects and their rendered views.

Entries are replaced when a commit lands, never written through, so a reader sees what is durable and nothing else. The
bound is in bytes, of documents and of what an object costs beyond its document: memory stays flat however many objects
there are.

The garbage collector sees next to nothing of the cache. A list that streams past it makes and drops entries in equal
numbers, which puts collections off while what they would have to look at piles up; the one that comes at last holds the
loop. So keys are text rather than tuples, an entry's first view is in the entry rather than in a dictionary, and what
little is left is shown to the collector after each few hundred entries that went.
"""

import gc
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Generic

import msgspec

from remuda.store.contract import View
from remuda.store.objects import ResourceT

_LOST = 500
"""After so many entries that went, young objects are looked at."""


class Entry(msgspec.Struct, Generic[ResourceT], gc=False):
    """One object as it stands, with what was rendered from it. Nothing in it points back, so no collector need look."""

    resource: ResourceT
    weight: int
    """Bytes of the document."""
    whole: bool = False
    """Known to be all there is: the stored document holds nothing that our types do not know."""
    view: View[ResourceT] | None = None
    """What was rendered first: most objects are only ever rendered one way."""
    rendered: bytes = b""
    others: dict[View[ResourceT], bytes] | None = None

    def of(self, view: View[ResourceT]) -> bytes | None:
        """Return what was rendered this way, if it was."""
        if self.view is view:
            return self.rendered
        return None if self.others is None else self.others.get(view)

    def keep(self, view: View[ResourceT], rendered: bytes) -> None:
        self.weight += len(rendered)
        if self.view is None:
            self.view, self.rendered = view, rendered
        else:
            self.others = {**(self.others or {}), view: rendered}


class Cache:
    """The most recently used entries, by kind and name."""

    def __init__(self, limit_bytes: int, *, object_bytes: int = 1024) -> None:
        """Take the bound, and what an object costs in memory beyond the bytes of its document."""
        self._limit, self._object_bytes = limit_bytes, object_bytes
        self._entries: OrderedDict[str, Entry[Any]] = OrderedDict()
        self._weight = 0
        self._lost = 0

    def find(self, kind: int, name: str) -> Entry[Any] | None:
        """Return an entry and remember that it was used."""
        key = f"{kind}/{name}"
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, kind: int, name: str, entry: Entry[Any]) -> None:
        """Keep an entry in place of any older one, dropping what was used least if there is no room."""
        self.drop(kind, name)
        self._entries[f"{kind}/{name}"] = entry
        self._weight += entry.weight + self._object_bytes
        self._evict()

    def render(self, kind: int, name: str, view: View[Any]) -> bytes | None:
        """Return a view of a cached object, rendering it the first time; None if the object is not here."""
        entry = self.find(kind, name)
        if entry is None:
            return None
        rendered = entry.of(view)
        if rendered is None:
            rendered = view(entry.resource)
            entry.keep(view, rendered)
            self._weight += len(rendered)
            self._evict()
        return rendered

    def rendered(self, kind: int, names: Sequence[str], view: View[Any]) -> list[bytes | None]:
        """Return views of many objects, and remember that they were used; None for each that is not there yet.

        A warm list is this loop and little else, so it calls nothing that it can do without.
        """
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
        """Forget an object."""
        self._lose(self._entries.pop(f"{kind}/{name}", None))

    def drop_all(self, keys: set[tuple[int, str]]) -> None:
        """Forget many objects, of which few are here."""
        for key in self._entries.keys() & {f"{kind}/{name}" for kind, name in keys}:
            self._lose(self._entries.pop(key))

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._weight = 0

    def _evict(self) -> None:
        while self._weight > self._limit:
            self._lose(self._entries.popitem(last=False)[1])

    def _lose(self, entry: Entry[Any] | None) -> None:
        if entry is not None:
            self._weight -= entry.weight + self._object_bytes
            self._lost += 1
            if self._lost == _LOST:
                self._lost = 0
                gc.collect(0)
