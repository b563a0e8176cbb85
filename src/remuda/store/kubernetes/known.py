"""What we know of objects: what informers put into the tables, unless its newest state cannot be read.

Of an object whose newest state does not fit its type or does not open, the last readable one stays in the tables:
unknown is not absent, so lists go on to show it and no watch is told that it was deleted. But it is not the present
one, so whoever asks for it by name is sent to the API server, and told there what is wrong with it.
"""

from collections.abc import AsyncIterator
from typing import Any

from remuda.store.kinds import Kind
from remuda.store.objects import Resource, ResourceT
from remuda.store.readside.index import OWNER
from remuda.store.readside.reader import Reader
from remuda.store.readside.tables import Current

_SLICE = 25
"""Objects that are read before others get their turn."""


class Known:
    """A reader that tells the present from the past."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._unreadable: dict[str, dict[str, int]] = {kind.qualified: {} for kind in reader.registry.kinds}

    def unreadable(self, kind: Kind[Any]) -> dict[str, int]:
        """The objects of a kind whose newest state cannot be read, and the version of that state."""
        return self._unreadable[kind.qualified]

    def find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        """Return an object, or None if only the API server can say."""
        if name in self.unreadable(kind):
            return None
        with self._reader.storage:
            return self._reader.find(kind, name)

    def row(self, kind: Kind[Any], name: str) -> Current | None:
        """Return the document of an object, or None if only the API server can say."""
        if name in self.unreadable(kind):
            return None
        with self._reader.storage:
            return self._reader.tables.find(self._reader.names.kind(kind), name)

    async def under(self, kind: Kind[ResourceT], index: str, value: str) -> AsyncIterator[ResourceT]:
        """Yield everything under one value of one index, in the order of names, a slice at a time."""
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
        """Tell whether an owner owns anything."""
        with self._reader.storage:
            return bool(self._reader.children(owner, limit=1))
