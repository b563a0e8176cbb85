"""CPU time: of this process, of another, and of what does nothing."""

import asyncio
import os
import time

__all__ = ["idle_share", "of_process", "spent_us"]

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
