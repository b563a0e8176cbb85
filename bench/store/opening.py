"""Opening a large file in a new process: the time to the first get, and the memory that took."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.bed import FULL, Bed
from bench.kinds import Machine, name_of
from bench.memory import peak_mib
from bench.report import Measure, at_most

__all__ = ["measures"]

_LIMIT_S = 1.0
_LIMIT_MIB = 200.0
_TIMES = 3


class Opened(msgspec.Struct):
    """What the new process saw."""

    seconds: float
    peak_mib: float


def measures(bed: Bed) -> Iterator[Measure]:
    """Open the large file a few times."""
    path = bed.filled(bed.sizes.many)
    command = [sys.executable, "-m", "bench.store.opening", str(path)]
    outputs = [subprocess.run(command, check=True, capture_output=True).stdout for _ in range(_TIMES)]
    opened = [msgspec.json.decode(output, type=Opened) for output in outputs]
    title = f"opening {bed.sizes.many:,} objects"
    yield at_most(1, f"{title} until the first get", statistics.median(each.seconds for each in opened), _LIMIT_S, "s")
    yield at_most(1, f"{title}: peak memory", max(each.peak_mib for each in opened), _LIMIT_MIB, "MiB")


async def _open(path: Path) -> Opened:
    start = time.perf_counter()
    store = Bed(path.parent, FULL).open(path)
    await store.get(Machine, name_of(0))
    seconds = time.perf_counter() - start
    await store.close()
    return Opened(seconds, peak_mib())


if __name__ == "__main__":
    import asyncio

    print(msgspec.json.encode(asyncio.run(_open(Path(sys.argv[1])))).decode())
