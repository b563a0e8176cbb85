"""The whole system on a bad machine: the example service with everything it is made of, by seed."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.kernel.errors import NotFound
from remuda.operations.recovery import OperationRecovery
from remuda.operations.saga import Work
from remuda.store.sqlite import writer as writing
from tests.example import sagas
from tests.example.app import registry
from tests.example.calling import CalledPasture
from tests.example.house import House, Pace
from tests.example.kinds import Intent, Ledger, Mount
from tests.example.monitor import Monitor
from tests.example.pasture import FAULTS as PASTURE_FAULTS
from tests.example.rules import mount_id
from tests.example.sagas import MountPorts, NewMount
from tests.example.stalls import Stalls
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.runner import World, simulate
from tests.kit.store.checks import looking_into
from tests.kit.watchdog import Watchdog, check_log

SEEDS = 16
"""The widest system has the others."""
BOOTS = 2
CUSTOMERS = 3
ACTS = 6
REGISTRY = registry()
RATES = {
    **{f"pasture.{fault}": 0.05 for fault in PASTURE_FAULTS},
    "pasture.stray": 0.1,
    "watch.dropped": 0.05,
    "watch.doubled": 0.1,
    "watch.gone": 0.02,
    "control.restart": 0.05,
    "leader.two": 0.3,
    "clock.jump": 0.05,
    "disk.slow": 0.005,
    "disk.read_error": 0.0005,
    "disk.write_error": 0.002,
    "disk.full": 0.002,
    "disk.sync_error.wal": 0.01,
    "disk.fills_up": 0.03,
    "power.cut": 0.06,
}
EXPECTED = {
    *("GET 200", "POST 200", "POST 201", "POST 202", "POST 403", "POST 409", "POST 503"),
    *("PUT 200", "PUT 202", "PUT 422", "PUT 503", "DELETE 202", "DELETE 503"),
}
"""What customers have to be told at least once for this to be a test."""
JUMPS = (timedelta(hours=1), timedelta(hours=-1), timedelta(seconds=40))


def returning(*, answer: Any) -> Any:
    """Return a method that always gives this answer."""

    async def give(*_arguments: object) -> Any:
        return answer

    return give


async def trouble(house: House, machine: SimMachine) -> None:
    """Let things happen, each as the menu says."""
    faults, draw = machine.faults, machine.randomness.randrange
    while house.is_serving:
        await machine.clock.sleep(1)
        if faults.fires("pasture.stray"):
            house.lose_a_mount()
        if faults.fires("control.restart"):
            await house.apps[draw(len(house.apps))].restart_control()
        if await machine.suffer(JUMPS):
            return


async def live(world: World, pace: Pace | None = None) -> Counter[str]:
    """Serve on a bad machine, and come to rest on a good one; return what customers were told."""
    machine = SimMachine(world, REGISTRY)
    house = House(machine, pace)
    world.invariants[:] = [Watchdog(house, lambda: house.store._writer.version).check]
    with capture_logs() as lines:
        for _ in range(BOOTS):
            await house.boot(processes=2 if world.faults.fires("leader.two") else 1)
            await house.serve(customers=CUSTOMERS, acts=ACTS, trouble=lambda: trouble(house, machine))
            await house.halt()
        world.faults.stop()
        world.power_cut()
        await house.boot(is_calm=True)
        await house.come_to_rest()
        house.lose_a_mount()
        await house.come_to_rest()
        await house.halt()
    check_log(lines)
    with looking_into(world.disk.directory / "remuda.db") as content:
        replace(content, registry=REGISTRY).check()
    return house.book.outcomes


def test_the_livery_keeps_its_promises_on_a_bad_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 40)
    outcomes: Counter[str] = Counter()

    async def scenario(world: World) -> None:
        outcomes.update(await live(world))

    simulate(scenario, SEEDS, rates=RATES)
    if "REMUDA_SEED" not in os.environ:
        assert outcomes.keys() >= EXPECTED


async def _nothing(*_arguments: object, **_options: object) -> None:
    """Do nothing where something should be done."""


async def _release_alone(stalls: Stalls, _yard: str, operation: str) -> bool:
    row = await stalls._row(operation)
    if row is not None and row.spec.life != "released":
        await stalls._release(row)
    return True


async def _charge_anyway(stalls: Stalls, head: Ledger, operation: str) -> None:
    intent = Intent(operation=operation, deadline=stalls._deadline())
    await stalls._write_head(head, used=head.spec.used + 1, without=operation, new=intent)


async def _find_anybodys(ports: MountPorts, work: Work[NewMount]) -> Mount | None:
    try:
        return await ports.store.get(Mount, mount_id(work.input.yard, work.input.name))
    except NotFound:
        return None


PLANTED: Mapping[str, tuple[object, str, Any]] = {
    "a ledger is not told of what is released": (Stalls, "_gave_back", _release_alone),
    "a yard takes more than it has stalls for": (Stalls, "_charge", _charge_anyway),
    "an undo removes what another operation made": (sagas, "_find_own", _find_anybodys),
    "what crashed is never undone": (OperationRecovery, "recover", _nothing),
    "a mount is left in the pasture": (CalledPasture, "bring_in", _nothing),
    "the monitor removes what has an owner": (Monitor, "_has_owner", returning(answer=False)),
    "what goes astray is not looked for": (Monitor, "look", _nothing),
}
"""Bugs that somebody might make, each to be found by the laws."""


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[bug])

    async def scenario(world: World) -> None:
        await live(world, Pace(rest_s=60))

    with pytest.raises(AssertionError, match=r"^seed \d+: "):
        simulate(scenario, 40, rates=RATES)
