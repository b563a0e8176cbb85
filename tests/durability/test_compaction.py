"""Compaction forgets history, by age and by size, and nothing else; logs are kept as long as their stream says."""

import asyncio
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


KIB = 1024


def limited(limit: int, *, interval_s: float = NEVER_S) -> SqliteSettings:
    upkeep = MaintenanceSettings(history_bytes=limit, history_age=timedelta(days=999), interval_s=interval_s)
    return SqliteSettings(maintenance=upkeep)


async def write_large(store: SqliteStore, name: str, times: int, size: int) -> list[int]:
    """Update an object again and again with a document of this size; return its versions."""
    found = await store.get(Horse, name)
    versions = []
    for number in range(times):
        found = await store.update_status(replace(found, status=HorseStatus(place=f"{number:09}" + "x" * size)))
        versions.append(int(found.version))
    return versions


def history_in(path: Path) -> int:
    """Return the bytes of all revisions that are not the current state of an object."""
    with looking_into(path) as content:
        rows = content.rows(
            "SELECT length(document) FROM revisions r WHERE NOT EXISTS (SELECT 1 FROM objects o"
            " WHERE o.kind = r.kind AND o.name = r.name AND o.version = r.version)"
        )
    return sum(length for (length,) in rows)


@options(seeds=range(2))
async def test_m27_large_updates_of_one_caller_leave_a_bounded_store_without_waiting_for_maintenance(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "CHECKPOINT_PAGES", 50)
    store = open_simulated(world, REGISTRY, settings=limited(1000 * KIB))
    kept = await store.create(horse("kept"))
    await store.create(horse("large"))
    used = []
    for _ in range(10):
        await write_large(store, "large", 20, 100 * KIB)
        used.append(world.disk.used)
    assert max(used) < 5 * 1000 * KIB  # the file, with the pages that are free, and the log: 20 MB were written
    assert await store.get(Horse, "kept") == kept
    await store.close()
    assert 500 * KIB < history_in(path_of(world)) <= 1000 * KIB
    audit(path_of(world))


@options(seeds=range(2))
async def test_many_small_changes_make_space_for_a_large_one(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=limited(200 * KIB))
    await write_over(store, "small", 250)
    small = await write_over(store, "other", 250)
    await store.create(horse("large"))
    (large,) = await write_large(store, "large", 1, 190 * KIB)
    await assert_history_begins_at(store, store._reader.tables.horizon()[1])
    assert small[-50] < store._reader.tables.horizon()[1] < large
    await store.close()
    assert history_in(path_of(world)) <= 200 * KIB


@options(seeds=range(3))
async def test_m27_a_watch_that_resumes_before_what_was_dropped_is_gone_and_one_that_goes_on_misses_nothing(
    world: World,
) -> None:
    store = open_simulated(world, REGISTRY, settings=limited(400 * KIB))
    first = await store.create(horse("large"))
    events = store.watch(Horse, since=first.version)
    seen: list[int] = []
    async with aclosing(events):  # type: ignore[type-var]  # a watch is a generator
        written = []
        for _ in range(10):
            written += await write_large(store, "large", 5, 50 * KIB)
            while not seen or seen[-1] < written[-1]:
                event = await anext(events)
                seen += [int(event.version)] if isinstance(event, Change) else []
    assert seen == written
    _, floor = store._reader.tables.horizon()
    await assert_history_begins_at(store, floor)
    with pytest.raises(Gone, match="list again"):
        await first_after(store, int(first.version))
    await store.close()


@options(seeds=range(3))
async def test_the_history_of_an_earlier_process_counts(world: World) -> None:
    store = open_simulated(world, REGISTRY, settings=limited(10**9))
    await store.create(horse("large"))
    earlier = await write_large(store, "large", 20, 50 * KIB)
    await store.close()
    store = open_simulated(world, REGISTRY, settings=limited(500 * KIB, interval_s=5))
    await world.clock.sleep(20)
    _, floor = store._reader.tables.horizon()
    assert earlier[8] <= floor < earlier[-2]
    await assert_history_begins_at(store, floor)
    await store.close()
    assert history_in(path_of(world)) <= 500 * KIB
    audit(path_of(world))


@options(seeds=range(1))
async def test_a_commit_takes_only_as_many_bytes_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_BATCH_BYTES", 100 * KIB)
    store = open_simulated(world, REGISTRY)
    names = [f"horse-{number}" for number in range(20)]
    before = store._writer.version
    commits = 0

    async def create(name: str) -> None:
        nonlocal commits, before
        await store.create(replace(horse(name), spec=HorseSpec(colour="x" * 30 * KIB)))
        if store._writer.version != before:
            commits, before = commits + 1, store._writer.version

    await asyncio.gather(*map(create, names))
    assert commits >= 5
    await store.close()
