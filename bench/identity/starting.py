"""The whole process, as a user starts it: how long until it says that it is ready, the first time and the next.

Beside it stands a Python that imports the same modules and does nothing. The first start makes an administrator, whose
password is hashed, and an organization with a project.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.bed import Bed
from bench.report import Measure, at_most
from bench.rounds import good_time

__all__ = ["measures"]

_LIMIT_S = 2.0
_IMPORTED = "import remuda.cli.app, remuda.cli.commands.up"


def measures(bed: Bed) -> Iterator[Measure]:
    """Start `remuda up` on an empty directory, and again on what it left."""
    first, again, imported = [], [], []
    for _ in range(bed.sizes.rounds):
        data = bed.fresh()
        first.append(_started_s(data))
        again.append(_started_s(data))
        imported.append(_imported_s())
    for title, taken in (("the first time", good_time(first)), ("the next time", good_time(again))):
        yield at_most(1, f"remuda up, until it is ready, {title}", taken, _LIMIT_S, "s")
        yield at_most(None, f"remuda up, {title}, to importing it", taken, good_time(imported), "s")


def _started_s(data: Path) -> float:
    program = str(Path(sys.executable).parent / "remuda")
    command = [program, "up", "--data", str(data), "--listen", "127.0.0.1:0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        is_ready = any(line.startswith("Remuda is ready") for line in process.stdout)
        taken = time.perf_counter() - began
        process.terminate()
    assert is_ready, "it ended before it was ready"
    return taken


def _imported_s() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", _IMPORTED], check=True)
    return time.perf_counter() - began
