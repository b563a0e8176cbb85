"""Cache of values that are derived from stored objects, valid while those objects do not change."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from remuda.store.contract import Dependency, Store

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class _Entry(Generic[ValueT]):
    __slots__ = ("counter", "dependencies", "value")

    def __init__(self, dependencies: Sequence[Dependency], counter: int, value: ValueT) -> None:
        self.dependencies, self.counter, self.value = dependencies, counter, value


class DerivedCache(Generic[KeyT, ValueT]):
    """A bounded LRU cache. An entry is valid until one of its dependencies changes.

    Read the change counter of the whole store (`Store.change_counter`) before the first object: a change in between
    then invalidates the entry, and a stale value is never served.
    """

    def __init__(self, store: Store, limit: int) -> None:
        self._store, self._limit = store, limit
        self._entries: OrderedDict[KeyT, _Entry[ValueT]] = OrderedDict()

    def find(self, key: KeyT) -> ValueT | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        now = self._store.change_counter()
        if entry.counter != now:
            if self._store.change_counter(entry.dependencies) > entry.counter:
                return None
            entry.counter = now  # valid now, so the next lookup is cheap
        self._entries.move_to_end(key)
        return entry.value

    def put(self, key: KeyT, dependencies: Sequence[Dependency], counter: int, value: ValueT) -> None:
        """Store a value in place of an older one, and evict the least recently used one if there are too many."""
        self._entries[key] = _Entry(dependencies, counter, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def __contains__(self, key: object) -> bool:
        """Return whether there is an entry, valid or not."""
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
