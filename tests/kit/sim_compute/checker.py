"""What holds every state of the store and the clouds against the invariants, while compute is in trouble."""

from collections.abc import Callable

from tests.kit.sim_compute.invariants import Lives, check_instances
from tests.kit.sim_compute.system import ComputeSystem
from tests.kit.sim_region.checker import RegionChecker


class ComputeChecker(RegionChecker):
    """Holds what region's looks at also against the invariants of instances."""

    def __init__(self, system: ComputeSystem, version: Callable[[], object]) -> None:
        super().__init__(system, version)
        self._history, self._lives = system.history, Lives(system.history)

    def check(self) -> None:
        """Look."""
        looks, before = self.looks, self._before
        super().check()
        if self.looks == looks or self._before is None:
            return
        seen = self._before[1]
        if before is not None:  # also in the boot before: whatever could be read is kept
            self._lives.check_step(before[1], seen, are_two=len(self._system.processes) > 1)
        check_instances(seen, self._history, self._lives.late)
