"""What holds every state of the store against the laws, while identity is in trouble."""

from collections.abc import Callable

from remuda.kernel.errors import Unavailable
from tests.kit.sim_identity.invariants import check_always
from tests.kit.sim_identity.system import House
from tests.kit.watchdog import at_once


class Watchdog:
    """Looks whenever it is told to, if anything has changed since the last look."""

    def __init__(self, house: House, version: Callable[[], object] = object) -> None:
        """`version` tells a state of the store from every other; without one, each look is at a new state."""
        self.looks = 0
        """How many states were held against the laws."""
        self._house, self._version = house, version
        self._checked: tuple[object, ...] | None = None

    def check(self) -> None:
        """Look."""
        house = self._house
        if house.machine.is_down or house.store is None:
            return
        state = id(house.store), self._version()
        if state == self._checked:
            return
        try:
            seen = at_once(house.see())
        except Unavailable:
            return
        self._checked = state
        self.looks += 1
        check_always(seen, house.book)
