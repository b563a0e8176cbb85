"""Keys in the order of a number, each at most once: a heap that forgets what was moved or dropped when it comes up.

When most of the heap is outdated it is built anew, so that its size follows that of its content.
"""

import heapq
import itertools
import math
from typing import Generic, TypeVar

_FEW = 64

ValueT = TypeVar("ValueT")


class Schedule(Generic[ValueT]):
    """Values by key, least number first; of equal numbers the one that was put first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._places: dict[str, tuple[float, int, ValueT]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def get(self, key: str) -> ValueT | None:
        """Return the value of a key, if it is here."""
        place = self._places.get(key)
        return None if place is None else place[2]

    def at(self, key: str) -> float | None:
        """Return the number of a key, if it is here."""
        place = self._places.get(key)
        return None if place is None else place[0]

    def put(self, key: str, at: float, value: ValueT) -> None:
        """Place a key, or move it if it is here."""
        place = self._places.get(key)
        if place is not None and place[0] == at:
            self._places[key] = (at, place[1], value)
            return
        number = next(self._numbers)
        self._places[key] = (at, number, value)
        heapq.heappush(self._heap, (at, number, key))
        if len(self._heap) > 2 * len(self._places) + _FEW:
            self._heap = [(at, number, key) for key, (at, number, _) in self._places.items()]
            heapq.heapify(self._heap)

    def drop(self, key: str) -> ValueT | None:
        """Forget a key, and return what it had."""
        place = self._places.pop(key, None)
        return None if place is None else place[2]

    def first(self) -> float | None:
        """Return the least number."""
        while self._heap:
            at, number, key = self._heap[0]
            place = self._places.get(key)
            if place is not None and place[1] == number:
                return at
            heapq.heappop(self._heap)
        return None

    def pop(self, *, upto: float = math.inf) -> tuple[str, ValueT] | None:
        """Take the key with the least number, if that is not beyond `upto`."""
        first = self.first()
        if first is None or first > upto:
            return None
        key = heapq.heappop(self._heap)[2]
        return key, self._places.pop(key)[2]

    def longest(self) -> ValueT | None:
        """Return the value of the key that has been here longest, however often it was moved."""
        return next((value for _, _, value in self._places.values()), None)
