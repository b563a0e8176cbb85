"""An instance ended at every point of its making, and with a crash at every commit of its life.

Every third point, unless REMUDA_SEEDS asks for more than a quick look.
"""

import os
from collections.abc import Awaitable, Callable
from itertools import count

import pytest
from structlog.testing import capture_logs

from tests.kit.sim_compute.crash_points import CHANGES, INSTANCE, InstanceBench
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.runner import World, simulate

STRIDE = 1 if "REMUDA_SEEDS" in os.environ else 3
LONG_DONE = 3
"""When it was done so many times in a row, one more step makes no difference."""


def at_every_step(end: Callable[[InstanceBench, int], Awaitable[bool]]) -> None:
    """Make instance after instance, and `end` each so many steps later than the one before."""

    async def scenario(world: World) -> None:
        bench, done = InstanceBench(world), 0
        await bench.open()
        await bench.furnish(INSTANCE)
        for steps in count(step=STRIDE):
            done = done + 1 if await end(bench, steps) else 0
            if done == LONG_DONE:
                break
        assert steps > 5
        await bench.close()

    with capture_logs() as lines:
        simulate(scenario, [1])
    check_log(lines)


def test_an_instance_that_is_deleted_at_any_step_of_its_making_is_gone_everywhere() -> None:
    at_every_step(lambda bench, steps: bench.delete_after(INSTANCE, steps))


@pytest.mark.parametrize("home", ["network", "project"])
def test_m18_an_instance_whose_network_or_project_is_deleted_at_any_step_is_gone_everywhere(home: str) -> None:
    at_every_step(lambda bench, steps: bench.delete_home_after(home, steps))


@pytest.mark.parametrize("change", CHANGES)
def test_a_crash_at_any_commit_of_an_instances_life_loses_nothing_and_leaves_nothing(change: str) -> None:
    async def scenario(world: World) -> None:
        bench = InstanceBench(world, change)
        await bench.open()
        await bench.furnish(INSTANCE)
        for sync in count(1, STRIDE):
            if not await bench.crash_at(INSTANCE, sync, "all" if sync // STRIDE % 2 else "none"):
                break
        assert sync > 5
        await bench.close()

    with capture_logs() as lines:
        simulate(scenario, [1])
    check_log(lines)
