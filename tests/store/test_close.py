"""Closing: what was begun is finished, what comes later is refused in one sentence, and nobody waits for ever."""

import asyncio
from pathlib import Path

import pytest

from remuda.kernel.errors import StoreClosed
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY, Horse, horse
from tests.kit.simulation.store import SEALER


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "remuda.db"


def opened(path: Path) -> SqliteStore:
    return open_store(path, REGISTRY, SEALER)


async def test_writes_under_way_are_finished_and_later_ones_refused(path: Path) -> None:
    store = opened(path)
    begun = [asyncio.create_task(store.create(horse(f"h-{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert len(await asyncio.gather(*begun)) == 20
    with pytest.raises(StoreClosed):
        await store.create(horse("late"))
    store = opened(path)
    assert len((await store.list(Horse)).items) == 20
    await store.close()


async def test_callers_that_never_stop_writing_do_not_keep_it_open(path: Path) -> None:
    store = opened(path)

    is_written = asyncio.Event()

    async def write_for_ever(caller: int) -> int:
        for number in range(1_000_000):
            try:
                await store.create(horse(f"h-{caller}-{number}"))
            except StoreClosed:
                return number
            is_written.set()
        raise AssertionError("the store is never closed")

    callers = [asyncio.create_task(write_for_ever(caller)) for caller in range(8)]
    await is_written.wait()
    await store.close()
    written = sum(await asyncio.gather(*callers))
    store = opened(path)
    assert len((await store.list(Horse)).items) == written
    await store.close()


async def test_watchers_are_told(path: Path) -> None:
    store = opened(path)

    async def watch() -> None:
        async for _ in store.watch(Horse, since="0"):
            pass

    watchers = [asyncio.create_task(watch()) for _ in range(3)]
    await asyncio.sleep(0)
    await store.close()
    for outcome in await asyncio.gather(*watchers, return_exceptions=True):
        assert isinstance(outcome, StoreClosed)


async def test_closing_twice_is_fine(path: Path) -> None:
    store = opened(path)
    await store.close()
    await store.close()


async def test_everything_says_that_it_is_closed(path: Path) -> None:
    store = opened(path)
    await store.create(horse("home"))
    await store.close()
    for use in (
        store.get(Horse, "away"),
        store.list(Horse),
        store.delete(Horse, "home", uid="x"),
        store.append([]),
        store.read("timeline", "home"),
        store.back_up(path.with_name("copy.db")),
    ):
        with pytest.raises(StoreClosed, match="is closed"):
            await use
