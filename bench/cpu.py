"""CPU time: of this process, of another, and of what does nothing."""

import asyncio
import os
import time
from pathlib import Path

__all__ = ["busy_share", "idle_share", "of_process", "spent_us"]

_SCHED = 2
"""The clock of all threads together, as the kernel counts it: see clock_getcpuclockid(3)."""


def of_process(pid: int) -> float:
    """Return the seconds of CPU that a process has used, all its threads together."""
    return time.clock_gettime((~pid << 3) | _SCHED)


def spent_us(start: float, count: int) -> float:
    """Return the microseconds of CPU that this process has used since `start`, for each of so many."""
    return (time.process_time() - start) * 1e6 / count


async def idle_share(seconds: float, pid: int | None = None) -> float:
    """Return how much of a core a process uses, in percent, while we wait: this one, unless another is named."""
    of = os.getpid() if pid is None else pid
    start, began = of_process(of), time.perf_counter()
    await asyncio.sleep(seconds)
    return (of_process(of) - start) / (time.perf_counter() - began) * 100


async def busy_share(seconds: float, pid: int | None = None) -> float:
    """Return how much a process does of what it could do, in percent, while we wait.

    On a crowded machine one that has very much to do uses as little of a core as one that idles: so the time for which
    its first thread, which runs the loop, stood in line for a core is taken off.
    """
    ran, stood, began = *_scheduled(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    ran_since, stood_since = (now - then for now, then in zip(_scheduled(pid), (ran, stood), strict=True))
    had = time.perf_counter() - began - stood_since
    return min(100.0, ran_since / max(had, 1e-3) * 100)


def _scheduled(pid: int | None) -> tuple[float, float]:
    """Return for how many seconds the first thread of a process ran, and for how many it stood in line."""
    ran, stood, _ = Path(f"/proc/{'self' if pid is None else pid}/schedstat").read_text().split()
    return int(ran) / 1e9, int(stood) / 1e9
