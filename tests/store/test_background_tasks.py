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


async def test_a_duty_that_fails_is_begun_again_and_again(world: World) -> None:
    began: list[float] = []

    async def fail() -> None:
        began.append(world.clock.monotonic())
        raise OSError("no such luck")

    duties = BackgroundTasks(world.clock)
    with capture_logs() as logs:
        duties.start("unlucky", fail)
        await world.clock.sleep(200)
        assert duties.failing == {"unlucky": "no such luck"}
        await duties.stop()
    pauses = [after - before for before, after in itertools.pairwise(began)]
    assert pauses[:6] == [1, 2, 4, 8, 16, 30]
    assert len(logs) == len(began)


async def test_a_duty_that_is_done_is_not_begun_again(world: World) -> None:
    done: list[None] = []

    async def finish() -> None:
        done.append(None)

    duties = BackgroundTasks(world.clock)
    duties.start("short", finish)
    await world.clock.sleep(100)
    await duties.stop()
    assert done == [None]


async def test_stopping_ends_what_is_under_way(world: World) -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await world.clock.sleep(1_000_000)
        finally:
            ended.set()

    duties = BackgroundTasks(world.clock)
    duties.start("long", wait)
    await world.clock.sleep(1)
    await duties.stop()
    assert ended.is_set()
