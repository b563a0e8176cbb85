"""A full or failing disk makes writes fail clearly: reads go on, nothing acknowledged is lost, writing resumes."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import apsw
import pytest

from remuda.kernel.errors import StorageFailing, StorageFull, StoreInaccessible, Unavailable
from remuda.store.contract import Bookmark
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite import writer as writing
from remuda.store.sqlite.store import SqliteSettings, SqliteStore
from tests.kit.environment import options
from tests.kit.sample_kinds import REGISTRY, Horse, horse
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated
from tests.kit.store.checks import audit, check_stories
from tests.kit.store.write_load import Writer

SETTINGS = SqliteSettings(maintenance=MaintenanceSettings(history_changes=20, interval_s=0.05))
STEPS = 12
FAULTS = ("disk.read_error", "disk.write_error", "disk.sync_error", "disk.full")


@pytest.fixture(autouse=True)
def _frequent_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 20)


@options(seeds=range(20))
async def test_on_a_full_disk_writes_fail_in_one_sentence_reads_and_watches_go_on_and_writing_resumes(
    world: World,
) -> None:
    store = open_simulated(world, REGISTRY)
    watched: list[str] = []
    watching = asyncio.create_task(note_names(store, watched))
    await store.create(horse("before", labels={"side": "left"}))
    world.disk.fill()
    with pytest.raises(StorageFull, match=r"^The disk that holds .*remuda\.db is full: free some space.*\.$"):
        await store.create(horse("during"))
    assert (await store.get(Horse, "before")).name == "before"
    assert [each.name for each in (await store.list(Horse, labels={"side": "left"})).items] == ["before"]
    assert watched == ["before"]
    world.disk.free()
    await store.create(horse("after"))
    await world.clock.sleep(1)
    assert watched == ["before", "after"]
    watching.cancel()
    await store.close()
    audit(world.disk.directory / "remuda.db")


async def note_names(store: SqliteStore, names: list[str]) -> None:
    async for event in store.watch(Horse, since="0"):
        names += [] if isinstance(event, Bookmark) else [event.resource.name]


@options(seeds=range(10))
async def test_a_disk_that_is_full_in_the_middle_of_a_load_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A log that restarts needs no space for a while: this one only grows.
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 2_000)
    writers = [Writer(name) for name in ("ann", "bob", "cid")]
    store = open_simulated(world, REGISTRY, settings=SETTINGS)
    await tell(store, writers, STEPS)
    world.disk.fill()
    refused = await tell(store, writers, STEPS)
    assert refused
    assert {type(error) for error in refused} == {StorageFull}
    await check_stories(store, writers)
    world.disk.free()
    assert not await tell(store, writers, STEPS)
    await check_stories(store, writers)
    await store.close()
    audit(world.disk.directory / "remuda.db")


@options(seeds=range(5))
async def test_a_read_that_the_disk_rejects_says_so_and_works_the_next_time(world: World) -> None:
    store = open_simulated(world, REGISTRY)
    await store.create(horse("cold"))
    await store.close()
    store = open_simulated(world, REGISTRY)
    world.faults.at("disk.read_error", world.faults.counts["disk.read_error"].asked + 1)
    with pytest.raises(StorageFailing, match=r"^The disk failed while using .*: try again.*\.$"):
        await store.get(Horse, "cold")
    assert (await store.get(Horse, "cold")).name == "cold"
    await store.close()


async def tell(store: SqliteStore, writers: Sequence[Writer], steps: int) -> list[Unavailable]:
    """Let all writers try so many writes at once; return how they were refused."""
    rejections: list[Unavailable] = []

    async def tell_one(writer: Writer) -> None:
        for _ in range(steps):
            try:
                await writer.tell(store)
            except Unavailable as rejection:
                rejections.append(rejection)

    await asyncio.gather(*map(tell_one, writers))
    return rejections


async def work_on_a_bad_disk(world: World, writers: Sequence[Writer]) -> None:
    """Open, write and close; what fails is tried again, and each time the store is still of use."""
    store = await open_patiently(world)
    await tell(store, writers, STEPS)
    await check_patiently(world, store, writers)
    with suppress(apsw.Error):
        await store.close()


async def open_patiently(world: World) -> SqliteStore:
    while True:
        with suppress(StoreInaccessible):
            return open_simulated(world, REGISTRY, settings=SETTINGS)
        await world.clock.sleep(1)


async def check_patiently(world: World, store: SqliteStore, writers: Sequence[Writer]) -> None:
    """A write that failed is not there while the store is open, so all stories are just where they were told."""
    while True:
        with suppress(Unavailable):
            found = await check_stories(store, writers)
            assert [writer.told for writer in found] == [writer.told for writer in writers]
            return
        await world.clock.sleep(1)


async def check_on_a_good_disk(world: World, writers: Sequence[Writer]) -> None:
    store = open_simulated(world, REGISTRY, settings=SETTINGS)
    writers = await check_stories(store, writers)
    assert not await tell(store, writers, 3)
    await check_stories(store, writers)
    await store.close()
    audit(world.disk.directory / "remuda.db")


async def live_through_trouble(world: World) -> None:
    writers = [Writer(name) for name in ("ann", "bob")]
    await work_on_a_bad_disk(world, writers)
    world.faults.stop()
    await check_on_a_good_disk(world, writers)


def calls_of(fault: str) -> int:
    """Return how often a load asks for this fault."""
    (menu,) = simulate(live_through_trouble, [0])
    return menu.counts[fault].asked


@pytest.mark.parametrize("fault", FAULTS)
def test_whichever_call_fails_only_its_writes_suffer_and_the_store_stays_of_use(fault: str) -> None:
    for call in range(1, calls_of(fault) + 1):

        async def scenario(world: World, call: int = call) -> None:
            world.faults.at(fault, call)
            await live_through_trouble(world)

        simulate(scenario, [0])


def test_a_disk_that_fails_now_and_then_loses_nothing() -> None:
    simulate(live_through_trouble, 60, rates=dict.fromkeys(FAULTS, 0.02))
