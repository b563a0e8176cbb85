"""What a list by index entries costs: counted in steps of SQLite and in objects that are looked at, not in time."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from remuda.store.contract import NAME_INDEX, Change, IndexEntry, label_index
from remuda.store.readside.change_feed import Feed
from remuda.store.readside.reads import WatchFilter
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY, Horse, horse
from tests.kit.simulation.store import SEALER

OWN, OTHERS = 20, 2_000


def herd(name: str) -> IndexEntry:
    return label_index("herd"), name


async def stabled(path: Path, *, others: int) -> SqliteStore:
    """Return a store with a few horses of three herds among many of other herds."""
    store = open_store(path / f"{others}.db", REGISTRY, SEALER)
    own = [horse(f"horse-{number:04}-own", labels={"herd": f"own-{number % 3}"}) for number in range(OWN)]
    foreign = [horse(f"horse-{number:04}", labels={"herd": f"other-{number % 7}"}) for number in range(others)]
    await asyncio.gather(*map(store.create, [*own, *foreign]))
    return store


async def steps(store: SqliteStore, **selection: Any) -> int:
    """Return the steps that SQLite takes for a list, when its statements are prepared."""
    counted: list[int] = []
    connection = store._reader.tables.connection

    def count(event: dict[str, Any]) -> None:
        counted.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    await store.list_names(Horse, **selection)
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, count, id="steps")
    await store.list_names(Horse, **selection)
    connection.trace_v2(0, None, id="steps")
    return sum(counted)


@pytest.mark.parametrize(
    "selection",
    [
        {"any_of": [herd("own-0"), herd("own-1"), herd("own-2")]},
        {"any_of": [herd("own-0"), herd("own-1")], "limit": 3},
        {"any_of": [herd("own-0"), (NAME_INDEX, "horse-0007-own")]},
        {"any_of": [herd("own-0"), herd("own-1")], "index": ("colour", "bay")},
        {"any_of": [herd("none")]},
    ],
    ids=str,
)
async def test_what_is_elsewhere_costs_a_list_nothing(tmp_path: Path, selection: dict[str, Any]) -> None:
    among_few, among_many = await stabled(tmp_path, others=10), await stabled(tmp_path, others=OTHERS)
    few, many = await steps(among_few, **selection), await steps(among_many, **selection)
    assert many <= 1.5 * few + 400, "counting how rare an entry is has a limit"
    assert many < OTHERS
    assert await steps(among_many) > OTHERS, "the whole list is what steps are counted in"
    for store in (among_few, among_many):
        await store.close()


async def test_a_list_of_nothing_reads_nothing(tmp_path: Path) -> None:
    store = await stabled(tmp_path, others=10)
    assert await steps(store, any_of=()) == 0
    await store.close()


async def test_hundreds_of_entries_are_merged_in_order_and_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "many.db", REGISTRY, SEALER)
    names = [f"horse-{number:03}" for number in range(240)]
    await asyncio.gather(*(store.create(horse(name, labels={"herd": name[-2:], "own": name})) for name in names))
    entries = [(label_index("own"), name) for name in reversed(names)] + [herd(f"{number:02}") for number in range(30)]
    found, after = list[str](), None
    while True:
        page = await store.list_names(Horse, any_of=entries, limit=37, after=after)
        found += page.items
        if (after := page.next) is None:
            break
    assert found == names
    await store.close()


class Visits:
    """How often watchers looked at changes, and for changes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes, self.reads = 0, 0
        examine, after = WatchFilter.event, Feed.after

        def examined(watched: Any, change: Any) -> Any:
            self.changes += 1
            return examine(watched, change)

        def read(feed: Feed, cursor: int, *, limit: int) -> Any:
            self.reads += 1
            return after(feed, cursor, limit=limit)

        monkeypatch.setattr(WatchFilter, "event", examined)
        monkeypatch.setattr(Feed, "after", read)


@pytest.mark.parametrize(
    "watched", [{"any_of": [herd("own-1")]}, {"labels": {"herd": "own-1"}}, {"any_of": ()}], ids=str
)
async def test_changes_elsewhere_do_not_wake_a_watcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: dict[str, Any]
) -> None:
    store = await stabled(tmp_path, others=10)
    since = (await store.list_names(Horse, limit=1)).version
    seen: list[tuple[str, str]] = []

    async def follow() -> None:
        async for event in store.watch(Horse, since=since, **watched):
            assert isinstance(event, Change), "bookmarks come later"
            seen.extend([(event.type, event.resource.name)])

    visits, following = Visits(monkeypatch), asyncio.create_task(follow())
    for number in range(100):
        await store.create(horse(f"new-{number}", labels={"herd": "other"}))
    assert (visits.changes, visits.reads) == (0, 1), "it looked once, and then waited"
    await store.create(horse("mine", labels={"herd": "own-1"}))
    await store.create(horse("other", labels={"herd": "other"}))
    assert seen == ([] if watched == {"any_of": ()} else [("added", "mine")])
    assert visits.changes <= 2
    following.cancel()
    await store.close()


async def test_a_watcher_whom_nothing_concerned_reads_no_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await stabled(tmp_path, others=10)
    since, visits = (await store.list_names(Horse, limit=1)).version, Visits(monkeypatch)
    events = store.watch(Horse, since=since, any_of=[herd("own-1")])
    following = asyncio.ensure_future(anext(events))
    for start in range(0, 3_000, 500):  # more than the feed keeps in memory
        names = [f"new-{number}" for number in range(start, start + 500)]
        await asyncio.gather(*(store.create(horse(name, labels={"herd": "other"})) for name in names))
    created = await store.create(horse("mine", labels={"herd": "own-1"}))
    assert (await following).version == created.version
    assert visits.changes <= 1
    await store.close()
