"""What holds every state of the store and the clouds against the laws, while region is in trouble."""

from collections.abc import Callable

from remuda.kernel.errors import Unavailable
from tests.kit.sim_region.invariants import check_always, check_step
from tests.kit.sim_region.snapshot import Seen
from tests.kit.sim_region.system import House
from tests.kit.watchdog import at_once


class Watchdog:
    """Looks whenever it is told to, if anything has changed since the last look."""

    def __init__(self, house: House, version: Callable[[], object]) -> None:
        """`version` tells a state of the store from every other."""
        self.looks = 0
        """How many states were held against the laws."""
        self._house, self._version = house, version
        self._checked: tuple[object, ...] | None = None
        self._before: tuple[int, Seen] | None = None

    def check(self) -> None:
        """Look."""
        house = self._house
        if house.machine.is_down or house.store is None or house.sight is None:
            return
        state = id(house.store), self._version(), house.sight.version
        if state == self._checked:
            return
        try:
            seen = at_once(house.see())
        except Unavailable:
            return
        self._checked = state
        self.looks += 1
        check_always(seen, house.book)
        if self._before is not None and self._before[0] == id(house.store):
            check_step(self._before[1], seen, house.book)
        self._before = id(house.store), seen
