"""One event to many watchers: the process's CPU time for each of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping

from msgspec.structs import replace

from bench.bed import Bed
from bench.kinds import PROJECT, Machine, machine
from bench.report import Measure, at_most
from bench.rounds import quantile
from remuda.store.contract import Event
from remuda.store.sqlite.store import SqliteStore

__all__ = ["measures"]

_LIMIT_US = 5.0
_EVENTS = 30


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure watchers of everything, of labels that the event carries, and of labels that it does not."""
    carried = {PROJECT: machine(0).metadata.labels[PROJECT]}
    filters: Mapping[str, Mapping[str, str] | None] = {
        "unfiltered": None, "filtered, passing": carried, "filtered, not passing": {PROJECT: "another"}
    }  # fmt: skip
    for title, labels in filters.items():
        spent = asyncio.run(_spent_us(bed, labels))
        yield at_most(1, f"one event to {bed.sizes.watchers:,} watchers, {title}", spent, _LIMIT_US, "µs CPU each")


async def _spent_us(bed: Bed, labels: Mapping[str, str] | None) -> float:
    """Return the CPU time that an event costs with watchers beyond what it costs without any, per watcher."""
    store = bed.open(bed.fresh())
    current = await store.create(machine(0))
    current, alone = await _write_events(store, current)
    tasks = [
        asyncio.create_task(_drain(store.watch(Machine, since=current.version, labels=labels)))
        for _ in range(bed.sizes.watchers)
    ]
    await _settle()
    _, watched = await _write_events(store, current)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await store.close()
    return (watched - alone) * 1e6 / bed.sizes.watchers


async def _write_events(store: SqliteStore, current: Machine) -> tuple[Machine, float]:
    """Write some events one by one; return the median CPU seconds from a write to the last watcher's rest."""
    spent = []
    for _ in range(_EVENTS):
        wanted = replace(current, spec=replace(current.spec, replicas=current.spec.replicas + 1))
        start = time.process_time()
        current = await store.update(wanted)
        await _settle()
        spent.append(time.process_time() - start)
    return current, quantile(spent, 0.5)


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def _drain(events: AsyncIterator[Event[Machine]]) -> None:
    async for _ in events:
        pass
