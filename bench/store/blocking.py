"""Nothing blocks the loop: the most CPU time of one callback in everything the store does at length."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial

from msgspec.structs import replace

from bench.bed import Bed
from bench.callers import by_callers
from bench.kinds import POOL, REGION, ZONE, Machine, Pool, machine
from bench.loopwatch import watched
from bench.report import Measure, at_most, figure
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore

__all__ = ["measures"]

_LIMIT_MS = 10.0
Work = Callable[[], Awaitable[object]]
Case = tuple[str, Work]


def measures(bed: Bed) -> Iterator[Measure]:
    """Run each long work under watch."""
    for cases in (_writing, _reading, _compacting):
        yield from asyncio.run(_watch(cases(bed)))


async def _watch(cases: AsyncIterator[Case]) -> list[Measure]:
    found: list[Measure] = []
    async for title, work in cases:
        async with watched() as held:
            kept = await asyncio.create_task(_run(work))
        del kept  # what a caller releases at once is the caller's
        found.append(at_most(1, f"blocks the event loop: {title}", held.cpu_s * 1_000, _LIMIT_MS, "ms CPU"))
        found.append(figure(f"wall lag: {title}", held.lag_s * 1_000, "ms"))
    return found


async def _run(work: Work) -> object:
    return await work()


async def _writing(bed: Bed) -> AsyncIterator[Case]:
    store, count = bed.open(bed.fresh()), bed.sizes.children
    for title, finalizers in (("an owner of", ()), ("an owner and marking its", ("bench.remuda/held",))):
        pool = await store.create(Pool(metadata=Metadata(name=f"pool-{len(finalizers)}")))
        numbers = range(len(finalizers) * count, (len(finalizers) + 1) * count)
        children = [machine(number, owner=POOL.owner(pool), finalizers=finalizers) for number in numbers]
        yield f"{count:,} creates by 64 callers", partial(by_callers, store.create, children)
        yield f"deleting {title} {count:,} children", partial(store.delete, Pool, pool.name, uid=pool.uid)
    large = [_swollen(machine(number)) for number in range(200)]
    yield "a checkpoint of 40 MiB", lambda: by_callers(store.create, large)
    await store.close()


async def _reading(bed: Bed) -> AsyncIterator[Case]:
    store, count = bed.open(bed.filled(bed.sizes.many)), bed.sizes.replayed
    zone, elsewhere = {ZONE: "zone-0"}, {REGION: "region-1"}
    yield f"a list of {bed.sizes.many // 3:,}", lambda: store.list(Machine, labels=zone)
    yield "a list by two such labels that nothing has both of", lambda: store.list(Machine, labels=zone | elsewhere)
    yield f"replaying {count:,} changes", lambda: _replay(store, since=bed.sizes.many - count, count=count)
    await store.close()


async def _compacting(bed: Bed) -> AsyncIterator[Case]:
    count = bed.sizes.compacted
    path = bed.filled(1_000, changes=count + 1_000)
    store = bed.open(path, history_changes=1_000)
    yield f"compacting {count:,} changes", store.maintenance.compact
    await store.close()


async def _replay(store: SqliteStore, *, since: int, count: int) -> None:
    async for _ in store.watch(Machine, since=str(since)):
        count -= 1
        if not count:
            return


def _swollen(small: Machine) -> Machine:
    return replace(small, spec=replace(small.spec, user_data="x" * 200_000))
