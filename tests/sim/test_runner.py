"""A failing seed says how to replay itself, and the whole kit works together."""

import asyncio
from contextlib import closing, suppress

import apsw
import pytest

from tests.kit.simulation.loop import DeadlockError
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.slices import slice_name


@pytest.fixture
def _own_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REMUDA_SEED", "REMUDA_SEEDS", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)


async def overdraw(world: World) -> None:
    """Two takers of one place, each with a wait between looking and taking."""
    taken: list[str] = []

    def one_place_only() -> None:
        assert len(taken) <= 1, "overbooked"

    async def take(name: str) -> None:
        await world.clock.sleep(world.randomness.uniform(0, 2))
        if not taken:
            await world.clock.sleep(0.5)
            taken.append(name)

    world.invariants.append(one_place_only)
    await asyncio.gather(take("a"), take("b"))


@pytest.mark.usefixtures("_own_seeds")
def test_a_broken_invariant_says_how_to_replay_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="overbooked") as caught:
        simulate(overdraw, 100)
    command = str(caught.value).rpartition("replay: ")[2]
    setting, program, test = command.split(" ")
    assert program == ".venv/bin/pytest"
    assert test == "tests/sim/test_runner.py::test_a_broken_invariant_says_how_to_replay_its_seed"
    assert isinstance(caught.value.__cause__, AssertionError)

    monkeypatch.setenv(*setting.split("=", 1))
    with pytest.raises(AssertionError) as again:
        simulate(overdraw, 100)
    assert str(again.value) == str(caught.value)


@pytest.mark.usefixtures("_own_seeds")
@pytest.mark.parametrize("seeds", [range(60, 160)], ids=slice_name)
def test_a_seed_of_a_slice_is_replayed_by_itself(seeds: range) -> None:
    with pytest.raises(AssertionError, match="overbooked") as caught:
        simulate(overdraw, seeds)
    assert str(caught.value).endswith("test_runner.py::test_a_seed_of_a_slice_is_replayed_by_itself")


@pytest.mark.usefixtures("_own_seeds")
def test_the_environment_chooses_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def note(world: World) -> None:
        await world.clock.sleep(1)
        seen.append(world.seed)

    simulate(note, 3)
    simulate(note, [77])
    monkeypatch.setenv("REMUDA_SEEDS", "2")
    simulate(note, 3)
    simulate(note, [77])
    monkeypatch.setenv("REMUDA_SEED", "123")
    simulate(note, 3)
    assert seen == [0, 1, 2, 77, 0, 1, 77, 123]


@pytest.mark.usefixtures("_own_seeds")
def test_a_deadlock_is_a_failure_of_its_seed() -> None:
    async def wait_for_nobody(_: World) -> None:
        await asyncio.Event().wait()

    with pytest.raises(AssertionError, match="wait_for_nobody") as caught:
        simulate(wait_for_nobody, 1)
    assert isinstance(caught.value.__cause__, DeadlockError)


@pytest.mark.usefixtures("_own_seeds")
def test_a_fault_that_no_seed_met_fails_the_whole() -> None:
    async def idle(world: World) -> None:
        await world.clock.sleep(1)

    with pytest.raises(AssertionError, match=r"never fired: provider\.timeout"):
        simulate(idle, 3, rates={"provider.timeout": 0.5})


async def bank_through_power_cuts(world: World) -> None:
    """Commit from two tasks on a bad disk, lose power in the middle, and find every acknowledged row again."""
    acknowledged: set[int] = set()

    async def write(connection: apsw.Connection, rows: range) -> None:
        for row in rows:
            await world.clock.sleep(world.randomness.uniform(0, 1))
            with suppress(apsw.Error):
                connection.execute("insert into thing values (?)", (row,))
                acknowledged.add(row)

    def connect() -> apsw.Connection:
        return apsw.Connection(str(world.disk.directory / "plane.db"), vfs=world.disk.vfs_name)

    with suppress(apsw.Error), closing(connect()) as connection:
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "FULL")
        connection.execute("create table thing (id integer primary key)")
        world.plan_power_cut(1 + world.randomness.randrange(12), tear=True)
        await asyncio.gather(write(connection, range(10)), write(connection, range(10, 20)))
    world.power_cut(tear=True)
    world.faults.stop()
    if acknowledged:
        with closing(connect()) as connection:
            assert connection.pragma("integrity_check") == "ok"
            assert acknowledged <= {row for (row,) in connection.execute("select id from thing")}


def test_the_parts_hold_together() -> None:
    rates = {"disk.write_error.wal": 0.05, "disk.sync_error.wal": 0.05, "disk.full": 0.02}
    simulate(bank_through_power_cuts, 40, rates=rates)
