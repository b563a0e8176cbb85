"""What was worked out from stored objects, for as long as those stay the same."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from remuda.store.contract import Store
from remuda.store.objects import Resource

__all__ = ["Kept"]

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class Kept(Generic[KeyT, ValueT]):
    """The results that were used last, each good until some object of the kinds that it was made from changes.

    Take the stamp of those kinds (`Store.stamp`) before reading them: what changes meanwhile then makes the result
    useless, and never a stale result good.
    """

    def __init__(self, store: Store, limit: int) -> None:
        self._store, self._limit = store, limit
        self._entries: OrderedDict[KeyT, tuple[Sequence[type[Resource]], int, ValueT]] = OrderedDict()

    def find(self, key: KeyT) -> ValueT | None:
        """Return what was kept, if nothing has changed since."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        kinds, stamp, value = entry
        if self._store.stamp(kinds) != stamp:
            return None
        self._entries.move_to_end(key)
        return value

    def keep(self, key: KeyT, kinds: Sequence[type[Resource]], stamp: int, value: ValueT) -> None:
        """Keep a result in place of any older one, and forget the one that was used least if there are too many."""
        self._entries[key] = (kinds, stamp, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def __contains__(self, key: object) -> bool:
        """Tell whether something was kept, even if it is good no more."""
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
