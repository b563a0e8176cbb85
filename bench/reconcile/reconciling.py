"""A reconcile without an effect: an event comes, the key is queued, a worker reads the object, and all is well.

Something has to happen for an event to come. So machines get a new address in their status, in one store that a
controller watches and in another that nobody does, and what the first costs beyond the second is the reconcile.
"""

import time
from collections.abc import Awaitable, Callable, Iterator

from msgspec.structs import replace

from bench.bed import Bed
from bench.callers import by_callers
from bench.cpu import spent_us
from bench.kinds import Machine, machine
from bench.loops import run
from bench.reconcile.control import controlled
from bench.report import Measure, at_most, figure
from bench.rounds import alternate, good_time
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteStore

__all__ = ["measures"]

_LIMIT_US = 100.0
Writing = Callable[[], Awaitable[object]]


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure the least reconciler there is, and the lifecycle that controllers are made of."""
    for title, by_lifecycle in (("a settled reconcile", False), ("a settled reconcile through a lifecycle", True)):
        spent, write = run(_pass_us(bed, by_lifecycle=by_lifecycle))
        yield at_most(1, title, spent, _LIMIT_US, "µs CPU")
        yield figure(f"{title}: the write that caused it", write, "µs CPU")


async def _pass_us(bed: Bed, *, by_lifecycle: bool) -> tuple[float, float]:
    """Return what a reconcile costs, and what the write costs that makes the event."""
    watched, alone = [await _settled(bed, by_lifecycle=by_lifecycle) for _ in range(2)]
    count = bed.sizes.reconciled
    async with controlled(watched, by_lifecycle=by_lifecycle) as control:

        async def ours(turn: int) -> float:
            changed = await _moved(watched, turn)
            start, all_passed = time.process_time(), control.after(count)
            await by_callers(watched.update_status, changed)
            await all_passed.wait()
            return spent_us(start, count)

        async def theirs(turn: int) -> float:
            changed = await _moved(alone, turn)
            start = time.process_time()
            await by_callers(alone.update_status, changed)
            return spent_us(start, count)

        with_pass, without = await alternate(bed.sizes.rounds, ours, theirs)
    for store in (watched, alone):
        await store.close()
    return good_time(with_pass) - good_time(without), good_time(without)


async def _settled(bed: Bed, *, by_lifecycle: bool) -> SqliteStore:
    """Return a store with machines to which nothing is left to be done."""
    store = bed.open(bed.fresh())
    await by_callers(store.create, [machine(number) for number in range(bed.sizes.reconciled)])
    async with controlled(store, by_lifecycle=by_lifecycle):
        return store


async def _moved(store: Store, turn: int) -> list[Machine]:
    """Return all machines, each with a new address."""
    page = await store.list(Machine)
    return [replace(each, status=replace(each.status, private_ip=f"10.0.0.{turn}")) for each in page.items]
