"""What holds every state of the store and the clouds against the invariants, while region is in trouble."""

from collections.abc import Callable

from remuda.kernel.errors import Unavailable
from tests.kit.sim_region.invariants import check_always, check_step
from tests.kit.sim_region.snapshot import RegionSnapshot
from tests.kit.sim_region.system import RegionSystem
from tests.kit.simulation.checks import at_once


class RegionChecker:
    """Looks whenever it is told to, if anything has changed since the last look."""

    def __init__(self, system: RegionSystem, version: Callable[[], object]) -> None:
        """`version` tells a state of the store from every other."""
        self.looks = 0
        """How many states were held against the invariants."""
        self._system, self._version = system, version
        self._checked: tuple[object, ...] | None = None
        self._before: tuple[int, RegionSnapshot] | None = None

    def check(self) -> None:
        """Look."""
        system = self._system
        if system.machine.is_down or system.store is None or system.snapshots is None:
            return
        state = id(system.store), self._version(), system.snapshots.version
        if state == self._checked:
            return
        try:
            seen = at_once(system.see())
        except Unavailable:
            return
        self._checked = state
        self.looks += 1
        check_always(seen, system.history)
        if self._before is not None and self._before[0] == id(system.store):
            check_step(self._before[1], seen, system.history)
        self._before = id(system.store), seen
