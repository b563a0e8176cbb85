"""Beside the contract lies a broken store per guarantee: each fails the proof of its guarantee, and no other.

A proof that never asks a store for what a flaw overrides runs on the broken store exactly as on the sound one, where it
holds: time, order and chance are simulated. Such pairs, more than half of all, are not run.
"""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from remuda.kernel.randomness import SeededRandomness
from remuda.store.sqlite.store import SqlitePorts, open_store
from tests.kit.proofs.store_contract.backends import SqliteHarness, impatient
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed
from tests.kit.proofs.store_contract.broken.table import FLAWS
from tests.kit.proofs.store_contract.guarantee import Guarantee
from tests.kit.proofs.store_contract.guarantees.table import GUARANTEES
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.disk import memory_directory
from tests.kit.simulation.executor import SimExecutor
from tests.kit.simulation.loop import SimClock, SimLoop, finish
from tests.kit.simulation.runner import START
from tests.kit.simulation.store import SEALER

SEED = 0


@pytest.fixture(scope="module")
def empty_store() -> bytes:
    """A store's file before its first write: copying it is quicker than making one for each proof."""

    async def make(path: Path) -> None:
        await open_store(path, REGISTRY, SEALER).close()

    with memory_directory() as directory:
        asyncio.run(make(directory / "empty.db"))
        return (directory / "empty.db").read_bytes()


def complaint(guarantee: Guarantee, flawed: type[Flawed], path: Path) -> str:
    """Return why the proof of a guarantee fails on a broken store, or nothing.

    More than ten thousand proofs have to be quick: the loop is the simulated one, the disk is the machine's memory.
    """
    loop, randomness = SimLoop(SEED), SeededRandomness(SEED)
    clock = SimClock(loop, START)
    ports = SqlitePorts(
        clock=clock,
        randomness=randomness,
        commits=lambda: SimExecutor(randomness),
        background=lambda: SimExecutor(randomness),
    )

    async def prove() -> None:
        settings = impatient(bookmark_interval_s=1.0, ahead_timeout_s=3.0)
        sound = open_store(path, REGISTRY, SEALER, ports=ports, settings=settings)
        harness = SqliteHarness(sound, clock, seed=SEED)
        harness.store = harness.log = flawed(sound)
        try:
            await guarantee.prove(harness)
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


def complaints(flawed: type[Flawed], guarantees: Iterable[Guarantee], empty_store: bytes) -> dict[str, str]:
    """Return what each of these guarantees says about a broken store."""
    found = {}
    with memory_directory() as directory:
        for guarantee in guarantees:
            path = directory / f"{guarantee.name}.db"
            path.write_bytes(empty_store)
            found[guarantee.name] = complaint(guarantee, flawed, path)
            path.unlink()
    return found


@pytest.fixture(scope="module")
def asked(empty_store: bytes) -> Mapping[str, set[str]]:
    """What each guarantee's proof asks of a store without a flaw, where every one of them holds."""
    found: dict[str, set[str]] = {}
    for guarantee in GUARANTEES:
        names: set[str] = set()

        class Noting(Flawed):
            def __getattribute__(self, name: str, names: set[str] = names) -> Any:
                names.add(name)
                return super().__getattribute__(name)

        assert not any(complaints(Noting, [guarantee], empty_store).values()), f"a sound store breaks {guarantee.name}"
        found[guarantee.name] = names
    return found


def overridden(flawed: type[Flawed]) -> set[str]:
    """Return what is not as in a store without a flaw."""
    ours = flawed.__mro__[: flawed.__mro__.index(Flawed)]
    return {name for each in ours for name in vars(each)}


def concerned(flaw: Flaw, asked: Mapping[str, set[str]]) -> list[Guarantee]:
    """Return the guarantees that could notice a flaw. One from the beginning may reach past what is asked."""
    changed = overridden(flaw.store)
    return [guarantee for guarantee in GUARANTEES if "__init__" in changed or changed & asked[guarantee.name]]


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.store.__name__)
def test_a_broken_store_breaks_its_guarantee_and_no_other(
    flaw: Flaw, asked: Mapping[str, set[str]], empty_store: bytes
) -> None:
    found = complaints(flaw.store, concerned(flaw, asked), empty_store)
    others = {name: text for name, text in found.items() if text and name != flaw.guarantee.name}
    assert found.get(flaw.guarantee.name), (
        f"{flaw.store.__name__} keeps the guarantee it should break: {flaw.guarantee.sentence}"
    )
    assert not others, f"{flaw.store.__name__} breaks other guarantees too: {others}"


def test_a_store_without_a_flaw_keeps_every_guarantee(empty_store: bytes) -> None:
    assert not any(complaints(Flawed, GUARANTEES, empty_store).values())


def test_every_guarantee_has_a_store_that_breaks_it() -> None:
    assert {guarantee.name for guarantee in GUARANTEES} == {flaw.guarantee.name for flaw in FLAWS}
