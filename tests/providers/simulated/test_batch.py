"""Effects that share a commit: one that fails undoes itself alone, and a file that fails fails all."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import StorageFailing, StorageFull, StoreClosed
from remuda.providers.contract.common import Handle, NoCapacity
from remuda.providers.contract.provider import CloudEvent
from remuda.providers.simulated.database import CloudDatabase, open_database
from remuda.providers.simulated.gateway import EffectBatch
from remuda.providers.simulated.timers import Timers


def _storage(path: Path) -> tuple[CloudDatabase, EffectBatch]:
    clock = SystemClock()
    storage = open_database(path, clock=clock)
    return storage, EffectBatch(Timers(storage, clock), storage, should_announce=lambda _: True)


def _names(storage: CloudDatabase) -> list[str]:
    return [name for (name,) in storage.rows("SELECT name FROM tenancies ORDER BY name")]


def _making(storage: CloudDatabase, name: str, error: Exception | None = None) -> Callable[[], str]:
    def effect() -> str:
        storage.record_change("network", Handle("t", name))
        storage.run("INSERT INTO tenancies (name, document) VALUES (?, ?)", (name, b""))
        if error is not None:
            raise error
        return name

    return effect


async def test_one_that_fails_is_undone_alone_and_tells_nobody(tmp_path: Path) -> None:
    storage, together = _storage(tmp_path / "cloud.db")
    commits: list[float] = []
    told: list[CloudEvent] = []
    storage.after_commit = told.extend

    def committing() -> bool:
        commits.append(storage.now())
        return False

    storage._connection.set_commit_hook(committing)
    error = NoCapacity("no host has capacity")
    effects = [_making(storage, "a"), _making(storage, "b", error), _making(storage, "a"), _making(storage, "c")]
    answers = [asyncio.create_task(together.run(effect)) for effect in effects]
    await asyncio.sleep(0)
    outcomes = await asyncio.gather(*answers, return_exceptions=True)
    assert (outcomes[0], outcomes[3]) == ("a", "c")
    assert outcomes[1] is error
    assert isinstance(outcomes[2], StorageFailing), "there is an a already"
    assert _names(storage) == ["a", "c"]
    assert [event.handle.name for event in told] == ["a", "c"]
    assert len(commits) == 1
    storage.close()


async def test_who_gives_up_waiting_leaves_the_effect_to_come(tmp_path: Path) -> None:
    storage, together = _storage(tmp_path / "cloud.db")
    waiting = asyncio.create_task(together.run(_making(storage, "a")))
    await asyncio.sleep(0)
    assert together.is_busy
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert _names(storage) == ["a"]
    storage.close()


async def test_a_file_that_takes_nothing_fails_all(tmp_path: Path) -> None:
    storage, together = _storage(tmp_path / "cloud.db")
    storage._connection.set_commit_hook(lambda: True)
    outcomes = await asyncio.gather(
        *(together.run(_making(storage, name)) for name in ("a", "b")), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [StorageFailing, StorageFailing]
    storage._connection.set_commit_hook(None)
    assert await together.run(_making(storage, "c")) == "c"
    assert _names(storage) == ["c"]
    storage.close()


async def test_a_full_disk_is_called_so_and_loses_nothing_that_was_there(tmp_path: Path) -> None:
    storage, together = _storage(tmp_path / "cloud.db")
    await together.run(_making(storage, "before"))
    pages = storage._connection.pragma("page_count")
    storage._connection.pragma("max_page_count", pages + 2)

    def large() -> None:
        storage.run("INSERT INTO tenancies (name, document) VALUES ('large', zeroblob(1000000))")

    outcomes = await asyncio.gather(together.run(_making(storage, "a")), together.run(large), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StorageFull, StorageFull]
    assert _names(storage) == ["before"]
    assert await together.run(_making(storage, "after")) == "after"
    storage.close()


async def test_a_file_that_is_closed_meanwhile_is_said(tmp_path: Path) -> None:
    storage, together = _storage(tmp_path / "cloud.db")
    waiting = asyncio.create_task(together.run(_making(storage, "a")))
    await asyncio.sleep(0)
    storage.close()
    with pytest.raises(StoreClosed):
        await waiting
