"""Writes by 64 callers, beside a bare loop that inserts the same rows and commits every 64.

Both move their write-ahead log into the file after as many pages, which costs as much as many writes: so all turns
count, not only the good ones.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from msgspec.structs import replace

from bench.bed import Bed
from bench.callers import CALLERS, by_callers
from bench.kinds import Machine, machine
from bench.report import Measure, at_least
from bench.rounds import alternate, steady_rate
from bench.rows import BareFile, Rows
from remuda.store.readside.tables import MODIFIED

__all__ = ["measures"]

_STORED = 7_000
"""Machines that are there already: so many that their pages are many, so few that the cache holds all, as it is."""
_ROUNDS = 10


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure creates, and updates of objects all over the store whose last change is no more in its history."""
    creates, bare_creates, updates, bare_updates = asyncio.run(_compare(bed))
    yield at_least(0.5, "creates by 64 callers", creates, bare_creates, "1/s")
    yield at_least(0.5, "updates by 64 callers", updates, bare_updates, "1/s")


async def _compare(bed: Bed) -> list[float]:
    """Return the rates of our creates, bare creates, our updates and bare updates, in two files of the same rows."""
    store = bed.open(bed.fresh(), history_changes=0)
    stored = await by_callers(store.create, [machine(n, total=_STORED) for n in range(_STORED)])
    await store.maintenance.compact()
    bare = BareFile(bed.fresh())
    bare.fill(objects=_STORED, changes=_STORED)
    count = bed.sizes.writes

    async def our_creates(turn: int) -> float:
        return await _timed(store.create, [machine(n) for n in _fresh(turn, count)])

    async def bare_creates(turn: int) -> float:
        return _timed_bare(bare, [bare.rows(machine(n)) for n in _fresh(turn, count)])

    async def our_updates(turn: int) -> float:
        return await _timed(store.update, [_changed(stored[n]) for n in _scattered(turn, count)])

    async def bare_updates(turn: int) -> float:
        changed = [(_changed(machine(n, total=_STORED)), n + 1) for n in _scattered(turn, count)]
        return _timed_bare(bare, [bare.rows(m, change=MODIFIED, superseded=old) for m, old in changed])

    found = await alternate(_ROUNDS, our_creates, bare_creates, our_updates, bare_updates)
    await store.close()
    bare.close()
    return [steady_rate(values) for values in found]


def _fresh(turn: int, count: int) -> range:
    """Return the numbers of machines that no turn has created yet."""
    return range(_STORED + turn * count, _STORED + (turn + 1) * count)


def _scattered(turn: int, count: int) -> list[int]:
    """Return the numbers of machines all over the store that no turn has updated yet."""
    return [(turn * count + each) * 7_919 % _STORED for each in range(count)]


async def _timed(
    write: Callable[[Machine], Awaitable[Machine]],
    machines: Sequence[Machine],
) -> float:
    start = time.perf_counter()
    await by_callers(write, machines)
    return len(machines) / (time.perf_counter() - start)


def _timed_bare(bare: BareFile, rows: Sequence[Rows]) -> float:
    start = time.perf_counter()
    bare.write(rows, commit_every=CALLERS)
    return len(rows) / (time.perf_counter() - start)


def _changed(before: Machine) -> Machine:
    return replace(before, spec=replace(before.spec, replicas=before.spec.replicas + 1))
