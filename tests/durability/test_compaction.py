"""Compaction forgets history, by age and by size, and nothing else; logs are kept as long as their stream says."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from remuda.kernel.errors import Gone
from remuda.store.contract import Change, Event
from remuda.store.logs import Record
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite import writer as writing
from remuda.store.sqlite.store import SqliteSettings, SqliteStore
from tests.kit.environment import options
from tests.kit.sample_kinds import REGISTRY, Horse, HorseSpec, HorseStatus, horse
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated
from tests.kit.store.checks import audit, check_stories, looking_into
from tests.kit.store.write_load import Writer

NEVER_S = 1e9


def settings(
    *, age: timedelta = timedelta(days=999), changes: int = 10**9, interval_s: float = NEVER_S
) -> SqliteSettings:
    retention = {"short": timedelta(minutes=1), "long": timedelta(days=1)}
    upkeep = MaintenanceSettings(history_age=age, history_changes=changes, interval_s=interval_s, retention=retention)
    return SqliteSettings(maintenance=upkeep)


def path_of(world: World) -> Path:
    return world.disk.directory / "remuda.db"


async def write_over(store: SqliteStore, name: str, times: int) -> list[int]:
    """Make an object and change it again and again; return its versions."""
    found = await store.create(horse(name))
    versions = [int(found.version)]
    for number in range(times):
        found = await store.update_status(replace(found, status=HorseStatus(place=f"{number}")))
        versions.append(int(found.version))
    return versions


async def first_after(store: SqliteStore, version: int) -> Event[Horse]:
    """Return the first event of a watch from a version."""
    events: AsyncIterator[Event[Horse]] = store.watch(Horse, since=f"{version}")
    async with aclosing(events):  # type: ignore[type-var]  # a watch is a generator
        return await anext(events)


async def assert_history_begins_at(store: SqliteStore, floor: int) -> None:
    """A watch from the floor sees the very next change; one from before is told Gone."""
    event = await first_after(store, floor)
    assert isinstance(event, Change)
    assert int(event.version) == floor + 1
    with pytest.raises(Gone, match="list again"):
        await first_after(store, floor - 1)


def revisions_in(path: Path) -> list[int]:
    with looking_into(path) as content:
        return [version for (version,) in content.rows("SELECT version FROM revisions ORDER BY version")]


@options(seeds=range(2))
async def test_history_is_compacted_by_size_and_current_objects_survive(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=settings(changes=10))
    kept = await store.create(horse("kept"))
    versions = await write_over(store, "busy", 700)
    await store.maintenance.compact()
    await assert_history_begins_at(store, versions[-1] - 10)
    assert await store.get(Horse, "kept") == kept
    await store.close()
    assert revisions_in(path_of(world)) == [int(kept.version), *versions[-10:]]
    audit(path_of(world))
    store = open_simulated(world, REGISTRY)
    assert await store.get(Horse, "kept") == kept
    await assert_history_begins_at(store, versions[-1] - 10)
    await store.close()


@options(seeds=range(2))
async def test_history_is_compacted_by_age_and_current_objects_survive(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=settings(age=timedelta(minutes=5)))
    kept = await store.create(horse("kept"))
    old = await write_over(store, "old", 450)
    await world.clock.sleep(600)
    young = await write_over(store, "young", 5)
    await store.maintenance.compact()
    await assert_history_begins_at(store, old[-1])
    assert await store.get(Horse, "kept") == kept
    await store.close()
    assert revisions_in(path_of(world)) == [int(kept.version), old[-1], *young]
    audit(path_of(world))


@options(seeds=range(2))
async def test_what_is_changed_after_its_revision_fell_below_the_floor_leaves_no_history_there(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=settings(changes=0))
    changed, dropped = await store.create(horse("changed")), await store.create(horse("dropped"))
    await store.maintenance.compact()
    changed = await store.update(replace(changed, spec=HorseSpec(colour="dun")))
    await store.delete(Horse, "dropped", uid=dropped.uid)
    await store.close()
    assert revisions_in(path_of(world)) == [3, 4]
    audit(path_of(world))


@options(seeds=range(10))
async def test_two_compactions_at_once_never_lower_the_floor(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=settings(changes=3, interval_s=0.01))
    for number in range(20):
        await write_over(store, f"horse-{number}", 20)
        await store.maintenance.compact()
    version, floor = store._reader.tables.horizon()
    assert floor == version - 3
    await store.close()
    audit(path_of(world))


@options(seeds=range(1))
async def test_log_records_are_kept_as_long_as_their_stream_says(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=settings())

    async def append(data: bytes) -> None:
        streams = ("short", "long", "unknown")
        await store.append([Record(stream=each, subject="dun", data=msgspec.Raw(data)) for each in streams])

    async def kept(stream: str) -> list[bytes]:
        return [bytes(entry.data) for entry in (await store.read(stream, "dun", limit=9999)).entries]

    for _ in range(450):
        await append(b"1")
    await world.clock.sleep(3600)
    await append(b"2")
    await store.maintenance.trim()
    assert await kept("short") == [b"2"]
    assert len(await kept("long")) == len(await kept("unknown")) == 451
    await world.clock.sleep(2 * 86_400)
    await store.maintenance.trim()
    assert await kept("short") == await kept("long") == []
    await store.close()


@options(seeds=range(1))
async def test_a_long_life_keeps_the_file_small(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written over and deleted leaves no trace in the size of the file, of its log and of its history."""
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 100)

    async def live(store: SqliteStore, turns: int) -> None:
        for _ in range(turns):
            for name in ("dun", "bay", "roan"):
                await write_over(store, name, 20)
                await store.delete(Horse, name, uid=(await store.get(Horse, name)).uid)

    store = open_simulated(world, REGISTRY, settings=settings(changes=50, interval_s=0.1))
    await live(store, 10)
    early = world.disk.used
    await live(store, 60)
    assert world.disk.used < 1.5 * early
    await store.close()
    assert len(revisions_in(path_of(world))) < 100
    audit(path_of(world))


@options(seeds=range(5))
async def test_stories_told_through_compaction_are_unharmed(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=settings(changes=5, interval_s=0.01))
    writer = Writer("ann")
    for _ in range(120):
        await writer.tell(store)
    await check_stories(store, [writer])
    await store.close()
    audit(path_of(world))
