"""Written objects: the documents and index entries of the objects that were written last.

Most objects change soon after they were created, and a change needs both of the state before. They are kept for the
object itself, not for an equal one, so they can never be outdated. Their size is limited, because a document can be
large.
"""

import msgspec

from remuda.store.contract import IndexEntry
from remuda.store.objects import Resource

_MAX_BYTES = 4 << 20
_OBJECT_BYTES = 2_048
"""Size in memory of an object beyond its document."""


class WrittenObject(msgspec.Struct, frozen=True, gc=False):
    """An object in the state in which it was written."""

    resource: Resource
    document: bytes
    entries: frozenset[IndexEntry]
    """Its index entries, except those of its labels."""


class RecentWrites:
    """The objects that were written last."""

    def __init__(self) -> None:
        self._known: dict[int, WrittenObject] = {}
        self._bytes = 0

    def find(self, resource: Resource) -> WrittenObject | None:
        """Return what was written of an object, if it was recently; not of an equal one."""
        return self._known.get(id(resource))  # those in here are kept, so no other object gets their id

    def add(self, written: WrittenObject) -> None:
        """Keep what was written of an object, in place of all others if they have become too many."""
        self._bytes += len(written.document) + _OBJECT_BYTES
        if self._bytes > _MAX_BYTES:
            self._known.clear()
            self._bytes = len(written.document) + _OBJECT_BYTES
        self._known[id(written.resource)] = written
