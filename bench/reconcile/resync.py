"""Resyncs and idling: what many settled objects cost when nothing happens."""

import time
from collections.abc import Iterator

from bench.bed import Bed
from bench.cpu import idle_share, spent_us
from bench.loops import run
from bench.reconcile.control import controlled
from bench.report import Measure, figure
from bench.rounds import good_time

__all__ = ["measures"]

_OBJECTS = 10_000
_SCANS = 5


def measures(bed: Bed) -> Iterator[Measure]:
    """Scan, then wait."""
    scanned, idle = run(_spent(bed))
    yield figure(f"a resync of {_OBJECTS:,} settled objects, each", scanned, "µs CPU")
    yield figure(f"{_OBJECTS:,} idle objects", idle, "% CPU")


async def _spent(bed: Bed) -> tuple[float, float]:
    """Return the CPU time of a resync for each object, and the share of a core that idling takes."""
    store = bed.open(bed.filled(_OBJECTS))
    alone = await idle_share(bed.sizes.idle_s / 4)
    async with controlled(store) as control:
        taken = []
        for _ in range(_SCANS):
            start, all_passed = time.process_time(), control.after(_OBJECTS)
            await control.driver.resync()
            await all_passed.wait()
            taken.append(spent_us(start, _OBJECTS))
        idle = await idle_share(bed.sizes.idle_s / 4)
    await store.close()
    return good_time(taken), idle - alone
