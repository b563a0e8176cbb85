"""Identity, region and compute over simulated clouds, on a bad machine, by seed: everybody at it at once."""

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from remuda.store.sqlite import writer as writing
from tests.kit.sim_compute.checker import ComputeChecker
from tests.kit.sim_compute.customers import USER_DATA, Hosts, Owners
from tests.kit.sim_compute.guards import Guards
from tests.kit.sim_compute.history import ComputeHistory
from tests.kit.sim_compute.planted_bugs import PLANTED
from tests.kit.sim_compute.system import ComputeSystem
from tests.kit.sim_compute.timeline import check_timelines
from tests.kit.sim_region.customers import Drivers, Holders, Networkers
from tests.kit.sim_region.faults import ATTEMPTS, RATES, REGISTRY, SIGNATURES, check_secrets, leave, trouble
from tests.kit.sim_region.images import Imagers
from tests.kit.sim_region.operators import Operators, Services, help_out
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.slices import Coverage, slice_name, sliced
from tests.kit.store.checks import looking_into

SLICES = sliced(128, length=32)
ACTS = 10
PAUSE_S = 4.0
CROWD = {Hosts: 1, Networkers: 4, Holders: 2, Drivers: 1, Imagers: 1, Services: 1, Operators: 1, Owners: 16, Guards: 3}

EXPECTED = {
    *("GET 200", "POST 201", "POST 202", "POST 400", "POST 403", "POST 409", "POST 503"),
    *("PUT 200", "PUT 202", "DELETE 202", "DELETE 403"),
}
"""What customers have to be told at least once for this to be a test."""
USED = {
    *(f"{verb}_instance" for verb in ("create", "get", "update", "delete", "start", "stop", "reboot", "explain")),
    *("list_instances", "list_instance_timeline", "list_instance_operations", "get_instance_console_output"),
    *("open_instance_console", "get_instance_ssh_key", "snapshot_instance", "delete_server"),
    *("get_project_policy", "update_project_policy"),
}
"""What has to succeed at least once."""


async def live(world: World) -> ComputeHistory:
    """Serve on a bad machine, and come to rest on a good one; return what customers were told."""
    machine = SimMachine(world, REGISTRY)
    system = ComputeSystem(machine)
    world.invariants[:] = [ComputeChecker(system, lambda: system.store._writer.version).check]
    await system.open()
    with capture_logs() as lines:
        for _ in range(1 + world.seed % 2):
            await system.boot(processes=2 if world.faults.fires("leader.two") else 1)
            await Hosts(system).begin()
            await system.serve(CROWD, acts=ACTS, pause_s=PAUSE_S, trouble=lambda: trouble(system, machine))
            await system.halt()
        world.faults.stop()
        world.power_cut()
        await system.boot(is_calm=True)
        await system.come_to_rest(meanwhile=lambda: help_out(system))
        repairs = system.processes[0].repairs
        await Hosts(system).remove_everything()
        await system.come_to_rest(is_empty=True, meanwhile=lambda: leave(system))
        assert system.processes[0].repairs == repairs, "the monitor had to help although nothing went wrong"
        await check_timelines(system.store, system.history)
        await system.halt()
    await system.close()
    check_log(lines)
    lines_of_keys = [key.splitlines()[1] for key in system.history.private_keys]
    secrets = [*system.history.private_keys, *lines_of_keys, *filter(None, USER_DATA), *SIGNATURES]
    check_secrets(secrets, world.disk.directory, lines)
    with looking_into(world.disk.directory / "remuda.db") as content:
        replace(content, registry=REGISTRY).check()
    return system.history


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the store is often folded into it."""
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 40)


@pytest.mark.parametrize("seeds", SLICES, ids=slice_name)
def test_compute_keeps_its_promises_on_a_bad_machine(seeds: range, run_directory: Path) -> None:
    coverage = Coverage()

    async def scenario(world: World) -> None:
        history = await live(world)
        coverage.add(outcomes=history.outcomes, operations=history.operations)

    menus = simulate(scenario, seeds, rates=RATES, must_fire=False)
    whole = coverage.unite(menus, seeds, SLICES, run_directory)
    if whole is not None:
        whole.assert_covered(outcomes=EXPECTED, operations=USED)


@pytest.mark.thorough
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[bug])

    async def scenario(world: World) -> None:
        await live(world)

    with pytest.raises(AssertionError, match=r"^seed \d+: AssertionError: "):
        simulate(scenario, range(ATTEMPTS), rates=RATES)
