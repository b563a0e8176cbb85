"""The pace of a monitor: how many things it looks at in a second, how many in a row, and who runs in between."""

import asyncio

import pytest

from remuda.reconcile.leader import Pace
from tests.kit.environment import options
from tests.kit.simulation.runner import World

PER_S = 10.0


@pytest.mark.parametrize("stride", [1, 10, 50])
@options(seeds=1)
async def test_as_many_pass_in_a_second_however_many_pass_in_a_row(world: World, stride: int) -> None:
    clock, pace, began = world.clock, Pace(world.clock, PER_S, stride=stride), world.clock.monotonic()
    passed = []
    for _ in range(200):
        passed.append(clock.monotonic() - began)
        await pace.step()
    assert clock.monotonic() - began == pytest.approx(200 / PER_S)
    assert [passed.count(passed[first]) for first in range(0, 200, stride)] == [stride] * (200 // stride)


@options(seeds=1)
async def test_others_run_while_many_pass_in_a_row(world: World) -> None:
    pace, began, turns = Pace(world.clock, PER_S), world.clock.monotonic(), 0

    async def other() -> None:
        nonlocal turns
        while world.clock.monotonic() == began:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    for _ in range(49):
        await pace.step()
    assert world.clock.monotonic() == began, "so many pass without a pause"
    assert turns >= 40, "and give up the loop all the same"
    running.cancel()
