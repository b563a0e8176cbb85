"""What an operation costs beside the same durable writes made by hand: its two steps, and its record twice."""

import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta

from bench.bed import Bed
from bench.callers import CALLERS, by_callers
from bench.cpu import spent_us
from bench.kinds import MACHINE, Pool, machine, name_of
from bench.loops import run
from bench.operations.saga import BUILD, Setup, operations_on, run_saga
from bench.report import Measure, at_least, at_most, figure
from bench.rounds import alternate, good_time, steady_rate
from remuda.kernel.clock import SystemClock
from remuda.operations.kinds import Operation, OperationSpec
from remuda.store.contract import Store
from remuda.store.objects import Metadata

__all__ = ["measures"]

Turn = tuple[float, float]


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure operations by 64 callers, and the same writes by as many."""
    (cpu, bare_cpu), (rate, bare_rate) = run(_compare(bed))
    yield at_most(None, "an operation of two steps", cpu, bare_cpu, "µs CPU")
    yield figure("an operation of two steps: beyond its four writes", cpu - bare_cpu, "µs CPU")
    yield at_least(None, f"operations by {CALLERS} callers", rate, bare_rate, "1/s")


async def _compare(bed: Bed) -> tuple[Turn, Turn]:
    """Return the CPU time and the rate of operations, each beside that of bare writes."""
    ours, theirs = bed.open(bed.fresh()), bed.open(bed.fresh())
    operations, now = operations_on(Setup(ours)), SystemClock().now()
    numbers, count = itertools.count(), bed.sizes.operations
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}

    async def operation(number: int) -> None:
        assert await run_saga(operations, BUILD, number, id=name_of(number)) is not None

    async def bare(number: int) -> None:
        await _write(theirs, number, now + timedelta(seconds=30))

    def turns(name: str, call: Callable[[int], Awaitable[None]]) -> Callable[[int], Awaitable[float]]:
        async def turn(_: int) -> float:
            start, began = time.process_time(), time.perf_counter()
            await by_callers(call, [next(numbers) for _ in range(count)])
            rates[name].append(count / (time.perf_counter() - began))
            return spent_us(start, count)

        return turn

    found = await alternate(bed.sizes.rounds, turns("ours", operation), turns("theirs", bare))
    for store in (ours, theirs):
        await store.close()
    cpu, bare_cpu = (good_time(values) for values in found)
    return (cpu, bare_cpu), (steady_rate(rates["ours"]), steady_rate(rates["theirs"]))


async def _write(store: Store, number: int, deadline: datetime) -> None:
    """Make what an operation makes, with nobody to take it back."""
    name = name_of(number)
    spec = OperationSpec(
        saga=BUILD.name,
        subject_kind=MACHINE.qualified,
        subject=name,
        actor="bench",
        input="{}",
        deadline=deadline,
        process=name,
        request=name,
    )
    record = await store.create(Operation(metadata=Metadata(name=name), spec=spec))
    await store.create(Pool(metadata=Metadata(name=name)))
    await store.create(machine(number))
    await store.update_status(record.moved("done", closed=deadline))
