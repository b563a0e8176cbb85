"""What holds every state of the store and the pasture against the laws, while the livery is in trouble."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from remuda.kernel.errors import Unavailable
from tests.example.house import House
from tests.example.laws import Snapshot, check_always, check_removal

DEFECTS = {"reconcile failed", "step failed", "step failed unexpectedly", "change not mapped to keys"}
"""Lines of the log that tell of an error nobody thought of."""

T = TypeVar("T")


class Watchdog:
    """Looks whenever it is told to, and before anything is brought in from the pasture."""

    def __init__(self, house: House, version: Callable[[], object] = object) -> None:
        """`version` tells a state of the store from every other; without one, each look is at a new state."""
        self.looks = 0
        """How many states were held against the laws."""
        self._house, self._version = house, version
        self._checked: tuple[object, ...] | None = None
        house.pasture.before_removal = self._removing

    def check(self) -> None:
        """Look, if anything has changed since the last look."""
        house = self._house
        if house.machine.is_down or house.store is None:
            return
        state = id(house.store), self._version(), house.pasture.version
        if state != self._checked and (seen := self._look()) is not None:
            self._checked = state
            self.looks += 1
            check_always(seen, house.book, house.pasture)

    def _removing(self, name: str) -> None:
        if not self._house.machine.is_down and (seen := self._look()) is not None:
            check_removal(seen, name)

    def _look(self) -> Snapshot | None:
        if self._house.store is None:
            return None
        try:
            return at_once(self._house.see())
        except Unavailable:
            return None


def at_once(reading: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that waits for nothing: so nothing changes while it reads."""
    try:
        reading.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    reading.close()
    raise AssertionError("a read of the store waits for nothing")


def check_log(lines: Iterable[Mapping[str, Any]]) -> None:
    """The log tells of no error that nobody thought of."""
    defects = [line for line in lines if line["event"] in DEFECTS]
    assert not defects, defects
