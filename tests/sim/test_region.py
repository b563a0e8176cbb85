"""Identity and region over simulated clouds, on a bad machine, by seed: everybody at it at once."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.app import registry
from remuda.kernel.errors import RemudaError
from remuda.providers.simulated.faults import FAULTS
from remuda.store.sqlite import writer as writing
from tests.durability.checks import looking_into
from tests.kit.region.images_ground import URI
from tests.kit.sim_region.book import RegionBook
from tests.kit.sim_region.customers import Drivers, Holders, Landlords, Networkers, Readers
from tests.kit.sim_region.house import BREAKING, House
from tests.kit.sim_region.imaging import Imagers
from tests.kit.sim_region.keepers import Keepers
from tests.kit.sim_region.operators import Operators, Services, help_out
from tests.kit.sim_region.planted import PLANTED
from tests.kit.sim_region.watching import Watchdog
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.slices import Coverage, slice_name, sliced
from tests.kit.watchdog import check_log

SLICES = sliced(24, length=24)
PATIENCE = 500
"""So many seeds are tried for a bug that was planted: the first that finds it is the last."""
ACTS = 8
PAUSE_S = 4.0
REGISTRY = registry()
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
RATES = {
    "watch.dropped": 0.03,
    "watch.doubled": 0.05,
    "watch.gone": 0.01,
    "control.restart": 0.02,
    "leader.two": 0.3,
    "clock.jump": 0.05,
    "disk.slow": 0.005,
    "disk.write_error": 0.001,
    "power.cut": 0.025,
    "operator.stop": 0.05,
    "operator.fail": 0.03,
    "operator.migrate": 0.03,
    "operator.vanish": 0.03,
    **{f"cloud.{fault}": 0.03 for fault in FAULTS},
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
SIGNATURES = [address.partition("=")[2] for address in (URI, BREAKING)]
"""Parts of addresses from which images come."""
JUMPS = (timedelta(hours=1), timedelta(hours=-1), timedelta(seconds=40))


async def trouble(house: House, machine: SimMachine) -> None:
    """Let things happen, each as the menu says."""
    while house.is_serving:
        await machine.clock.sleep(1)
        for act in ("stop", "fail", "migrate", "vanish"):
            if machine.faults.fires(f"operator.{act}"):
                meddle(house, act)
        if machine.faults.fires("control.restart"):
            await house.restart_control()
        if await machine.suffer(JUMPS):
            return


def meddle(house: House, act: str) -> None:
    """Do something to a server behind our back, if there is one to which it can be done."""
    clouds = [cloud for cloud in house.clouds.clouds.values() if cloud.operator.servers()]
    if clouds:
        cloud = clouds[house.machine.randomness.randrange(len(clouds))]
        servers = cloud.operator.servers()
        server = servers[house.machine.randomness.randrange(len(servers))].handle.name
        house.book.disturbed.add(server)
        with suppress(RemudaError):
            getattr(cloud.operator, act)(server)


def check_secrets(secrets: Iterable[str], directory: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """I11: nothing secret is in any file, or in the log."""
    content = b"".join(path.read_bytes() for path in directory.iterdir()) + repr(list(lines)).encode()
    for secret in secrets:
        assert secret.encode() not in content, "a secret is in a file or in the log"


async def leave(house: House) -> None:
    """Have done what only people can do, until nothing is left."""
    await help_out(house)
    await Imagers(house).give_all_up()


async def live(world: World) -> RegionBook:
    """Serve on a bad machine, and come to rest on a good one; return what customers were told."""
    machine = SimMachine(world, REGISTRY)
    house = House(machine)
    world.invariants[:] = [Watchdog(house, lambda: house.store._writer.version).check]
    await house.open()
    with capture_logs() as lines:
        for _ in range(1 + world.seed % 2):
            await house.boot(processes=2 if world.faults.fires("leader.two") else 1)
            await Landlords(house).begin()
            await house.serve(CROWD, acts=ACTS, pause_s=PAUSE_S, trouble=lambda: trouble(house, machine))
            await house.halt()
        world.faults.stop()
        world.power_cut()
        await house.boot(is_calm=True)
        await house.come_to_rest(meanwhile=lambda: help_out(house))
        await Landlords(house).remove_everything()
        await house.come_to_rest(is_empty=True, meanwhile=lambda: leave(house))
        await house.halt()
    await house.close()
    check_log(lines)
    lines_of_keys = [key.splitlines()[1] for key in house.book.private_keys]
    check_secrets([*house.book.private_keys, *lines_of_keys, *SIGNATURES], world.disk.directory, lines)
    with looking_into(world.disk.directory / "remuda.db") as content:
        replace(content, registry=REGISTRY).check()
    return house.book


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the store is often folded into it."""
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 40)


@pytest.mark.parametrize("seeds", SLICES, ids=slice_name)
def test_region_keeps_its_promises_on_a_bad_machine(seeds: range, run_directory: Path) -> None:
    coverage = Coverage()

    async def scenario(world: World) -> None:
        book = await live(world)
        coverage.add(outcomes=book.outcomes, operations=book.operations)

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
        simulate(scenario, range(PATIENCE), rates=RATES)
