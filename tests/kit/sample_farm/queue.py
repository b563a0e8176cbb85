"""Queue on the simulated machine."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from remuda.reconcile.queue import Queue
from tests.kit.simulation.runner import World, simulate


def simulated(scenario: Callable[[World, Queue], Awaitable[None]], seeds: int = 20) -> None:
    async def run(world: World) -> None:
        await scenario(world, Queue(world.clock))

    simulate(run, seeds)


async def key_of(taking: Coroutine[Any, Any, Any]) -> str | None:
    taken = await taking
    return None if taken is None else str(taken[0])
