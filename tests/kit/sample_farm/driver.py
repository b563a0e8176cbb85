"""Sample farm on the simulated machine, and a scripted reconciler."""

from collections.abc import Callable, Coroutine
from typing import Any

from remuda.reconcile.results import Done, ReconcileContext, Result
from tests.kit.sample_farm.controller import Farm, farm
from tests.kit.simulation.runner import World, simulate


def in_simulation(scenario: Callable[[Farm], Coroutine[Any, Any, None]], seeds: int = 5) -> None:
    async def run(world: World) -> None:
        async with farm(world) as environment:
            await scenario(environment)

    simulate(run, seeds)


class Script:
    """A reconciler that does what a test says, and notes when it was called."""

    def __init__(self, farm: Farm, *says: Result | Exception) -> None:
        self.farm = farm
        self.says = list(says)
        self.times: list[float] = []

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        assert (key, run.key) == ("bella", "bella")
        self.times.append(self.farm.world.clock.monotonic())
        says = self.says.pop(0) if self.says else Done()
        if isinstance(says, Exception):
            raise says
        return says

    def pauses(self) -> list[float]:
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]
