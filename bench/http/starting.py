"""The whole process, as a user starts it: how long until it says that it is ready, the first time and the next."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.bed import Bed
from bench.report import Measure, at_most
from bench.rounds import good_time

__all__ = ["measures"]

_LIMIT_S = 1.0


def measures(bed: Bed) -> Iterator[Measure]:
    """Start `remuda up` on an empty directory, and again on what it left."""
    first, again = [], []
    for _ in range(bed.sizes.rounds):
        data = bed.fresh()
        first.append(_started_s(data))
        again.append(_started_s(data))
    yield at_most(1, "remuda up, until it is ready, the first time", good_time(first), _LIMIT_S, "s")
    yield at_most(1, "remuda up, until it is ready, the next time", good_time(again), _LIMIT_S, "s")


def _started_s(data: Path) -> float:
    program = str(Path(sys.executable).parent / "remuda")
    command = [program, "up", "--data", str(data), "--listen", "127.0.0.1:0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        taken = time.perf_counter() - began
        process.terminate()
    assert told.startswith("Remuda is ready"), told
    return taken
