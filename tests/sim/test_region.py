"""Identity and region over simulated clouds, on a bad machine, by seed: everybody at it at once."""

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from remuda.store.sqlite import writer as writing
from tests.kit.sim_region.checker import RegionChecker
from tests.kit.sim_region.customers import Drivers, Holders, Landlords, Networkers, Readers
from tests.kit.sim_region.faults import ATTEMPTS, RATES, REGISTRY, SIGNATURES, check_secrets, leave, trouble
from tests.kit.sim_region.history import RegionHistory
from tests.kit.sim_region.images import Imagers
from tests.kit.sim_region.lifecycles import Keepers
from tests.kit.sim_region.operators import Operators, Services, help_out
from tests.kit.sim_region.planted_bugs import PLANTED
from tests.kit.sim_region.system import RegionSystem
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.slices import Coverage, slice_name, sliced
from tests.kit.store.checks import looking_into

SLICES = sliced(32, length=32)
ACTS = 8
PAUSE_S = 4.0
CROWD = {
    Landlords: 2,
    Networkers: 6,
    Holders: 3,
    Drivers: 7,
    Keepers: 2,
    Readers: 2,
    Imagers: 2,
    Services: 2,
    Operators: 3,
}
EXPECTED = {
    *("GET 200", "GET 404", "POST 201", "POST 202", "POST 400", "POST 403", "POST 404", "POST 409", "POST 503"),
    *("PUT 200", "PUT 202", "PUT 403", "PUT 503", "DELETE 202", "DELETE 403", "DELETE 503"),
}
"""What customers have to be told at least once for this to be a test."""
USED = {
    *("create_network", "create_security_group", "create_load_balancer", "create_file_storage", "create_server"),
    *("update_network", "update_security_group", "update_server", "delete_server", "replace_server"),
    *("create_ssh_certificate_authority", "delete_ssh_certificate_authority", "import_image", "delete_image"),
    *("add_network_reference", "remove_network_reference", "retry_object", "abandon_object", "forget_orphan"),
}
"""What has to succeed at least once."""
SELDOM_USED = {
    *("delete_network", "delete_security_group", "update_load_balancer", "delete_load_balancer"),
    *("update_file_storage", "delete_file_storage", "snapshot_server", "get_server_ssh_key", "start_server"),
    *("stop_server", "soft_reboot_server", "hard_reboot_server", "get_server_console_output", "adopt_orphan"),
}
"""What has to succeed at least once in a long run."""
LONG_RUN = 100
"""So many seeds, as `make prove` has: each of these succeeds under one seed of fifteen or more."""


async def live(world: World) -> RegionHistory:
    """Serve on a bad machine, and come to rest on a good one; return what customers were told."""
    machine = SimMachine(world, REGISTRY)
    system = RegionSystem(machine)
    world.invariants[:] = [RegionChecker(system, lambda: system.store._writer.version).check]
    await system.open()
    with capture_logs() as lines:
        for _ in range(1 + world.seed % 2):
            await system.boot(processes=2 if world.faults.fires("leader.two") else 1)
            await Landlords(system).begin()
            await system.serve(CROWD, acts=ACTS, pause_s=PAUSE_S, trouble=lambda: trouble(system, machine))
            await system.halt()
        world.faults.stop()
        world.power_cut()
        await system.boot(is_calm=True)
        await system.come_to_rest(meanwhile=lambda: help_out(system))
        await Landlords(system).remove_everything()
        await system.come_to_rest(is_empty=True, meanwhile=lambda: leave(system))
        await system.halt()
    await system.close()
    check_log(lines)
    lines_of_keys = [key.splitlines()[1] for key in system.history.private_keys]
    check_secrets([*system.history.private_keys, *lines_of_keys, *SIGNATURES], world.disk.directory, lines)
    with looking_into(world.disk.directory / "remuda.db") as content:
        replace(content, registry=REGISTRY).check()
    return system.history


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the store is often folded into it."""
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 40)


@pytest.mark.parametrize("seeds", SLICES, ids=slice_name)
def test_region_keeps_its_promises_on_a_bad_machine(seeds: range, run_directory: Path) -> None:
    coverage = Coverage()

    async def scenario(world: World) -> None:
        history = await live(world)
        coverage.add(outcomes=history.outcomes, operations=history.operations)

    menus = simulate(scenario, seeds, rates=RATES, must_fire=False)
    whole = coverage.unite(menus, seeds, SLICES, run_directory)
    if whole is not None:
        whole.assert_covered(outcomes=EXPECTED, operations=USED | SELDOM_USED if whole.seeds >= LONG_RUN else USED)


@pytest.mark.thorough
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[bug])

    async def scenario(world: World) -> None:
        await live(world)

    with pytest.raises(AssertionError, match=r"^seed \d+: AssertionError: "):
        simulate(scenario, range(ATTEMPTS), rates=RATES)
