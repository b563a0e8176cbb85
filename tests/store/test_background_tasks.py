"""Background work that fails is told and begun again."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

from structlog.testing import capture_logs

from remuda.store.background import BackgroundTasks
from tests.kit.environment import provided_by
from tests.kit.simulation.runner import World, simulate


def in_simulation(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    simulate(scenario, 3)


world = provided_by(in_simulation)


async def test_a_task_that_fails_is_begun_again_and_again(world: World) -> None:
    began: list[float] = []

    async def fail() -> None:
        began.append(world.clock.monotonic())
        raise OSError("no such luck")

    tasks = BackgroundTasks(world.clock)
    with capture_logs() as logs:
        tasks.start("unlucky", fail)
        await world.clock.sleep(200)
        assert tasks.failing == {"unlucky": "no such luck"}
        await tasks.stop()
    pauses = [after - before for before, after in itertools.pairwise(began)]
    assert pauses[:6] == [1, 2, 4, 8, 16, 30]
    assert len(logs) == len(began)


async def test_a_task_that_is_done_is_not_begun_again(world: World) -> None:
    done: list[None] = []

    async def finish() -> None:
        done.append(None)

    tasks = BackgroundTasks(world.clock)
    tasks.start("short", finish)
    await world.clock.sleep(100)
    await tasks.stop()
    assert done == [None]


async def test_stopping_ends_what_is_under_way(world: World) -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await world.clock.sleep(1_000_000)
        finally:
            ended.set()

    tasks = BackgroundTasks(world.clock)
    tasks.start("long", wait)
    await world.clock.sleep(1)
    await tasks.stop()
    assert ended.is_set()
