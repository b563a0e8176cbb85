"""What holds every state of the store against the invariants, while identity is in trouble."""

from collections.abc import Callable

from remuda.kernel.errors import Unavailable
from tests.kit.sim_identity.invariants import check_always
from tests.kit.sim_identity.system import IdentitySystem
from tests.kit.simulation.checks import at_once


class IdentityChecker:
    """Looks whenever it is told to, if anything has changed since the last look."""

    def __init__(self, system: IdentitySystem, version: Callable[[], object] = object) -> None:
        """`version` tells a state of the store from every other; without one, each look is at a new state."""
        self.looks = 0
        """How many states were held against the invariants."""
        self._system, self._version = system, version
        self._checked: tuple[object, ...] | None = None

    def check(self) -> None:
        """Look."""
        system = self._system
        if system.machine.is_down or system.store is None:
            return
        state = id(system.store), self._version()
        if state == self._checked:
            return
        try:
            seen = at_once(system.see())
        except Unavailable:
            return
        self._checked = state
        self.looks += 1
        check_always(seen, system.history)
