"""`remuda up` on many instances: until it is ready, until it has done what a start takes, and the memory of all of it.

The monitor's rounds begin soon, so that what they take is in the memory; and before that is read, lists of everything
are asked for, and instances are made.
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
_LIMIT_MIB = 500.0
_STARTS = 5
_LISTS = ("/compute/api/v2/instances", "/region/api/v2/servers")
_LEAST_BYTES = 500
"""An item has more than this."""
_SOON = '[compute]\nmonitor_interval = "1s"\n'
_SELDOM_S = 80.0
"""After so long the round that comes once in 72 has begun, too."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Start it a few times, and look at the last one for longer."""
    directory = run(prepared(bed, bed.sizes.fleet))
    with serving(directory):
        pass  # the first start makes an administrator, and an organization
    starts = [_started(directory) for _ in range(_STARTS)]
    with serving(directory, settings=_SOON) as process:
        starts.append((process.started_s, process.started_cpu_s))
        cpu, start_mib = run(_begun(process))
        whole_mib = run(_worked(process, bed.sizes.fleet))
    title = f"remuda up with {bed.sizes.fleet:,} instances"
    taken, cpu_ready = (good_time(each) for each in zip(*starts, strict=True))
    yield at_most(1, f"{title}, until it is ready", taken, _LIMIT_S, "s")
    yield at_most(None, f"{title}, until it is ready, to {bed.sizes.networked:,}", cpu_ready, _few_cpu_s(bed), "s CPU")
    yield figure(f"{title}: a start, until it idles", cpu, "s CPU")
    yield figure(f"{title}: memory after the start", start_mib, "MiB")
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
    """Return what a start took until nothing but the rounds is left to do: CPU, and memory."""
    await at_rest(process.pid)
    return of_process(process.pid), peak_mib(process.pid)


async def _worked(process: Process, count: int) -> float:
    """Ask for everything, wait for the rounds, and return the memory that took."""
    began = time.perf_counter()
    for path in _LISTS:
        length = sum([len(piece) async for piece in pieces(process, path)])
        assert length > count * _LEAST_BYTES, "everything was listed"
    await asyncio.sleep(max(0.0, _SELDOM_S - (time.perf_counter() - began)))
    return peak_mib(process.pid)
