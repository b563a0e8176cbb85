"""Identity, region and compute over simulated clouds, on a bad machine, by seed: everybody at it at once."""

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from remuda.store.sqlite import writer as writing
from tests.kit.sim_compute.checker import WholeWatchdog
from tests.kit.sim_compute.customers import USER_DATA, Hosts, Owners
from tests.kit.sim_compute.guards import Guards
from tests.kit.sim_compute.history import ComputeBook
from tests.kit.sim_compute.planted_bugs import PLANTED
from tests.kit.sim_compute.system import WholeHouse
from tests.kit.sim_compute.timeline import check_timelines
from tests.kit.sim_region.customers import Drivers, Holders, Networkers
from tests.kit.sim_region.faults import PATIENCE, RATES, REGISTRY, SIGNATURES, check_secrets, leave, trouble
from tests.kit.sim_region.images import Imagers
from tests.kit.sim_region.operators import Operators, Services, help_out
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.slices import Coverage, slice_name, sliced
from tests.kit.store.checks import looking_into
from tests.kit.watchdog import check_log

SLICES = sliced(160, length=40)
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


async def live(world: World) -> ComputeBook:
    """Serve on a bad machine, and come to rest on a good one; return what customers were told."""
    machine = SimMachine(world, REGISTRY)
    house = WholeHouse(machine)
    world.invariants[:] = [WholeWatchdog(house, lambda: house.store._writer.version).check]
    await house.open()
    with capture_logs() as lines:
        for _ in range(1 + world.seed % 2):
            await house.boot(processes=2 if world.faults.fires("leader.two") else 1)
            await Hosts(house).begin()
            await house.serve(CROWD, acts=ACTS, pause_s=PAUSE_S, trouble=lambda: trouble(house, machine))
            await house.halt()
        world.faults.stop()
        world.power_cut()
        await house.boot(is_calm=True)
        await house.come_to_rest(meanwhile=lambda: help_out(house))
        repairs = house.processes[0].repairs
        await Hosts(house).remove_everything()
        await house.come_to_rest(is_empty=True, meanwhile=lambda: leave(house))
        assert house.processes[0].repairs == repairs, "the monitor had to help although nothing went wrong"
        await check_timelines(house.store, house.book)
        await house.halt()
    await house.close()
    check_log(lines)
    lines_of_keys = [key.splitlines()[1] for key in house.book.private_keys]
    secrets = [*house.book.private_keys, *lines_of_keys, *filter(None, USER_DATA), *SIGNATURES]
    check_secrets(secrets, world.disk.directory, lines)
    with looking_into(world.disk.directory / "remuda.db") as content:
        replace(content, registry=REGISTRY).check()
    return house.book


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the store is often folded into it."""
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 40)


@pytest.mark.parametrize("seeds", SLICES, ids=slice_name)
def test_compute_keeps_its_promises_on_a_bad_machine(seeds: range, run_directory: Path) -> None:
    coverage = Coverage()

    async def scenario(world: World) -> None:
        book = await live(world)
        coverage.add(outcomes=book.outcomes, operations=book.operations)

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
        simulate(scenario, range(PATIENCE), rates=RATES)
