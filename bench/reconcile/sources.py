"""A source that has fallen behind: how fast it hands on changes that happened long ago."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import cast

from bench.bed import Bed
from bench.kinds import Machine
from bench.loops import run
from bench.report import Measure, figure
from bench.rounds import good_rate
from remuda.reconcile.queue import Rank
from remuda.reconcile.results import Cause
from remuda.reconcile.sources import Source, Watcher, intent_changed, version_changed
from remuda.store.contract import Event, Page, Store

__all__ = ["measures"]

_OBJECTS = 1_000
_TIMES = 5
_BEGINNING = "0"


def measures(bed: Bed) -> Iterator[Measure]:
    """Replay a history of changes, all of which matter, and one of which only the first of each object does."""
    yield figure("changes through a source", run(_rate(bed, Source(Machine, when=version_changed))), "1/s")
    filtered = Source(Machine, when=intent_changed)
    yield figure("changes through a source that skips most", run(_rate(bed, filtered)), "1/s")


async def _rate(bed: Bed, source: Source[Machine]) -> float:
    changes = bed.sizes.replayed
    store = bed.open(bed.filled(_OBJECTS, changes=changes))
    rates = []
    for _ in range(_TIMES):
        behind = _Behind(store, changes)
        watcher = Watcher(source, cast("Store", behind), _nowhere, on_start=lambda: None)
        start = time.perf_counter()
        following = asyncio.create_task(watcher.run())
        await behind.has_caught_up.wait()
        rates.append(changes / (time.perf_counter() - start))
        following.cancel()
    await store.close()
    return good_rate(rates)


class _Behind:
    """As much of a store as a source asks for, in which the source has seen nothing of what happened."""

    def __init__(self, store: Store, changes: int) -> None:
        self._store, self._left = store, changes
        self.has_caught_up = asyncio.Event()

    async def list_names(self, kind: type[Machine], *, limit: int) -> Page[str]:
        return replace(await self._store.list_names(kind, limit=limit), version=_BEGINNING)

    async def watch(self, kind: type[Machine], *, since: str) -> AsyncIterator[Event[Machine]]:
        async for event in self._store.watch(kind, since=since):
            yield event
            self._left -= 1
            if not self._left:
                self.has_caught_up.set()


def _nowhere(_key: str, _cause: Cause, _rank: Rank, _after_s: float) -> None:
    """Take a key and do nothing."""
