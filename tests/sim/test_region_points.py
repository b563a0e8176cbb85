"""Everything of region deleted at every point of its making, and with a crash at every commit of its life.

At each point something else goes wrong at the cloud, or nothing. Every third point, unless REMUDA_SEEDS asks for more
than a quick look.
"""

import os
from collections.abc import Awaitable, Callable
from itertools import count

import pytest
from structlog.testing import capture_logs

from remuda.providers.simulated.faults import FAULTS, Fault
from tests.kit.sim_region.crash_points import Bench
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.runner import World, simulate

KINDS = ("network", "group", "balancer", "server", "authority", "storage")
ROOTS = {"network", "authority"}
"""What needs nothing but a project."""
STRIDE, DEAR_STRIDE = (1, 3) if "REMUDA_SEEDS" in os.environ else (3, 15)
"""How far points are apart; and where each needs a project with a network of its own."""
LONG_DONE = 3
"""When it was done so many times in a row, one more step makes no difference."""
CALLS = 2
"""A fault happens at the first or the second call that it can happen to."""
SEVERAL = 3
"""So many faults are met by every kind in each way to go over it, at least."""


def fault_of(kind: str, point: int) -> tuple[Fault | None, int]:
    """Return what goes wrong at a point, and at which call: nothing, and then one after the other, by kind."""
    if kind == "authority":  # it has nothing at a cloud
        return None, 0
    menu, turn = (None, *FAULTS), point + KINDS.index(kind) * CALLS
    return menu[turn % len(menu)], 1 + turn // len(menu) % CALLS


def sweep(
    kind: str, visit: Callable[[Bench, int], Awaitable[bool]], *, enough: int = LONG_DONE, stride: int = STRIDE
) -> None:
    """Visit point after point, each with its fault, until it was the same at several of them."""

    async def scenario(world: World) -> None:
        bench, done = Bench(world), 0
        await bench.open()
        await bench.furnish(kind)
        for point in count():
            bench.plan(*fault_of(kind, point))
            done = done + 1 if await visit(bench, point * stride) else 0
            if done == enough:
                break
        assert point * stride > 5
        await bench.close()
        assert kind == "authority" or len(world.faults.planned) >= SEVERAL

    with capture_logs() as lines:
        simulate(scenario, [1])
    check_log(lines)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_deleted_at_any_step_of_its_making_is_gone_everywhere(kind: str) -> None:
    sweep(kind, lambda bench, steps: bench.delete_after(kind, steps))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_a_project_that_is_deleted_at_any_step_is_gone_everywhere(kind: str) -> None:
    stride = STRIDE if kind in ROOTS else DEAR_STRIDE
    sweep(kind, lambda bench, steps: bench.delete_project_after(kind, steps), stride=stride)


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_at_any_commit_of_its_life_loses_nothing_and_leaves_nothing(kind: str) -> None:
    async def visit(bench: Bench, commits: int) -> bool:
        return not await bench.crash_at(kind, commits + 1, "all" if commits // STRIDE % 2 else "none")

    sweep(kind, visit, enough=1)
