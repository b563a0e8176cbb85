"""Everything of region deleted at every point of its making, and with a crash at every commit of its life.

Every third point, unless REMUDA_SEEDS asks for more than a quick look.
"""

import os
from itertools import count

import pytest
from structlog.testing import capture_logs

from tests.example.watchdog import check_log
from tests.region.sim_points import Bench
from tests.sim.runner import World, simulate

KINDS = ("network", "group", "balancer", "server", "authority", "storage")
STRIDE = 1 if "REMUDA_SEEDS" in os.environ else 3
LONG_DONE = 3
"""When it was done so many times in a row, one more step makes no difference."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_deleted_at_any_step_of_its_making_is_gone_everywhere(kind: str) -> None:
    async def scenario(world: World) -> None:
        bench, done = Bench(world), 0
        await bench.open()
        await bench.furnish(kind)
        for steps in count(step=STRIDE):
            done = done + 1 if await bench.delete_after(kind, steps) else 0
            if done == LONG_DONE:
                break
        assert steps > 5
        await bench.close()

    with capture_logs() as lines:
        simulate(scenario, [1])
    check_log(lines)


@pytest.mark.parametrize("kind", ["network", "authority"])
def test_what_is_in_a_project_that_is_deleted_at_any_step_is_gone_everywhere(kind: str) -> None:
    async def scenario(world: World) -> None:
        bench, done = Bench(world), 0
        await bench.open()
        for steps in count(step=STRIDE):
            done = done + 1 if await bench.delete_project_after(kind, steps) else 0
            if done == LONG_DONE:
                break
        assert steps > 5
        await bench.close()

    with capture_logs() as lines:
        simulate(scenario, [1])
    check_log(lines)


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_at_any_commit_of_its_life_loses_nothing_and_leaves_nothing(kind: str) -> None:
    async def scenario(world: World) -> None:
        bench = Bench(world)
        await bench.open()
        await bench.furnish(kind)
        for sync in count(1, STRIDE):
            if not await bench.crash_at(kind, sync, "all" if sync // STRIDE % 2 else "none"):
                break
        assert sync > 5
        await bench.close()

    with capture_logs() as lines:
        simulate(scenario, [1])
    check_log(lines)
