"""Beside the contract lies a broken store per law: each fails the proof of its law, and no other."""

import asyncio
from pathlib import Path

import pytest

from remuda.kernel.randomness import SeededRandomness
from remuda.store.sqlite.store import SqlitePorts, open_store
from tests.contract.backends import SqliteHarness, impatient
from tests.contract.broken.flawed import Flaw, Flawed
from tests.contract.broken.table import FLAWS
from tests.contract.kinds import REGISTRY
from tests.contract.law import Law
from tests.contract.laws.table import LAWS
from tests.sim.disk import memory_directory
from tests.sim.lanes import SimLane
from tests.sim.loop import SimClock, SimLoop, finish
from tests.sim.runner import START
from tests.sim.store import SEALER

SEED = 0


@pytest.fixture(scope="module")
def empty_store() -> bytes:
    """A store's file before its first write: copying it is quicker than making one for each proof."""

    async def make(path: Path) -> None:
        await open_store(path, REGISTRY, SEALER).close()

    with memory_directory() as directory:
        asyncio.run(make(directory / "empty.db"))
        return (directory / "empty.db").read_bytes()


def complaint(law: Law, flawed: type[Flawed], path: Path) -> str:
    """Return why the proof of a law fails on a broken store, or nothing.

    More than twenty thousand proofs have to be quick: the loop is the simulated one, the disk is the machine's memory.
    """
    loop, randomness = SimLoop(SEED), SeededRandomness(SEED)
    clock = SimClock(loop, START)
    ports = SqlitePorts(
        clock=clock,
        randomness=randomness,
        commits=lambda: SimLane(randomness),
        background=lambda: SimLane(randomness),
    )

    async def prove() -> None:
        settings = impatient(bookmark_interval_s=1.0, ahead_patience_s=3.0)
        sound = open_store(path, REGISTRY, SEALER, ports=ports, settings=settings)
        harness = SqliteHarness(sound, clock, seed=SEED)
        harness.store = harness.log = flawed(sound)
        try:
            await law.prove(harness)
        finally:
            await sound.close()

    try:
        loop.run_until_complete(prove())
    except Exception as error:  # noqa: BLE001  however the proof ends, it did not hold
        return f"{type(error).__name__}: {error}"
    else:
        return ""
    finally:
        finish(loop)


def complaints(flawed: type[Flawed], empty_store: bytes) -> dict[str, str]:
    """Return what each law says about a broken store."""
    found = {}
    with memory_directory() as directory:
        for law in LAWS:
            path = directory / f"{law.name}.db"
            path.write_bytes(empty_store)
            found[law.name] = complaint(law, flawed, path)
            path.unlink()
    return found


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.store.__name__)
def test_a_broken_store_breaks_its_law_and_no_other(flaw: Flaw, empty_store: bytes) -> None:
    found = complaints(flaw.store, empty_store)
    others = {name: text for name, text in found.items() if text and name != flaw.law.name}
    assert found[flaw.law.name], f"{flaw.store.__name__} keeps the law it should break: {flaw.law.sentence}"
    assert not others, f"{flaw.store.__name__} breaks other laws too: {others}"


def test_a_store_without_a_flaw_keeps_every_law(empty_store: bytes) -> None:
    assert not any(complaints(Flawed, empty_store).values())


def test_every_law_has_a_store_that_breaks_it() -> None:
    assert {law.name for law in LAWS} == {flaw.law.name for flaw in FLAWS}
