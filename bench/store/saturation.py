"""Write latency while other tasks want all of the loop's time.

The commit thread has to win the interpreter back from a loop that never rests. Python hands it over after its switch
interval, 5 ms by default, several times a commit; a process that runs a store sets 0.5 ms (`remuda.process`).
"""

import asyncio
import time
from collections.abc import Iterator

from bench.bed import Bed
from bench.callers import by_callers
from bench.kinds import Machine, machine
from bench.report import Measure, at_most, figure
from bench.rounds import quantile

__all__ = ["measures"]

_LIMIT_MS = 100.0
_BURNERS = 8
_BURN_S = 0.0005


def measures(bed: Bed) -> Iterator[Measure]:
    """Measure every write of 64 callers beside eight tasks that never wait."""
    latencies_ms = asyncio.run(_latencies(bed))
    yield at_most(1, "write latency p99, loop saturated", quantile(latencies_ms, 0.99), _LIMIT_MS, "ms")
    yield figure("write latency p50, loop saturated", quantile(latencies_ms, 0.5), "ms")


async def _latencies(bed: Bed) -> list[float]:
    store = bed.open(bed.fresh())
    burners = [asyncio.create_task(_burn()) for _ in range(_BURNERS)]
    found: list[float] = []

    async def create(each: Machine) -> Machine:
        start = time.perf_counter()
        created = await store.create(each)
        found.append((time.perf_counter() - start) * 1_000)
        return created

    await by_callers(create, [machine(number) for number in range(bed.sizes.rounds * bed.sizes.writes // 2)])
    for burner in burners:
        burner.cancel()
    await store.close()
    return found


async def _burn() -> None:
    while True:
        until = time.perf_counter() + _BURN_S
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(0)
