"""A page of 100 by label: the same among many objects as among few, cold and warm, with one label and with two."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from bench.bed import Bed
from bench.kinds import PROJECT, ZONE, Machine, labels_of
from bench.report import Measure, at_most
from bench.rounds import alternate, good_time
from remuda.store.sqlite.store import SqliteStore

__all__ = ["measures"]

_GOAL = 1.3
_PAGE = 100
_REPEATS = 10
_PROJECTS = 6
Timer = Callable[[Bed, Path, Mapping[str, str]], Awaitable[float]]


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare a large file with a small one: warm, cold, and as the first thing that a store does."""
    sizes = f"{bed.sizes.many:,} objects to {bed.sizes.few:,}"
    for keys, title in (((PROJECT,), "one label"), ((PROJECT, ZONE), "two labels")):
        for state, time_page in (("warm", _warm), ("cold", _cold), ("just opened", _just_opened)):
            large, small = asyncio.run(_compare(bed, keys, time_page))
            goal = None if time_page is _just_opened else _GOAL
            yield at_most(goal, f"page of {_PAGE} by {title}, {state}, {sizes}", large, small, "ms")


async def _compare(bed: Bed, keys: tuple[str, ...], time_page: Timer) -> list[float]:
    async def large(turn: int) -> float:
        return await time_page(bed, bed.filled(bed.sizes.many), _selector(keys, turn, bed.sizes.many))

    async def small(turn: int) -> float:
        return await time_page(bed, bed.filled(bed.sizes.few), _selector(keys, turn, bed.sizes.few))

    return [good_time(values) for values in await alternate(bed.sizes.rounds, large, small)]


async def _warm(bed: Bed, path: Path, labels: Mapping[str, str]) -> float:
    """Time a page whose objects are cached."""
    return min(await _times(bed.open(path), labels, _REPEATS))


async def _cold(bed: Bed, path: Path, labels: Mapping[str, str]) -> float:
    """Time a page whose objects no cache of ours can have: each is read from the tables and decoded."""
    return min(await _times(bed.open(path, cache_bytes=0), labels, _REPEATS))


async def _just_opened(bed: Bed, path: Path, labels: Mapping[str, str]) -> float:
    """Time the very first page: not even SQLite has a page of the file, and a larger file is a deeper tree."""
    return min(await _times(bed.open(path), labels, 1))


async def _times(store: SqliteStore, labels: Mapping[str, str], count: int) -> list[float]:
    taken = [await _page_ms(store, labels) for _ in range(count)]
    await store.close()
    return taken


async def _page_ms(store: SqliteStore, labels: Mapping[str, str]) -> float:
    start = time.perf_counter()
    page = await store.list(Machine, labels=labels, limit=_PAGE)
    taken = time.perf_counter() - start
    assert len(page.items) == _PAGE, "a page that is not full measures something else"
    return taken * 1_000


def _selector(keys: tuple[str, ...], turn: int, objects: int) -> Mapping[str, str]:
    labels = labels_of(turn % _PROJECTS, objects)
    return {key: labels[key] for key in keys}
