"""Power is cut at every sync of a write load: what was acknowledged is there, and nothing is there in part."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

import apsw
import pytest

from remuda.kernel.errors import Unavailable, Unusable
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite import file
from remuda.store.sqlite import writer as writing
from remuda.store.sqlite.store import SqliteSettings, SqliteStore
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated
from tests.kit.store.checks import audit, check_stories
from tests.kit.store.write_load import Writer

SETTINGS = SqliteSettings(maintenance=MaintenanceSettings(history_changes=20, interval_s=0.05))
STEPS = 26
STEPS_AFTERWARDS = 3


@pytest.fixture(autouse=True)
def _frequent_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 20)


async def write(store: SqliteStore, writers: Sequence[Writer], steps: int) -> None:
    async def tell(writer: Writer) -> None:
        with suppress(Unavailable):
            for _ in range(steps):
                await writer.tell(store)

    await asyncio.gather(*map(tell, writers))


async def work_until_the_cut(world: World, writers: Sequence[Writer]) -> None:
    """Open, write, compact, checkpoint and close, as far as the power lasts."""
    with suppress(Unusable, apsw.Error):
        store = open_simulated(world, REGISTRY, settings=SETTINGS)
        await write(store, writers, STEPS)
        await store.close()


async def work_afterwards(world: World, writers: Sequence[Writer]) -> None:
    store = open_simulated(world, REGISTRY, settings=SETTINGS)
    writers = await check_stories(store, writers)
    await write(store, writers, STEPS_AFTERWARDS)
    assert all(writer.told == writer.asked for writer in writers)
    await check_stories(store, writers)
    await store.close()
    audit(world.disk.directory / "remuda.db")


def lose_power(sync: int, keep: Keep, *, tear: bool) -> bool:
    """Lose power at the nth sync, or after the last, and check what is left; tell whether the load came so far."""
    reached = []

    async def scenario(world: World) -> None:
        writers = [Writer(name) for name in ("ann", "bob", "cid")]
        world.plan_power_cut(sync, keep=keep, tear=tear)
        await work_until_the_cut(world, writers)
        reached.append(world.disk.is_cut)
        world.power_cut(keep, tear=tear)
        await work_afterwards(world, writers)

    simulate(scenario, [0])
    return reached[0]


def lose_power_everywhere(keep: Keep, *, tear: bool) -> int:
    return next(sync for sync in count(1) if not lose_power(sync, keep, tear=tear)) - 1


@pytest.mark.parametrize("tear", [False, True])
@pytest.mark.parametrize("keep", ["none", "some", "all"])
def test_a_power_cut_at_any_sync_loses_nothing_acknowledged_and_leaves_nothing_in_part(
    keep: Keep, *, tear: bool
) -> None:
    assert lose_power_everywhere(keep, tear=tear) > 60


@pytest.mark.parametrize("synchronous", ["off", "normal"])
def test_the_same_load_without_full_syncs_is_found_to_lose_writes(
    synchronous: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = file._prepare

    def prepare_carelessly(connection: apsw.Connection) -> None:
        prepare(connection)
        connection.pragma("synchronous", synchronous)

    monkeypatch.setattr(file, "_prepare", prepare_carelessly)
    with pytest.raises(AssertionError, match=r"told \d+, found"):
        lose_power_everywhere("none", tear=False)
