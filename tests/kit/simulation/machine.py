"""The simulated machine as a whole system sees it: a store that is opened as it was left, on a disk of moods."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import apsw

from remuda.kernel.errors import StoreInaccessible
from remuda.kernel.randomness import Randomness
from remuda.store.kinds import Registry
from remuda.store.sqlite.executor import BlockingCall, Done
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.simulation.executor import SimExecutor
from tests.kit.simulation.faults import FaultMenu
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER, sim_ports

KEEP: tuple[Keep, ...] = ("none", "some", "all")
_USUAL_S, _SLOW_S = 0.02, 20.0


class SlowLane(SimExecutor):
    """A lane on which something takes very long now and then."""

    def __init__(self, randomness: Randomness, faults: FaultMenu) -> None:
        super().__init__(randomness, longest_s=_USUAL_S)
        self._faults = faults

    def submit(self, work: BlockingCall, done: Done) -> None:
        self._longest_s = _SLOW_S if self._faults.fires("disk.slow") else _USUAL_S
        super().submit(work, done)


class SimMachine:
    """The simulated machine."""

    def __init__(self, world: World, registry: Registry) -> None:
        self.world = world
        self.clock, self.randomness, self.faults = world.clock, world.randomness, world.faults
        self._registry = registry

    @property
    def is_down(self) -> bool:
        """The power is gone."""
        return self.world.disk.is_cut

    async def open(self) -> SqliteStore:
        """Open the store, as often as it takes."""
        while True:
            if self.is_down:
                self.world.power_cut()
            ports = replace(sim_ports(self.world), commits=lambda: SlowLane(self.randomness, self.faults))
            try:
                return open_store(self.world.disk.directory / "remuda.db", self._registry, SEALER, ports=ports)
            except StoreInaccessible:
                await self.clock.sleep(1)

    async def close(self, store: SqliteStore) -> None:
        """Release the store."""
        self.world.disk.free()
        with suppress(apsw.Error):
            await store.close()

    async def suffer(self, jumps: Sequence[timedelta]) -> bool:
        """Let happen to the clock and the disk what the menu says; tell whether the power will be cut."""
        world, faults, draw = self.world, self.faults, self.randomness.randrange
        if faults.fires("clock.jump"):
            world.clock.jump(jumps[draw(len(jumps))])
        if faults.fires("disk.fills_up"):
            world.disk.fill()
            await self.clock.sleep(0.5)
            world.disk.free()
        if faults.fires("power.cut"):
            world.plan_power_cut(1 + draw(6), keep=KEEP[draw(3)], tear=draw(2) == 1)
            return True
        return False
