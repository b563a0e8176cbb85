"""`remuda up` on many instances: until it is ready, until it has done what a start takes, and the memory of all of it.

The first start has no memory of what was settled, as after a change of the source; the others have that of the one
before. The monitor's rounds begin soon in the last one, so that what they take is in the memory; and before that is
read, lists of everything are asked for.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from bench.bed import Bed
from bench.compute.fleet import at_rest, prepared
from bench.cpu import of_process
from bench.loops import run
from bench.memory import peak_mib
from bench.region.process import Process, serving
from bench.report import Measure, at_most, figure
from bench.rounds import good_time
from bench.sockets import pieces

__all__ = ["measures"]

_LIMIT_S = 2.0
_LIMIT_IDLE_S = 5.0
_LIMIT_MIB = 500.0
_STARTS = 5
_RESTS = 3
_LISTS = ("/compute/api/v2/instances", "/region/api/v2/servers")
_LEAST_BYTES = 500
"""An item has more than this."""
_SOON = '[compute]\nmonitor_interval = "1s"\n'
_SELDOM_S = 80.0
"""After so long the round that comes once in 72 has begun, too."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Start it a few times, and look at the last one for longer."""
    directory = run(prepared(bed, bed.sizes.fleet))
    with serving(directory) as process:  # this start makes an administrator, and an organization
        first, _ = run(_begun(process))
    starts = [_started(directory) for _ in range(_STARTS)]
    rests = []
    for _ in range(_RESTS):
        with serving(directory) as process:
            starts.append((process.started_s, process.started_cpu_s))
            rests.append(run(_begun(process)))
    with serving(directory, settings=_SOON) as process:
        whole_mib = run(_worked(process, bed.sizes.fleet))
    title = f"remuda up with {bed.sizes.fleet:,} instances"
    taken, cpu_ready = (good_time(each) for each in zip(*starts, strict=True))
    yield at_most(1, f"{title}, until it is ready", taken, _LIMIT_S, "s")
    yield at_most(None, f"{title}, until it is ready, to {bed.sizes.networked:,}", cpu_ready, _few_cpu_s(bed), "s CPU")
    idle = good_time([cpu for cpu, _ in rests])
    yield at_most(1, f"{title}, from ready until it idles", idle, _LIMIT_IDLE_S, "s CPU")
    yield figure(f"{title}, from ready until it idles, without a memory", first, "s CPU")
    yield figure(f"{title}: memory after the start", max(mib for _, mib in rests), "MiB")
    yield at_most(
        1, f"{title}: memory after lists of everything and the monitor's rounds", whole_mib, _LIMIT_MIB, "MiB"
    )


def _few_cpu_s(bed: Bed) -> float:
    directory = run(prepared(bed, bed.sizes.networked))
    with serving(directory):
        pass
    return good_time([_started(directory)[1] for _ in range(_STARTS)])


def _started(directory: Path) -> tuple[float, float]:
    with serving(directory) as process:
        return process.started_s, process.started_cpu_s


async def _begun(process: Process) -> tuple[float, float]:
    """Return what a start took after it was ready, until nothing but the rounds is left: CPU, and memory."""
    await at_rest(process.pid)
    return of_process(process.pid) - process.started_cpu_s, peak_mib(process.pid)


async def _worked(process: Process, count: int) -> float:
    """Ask for everything, wait for the rounds, and return the memory that took."""
    began = time.perf_counter()
    for path in _LISTS:
        length = sum([len(piece) async for piece in pieces(process, path)])
        assert length > count * _LEAST_BYTES, "everything was listed"
    await asyncio.sleep(max(0.0, _SELDOM_S - (time.perf_counter() - began)))
    return peak_mib(process.pid)
