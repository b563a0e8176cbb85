"""Run a scenario under many seeds, check invariants after every step, and say how to replay a failure.

Contract: `simulate(scenario, seeds)` gives each seed a fresh `World` and runs the scenario in it to the end. The first
failure, be it the scenario's own, an invariant's, a deadlock or an error nobody saw, is raised as an AssertionError
that carries the cause and a one-line command which runs that seed alone. A fault that was on the menu and fired under
no seed fails the whole: it was not tested.

Environment: REMUDA_SEED runs just that seed (and then asks no fault to fire); REMUDA_SEEDS replaces
the count, but not a list of seeds kept for what they once found. A test whose seeds take long is cut into `slices`,
which assert over all of them together what has to fire (`must_fire=False` here).
"""

import asyncio
import gc
import os
import shlex
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from remuda.kernel.randomness import SeededRandomness
from tests.kit.simulation.disk import SimDisk, memory_directory
from tests.kit.simulation.faults import FaultMenu, assert_all_fired
from tests.kit.simulation.loop import SimClock, SimLoop, finish
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.slices import without_slice

START = datetime(2030, 1, 1, tzinfo=UTC)

Scenario = Callable[["World"], Coroutine[Any, Any, None]]


class World:
    """All that one seed decides: order, time, chance, faults and the disk."""

    def __init__(self, seed: int, loop: SimLoop, *, directory: Path, rates: Mapping[str, float]) -> None:
        self.seed = seed
        self.loop = loop
        self.clock = SimClock(loop, START)
        self.randomness = SeededRandomness(seed)
        # The disk draws apart, so that one more write does not change the ids the system makes.
        self._fate = SeededRandomness(self.randomness.randrange(2**63))
        self.faults = FaultMenu(seed, rates)
        self.invariants: list[Callable[[], None]] = []
        self._directory = directory
        self._disks: list[SimDisk] = []
        self.disk = self._mount()
        loop.after_step = self._check

    def power_cut(self, keep: Keep = "some", *, tear: bool = False) -> None:
        """Lose power: the present disk rejects all from now on, and `disk` is a new one with what was left."""
        lost = self.disk
        if not lost.is_cut:
            lost.power_cut(self._next_directory(), keep, tear=tear)
            lost.is_cut = True
        self.disk = self._mount()

    def plan_power_cut(self, sync: int, *, keep: Keep = "some", tear: bool = False) -> None:
        """Lose power at the nth sync from now; call `power_cut` after it to go on with what was left."""
        self.disk.cut_at_sync(sync, self._next_directory(), keep=keep, tear=tear)

    def close(self) -> None:
        """Take all disks out of SQLite's list."""
        for disk in self._disks:
            disk.close()

    def _next_directory(self) -> Path:
        return self._directory / f"boot-{len(self._disks)}"

    def _mount(self) -> SimDisk:
        directory = self._next_directory()
        directory.mkdir(exist_ok=True)
        self._disks.append(SimDisk(directory, self.faults, self._fate))
        return self._disks[-1]

    def _check(self) -> None:
        for invariant in self.invariants:
            invariant()


def simulate(
    scenario: Scenario,
    seeds: int | Iterable[int],
    *,
    rates: Mapping[str, float] | None = None,
    max_steps: int = 1_000_000,
    must_fire: bool = True,
) -> list[FaultMenu]:
    """Run the scenario under each seed (a count means 0, 1, 2, ...) and return the menus with what fired."""
    menus = []
    with _set_apart():
        for seed in _chosen(seeds):
            try:
                menus.append(_run_seed(scenario, seed, rates=rates or {}, max_steps=max_steps))
            except (Exception, asyncio.CancelledError) as error:
                summary = f"{type(error).__name__}: {error}"
                raise AssertionError(f"seed {seed}: {summary}\nreplay: {_replay_command(scenario, seed)}") from error
            gc.collect()  # all of its world
    if must_fire and "REMUDA_SEED" not in os.environ:
        assert_all_fired(menus)
    return menus


def _run_seed(scenario: Scenario, seed: int, *, rates: Mapping[str, float], max_steps: int) -> FaultMenu:
    with ExitStack() as stack:
        directory = stack.enter_context(memory_directory())
        loop = SimLoop(seed, max_steps=max_steps)
        world = World(seed, loop, directory=directory, rates=rates)
        stack.callback(world.close)
        stack.callback(finish, loop)
        stack.enter_context(_garbage_kept())
        loop.run_until_complete(scenario(world))
        return world.faults


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Collect garbage once, at the end: what it finds it then finds always at the same step, and a sixth is saved."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


@contextmanager
def _set_apart() -> Iterator[None]:
    """Have the collector look only at what is made from now on, which is little beside all modules."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _chosen(seeds: int | Iterable[int]) -> Iterable[int]:
    if "REMUDA_SEED" in os.environ:
        return [int(os.environ["REMUDA_SEED"])]
    if isinstance(seeds, int):
        return range(int(os.environ.get("REMUDA_SEEDS", seeds)))
    return seeds


def _replay_command(scenario: Scenario, seed: int) -> str:
    # pytest appends the phase, as in "tests/sim/test_x.py::test_y (call)".
    test = os.environ.get("PYTEST_CURRENT_TEST", scenario.__qualname__).rpartition(" (")[0]
    test = without_slice(test)  # one seed is all of its only slice
    settings = [f"REMUDA_SEED={seed}"]
    if "PYTHONHASHSEED" in os.environ:
        settings.append(f"PYTHONHASHSEED={os.environ['PYTHONHASHSEED']}")
    return f"{' '.join(settings)} .venv/bin/pytest {shlex.quote(test or scenario.__qualname__)}"
