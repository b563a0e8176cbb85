"""What was worked out from stored objects, for as long as those stay the same."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from remuda.store.contract import Part, Store

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class _Entry(Generic[ValueT]):
    __slots__ = ("parts", "stamp", "value")

    def __init__(self, parts: Sequence[Part], stamp: int, value: ValueT) -> None:
        self.parts, self.stamp, self.value = parts, stamp, value


class Kept(Generic[KeyT, ValueT]):
    """The results that were used last, each good until something changes in the parts that it was made from.

    Take the stamp of everything (`Store.stamp`) before reading any: what changes meanwhile then makes the result
    useless, and never a stale result good.
    """

    def __init__(self, store: Store, limit: int) -> None:
        self._store, self._limit = store, limit
        self._entries: OrderedDict[KeyT, _Entry[ValueT]] = OrderedDict()

    def find(self, key: KeyT) -> ValueT | None:
        """Return what was kept, if nothing has changed since."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        now = self._store.stamp()
        if entry.stamp != now:
            if self._store.stamp(entry.parts) > entry.stamp:
                return None
            entry.stamp = now  # it is as good as one that is made now
        self._entries.move_to_end(key)
        return entry.value

    def keep(self, key: KeyT, parts: Sequence[Part], stamp: int, value: ValueT) -> None:
        """Keep a result in place of any older one, and forget the one that was used least if there are too many."""
        self._entries[key] = _Entry(parts, stamp, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def __contains__(self, key: object) -> bool:
        """Tell whether something was kept, even if it is good no more."""
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
