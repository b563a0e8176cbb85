"""The whole of identity on a bad machine, by seed: everything that it does, with everybody at it at once."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from remuda.identity import app as identity_app
from remuda.identity.app import TABLE
from remuda.identity.login.passwords import Passwords
from remuda.store.sqlite import writer as writing
from tests.kit.identity.login import CHEAP
from tests.kit.identity.resource_api import registry
from tests.kit.sim_identity.checker import IdentityChecker
from tests.kit.sim_identity.history import IdentityHistory
from tests.kit.sim_identity.planted_bugs import PLANTED
from tests.kit.sim_identity.system import IdentitySystem
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.runner import World, simulate
from tests.kit.store.checks import looking_into

SEEDS = 12
"""The widest system has the others."""
_LONG_ENOUGH = 200
"""So many seeds find every planted bug and use every operation; most are found, and used, by the first few."""
BOOTS = 3
CUSTOMERS = 4
ACTS = 9
REGISTRY = registry()
RATES = {
    "watch.dropped": 0.05,
    "watch.doubled": 0.1,
    "watch.gone": 0.02,
    "control.restart": 0.05,
    "leader.two": 0.3,
    "clock.jump": 0.05,
    "days.pass": 0.4,
    "disk.slow": 0.01,
    "disk.read_error": 0.0005,
    "disk.write_error": 0.002,
    "disk.full": 0.002,
    "disk.sync_error.wal": 0.01,
    "disk.fills_up": 0.03,
    "power.cut": 0.06,
}
EXPECTED = {
    *("GET 200", "GET 401", "POST 200", "POST 201", "POST 202", "POST 302", "POST 400", "POST 401"),
    *("POST 404", "POST 409"),
    *("PUT 200", "PUT 201", "PUT 403", "PUT 404", "PUT 503", "POST 503", "DELETE 503"),
    *("DELETE 200", "DELETE 202", "DELETE 204", "DELETE 404"),
}
"""What customers have to be told at least once for this to be a test."""
RARE = {"GET 302", "GET 404", "POST 403"}
"""What they have to be told, too, if it is long enough."""
ELSEWHERE = {
    *("complete_login", "add_factor", "remove_factor", "replace_recovery_codes", "show_factors"),
    *("replace_password", "proceed_with_login", "create_operator_password_link"),
    *("change_quotas", "change_project_quotas"),
}
"""Operations that no customer uses here: there is no provider to come back from, no first password and no other
address; nobody visits the page of second factors, and whoever changes quotas sets all of them. The tests of the login
pages, of operators' passwords and of the quotas use them."""
JUMPS = (timedelta(hours=1), timedelta(hours=-1), timedelta(seconds=40))
OFF = (timedelta(minutes=20), timedelta(hours=3), timedelta(days=1), timedelta(days=3), timedelta(days=12))
"""For how long the machine may stand still, switched off."""


async def trouble(system: IdentitySystem, machine: SimMachine) -> None:
    """Let things happen, each as the menu says."""
    while system.is_serving:
        await machine.clock.sleep(1)
        if machine.faults.fires("control.restart"):
            await system.restart_control()
        if await machine.suffer(JUMPS):
            return


def check_secrets(secrets: Iterable[str], directory: Path) -> None:
    """Nothing that was handed out once is in any file."""
    content = b"".join(path.read_bytes() for path in directory.iterdir())
    assert not [secret for secret in secrets if secret.encode() in content], "a secret is in a file"


async def live(world: World) -> IdentityHistory:
    """Serve on a bad machine, and come to rest on a good one; return what customers were told."""
    machine = SimMachine(world, REGISTRY)
    system = IdentitySystem(machine)
    world.invariants[:] = [IdentityChecker(system, lambda: system.store._writer.version).check]
    with capture_logs() as lines:
        for _ in range(BOOTS):
            await system.boot(processes=2 if world.faults.fires("leader.two") else 1)
            await system.serve(customers=CUSTOMERS, acts=ACTS, trouble=lambda: trouble(system, machine))
            await system.halt()
            if world.faults.fires("days.pass"):
                await machine.clock.sleep(OFF[machine.randomness.randrange(len(OFF))].total_seconds())
        world.faults.stop()
        world.power_cut()
        await system.boot(is_calm=True)
        await system.come_to_rest()
        await system.try_all_tokens()
        await system.clear_the_way()
        await system.come_to_rest(is_cleared=True)
        await system.halt()
    check_log(lines)
    check_secrets(system.history.secrets, world.disk.directory)
    with looking_into(world.disk.directory / "remuda.db") as content:
        replace(content, registry=REGISTRY).check()
    return system.history


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords cost next to nothing here, and the log of the store is often folded into it."""
    monkeypatch.setattr(identity_app, "Passwords", partial(Passwords, parameters=CHEAP))
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 40)


def test_identity_keeps_its_promises_on_a_bad_machine() -> None:
    outcomes: Counter[str] = Counter()
    operations: set[str] = set()

    async def scenario(world: World) -> None:
        history = await live(world)
        outcomes.update(history.outcomes)
        operations.update(history.operations)

    menus = simulate(scenario, SEEDS, rates=RATES)
    if "REMUDA_SEED" not in os.environ:
        assert outcomes.keys() >= EXPECTED
    if len(menus) >= _LONG_ENOUGH:
        assert outcomes.keys() >= RARE
        missing = {route.name for route in TABLE.routes} - operations - ELSEWHERE
        assert not missing, ", ".join(sorted(missing))


@pytest.mark.thorough
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[bug])

    async def scenario(world: World) -> None:
        await live(world)

    with pytest.raises(AssertionError, match=r"^seed \d+: AssertionError: "):
        simulate(scenario, range(_LONG_ENOUGH), rates=RATES)
