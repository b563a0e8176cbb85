"""Processes that are killed at a chosen step of what they store."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tests.kit.processes.forked import start

_STEPS = {"execute", "executemany", "close", "fsync", "wal_checkpoint"}


@contextmanager
def killed_at(step: int) -> Iterator[None]:
    """Kill this process when the block takes its step of this number; at 0 print the number of its steps.

    A step is a call that writes to a database or a file, or replaces or removes one.
    """
    taken = 0

    def count(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal taken
        if event == "c_call" and (called.__name__ in _STEPS or called in (os.replace, os.unlink)):
            taken += 1
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    yield
    sys.setprofile(None)
    sys.stdout.write(f"{taken}\n")


def run_killed_at(step: int, code: str, path: Path) -> int:
    """Run code, with this path and step as its arguments, in a process of its own, and see that it is killed.

    At step 0 it runs to its end, and its steps are returned.
    """
    with start(code, str(path), str(step)) as process:
        out, error = process.communicate(60)
    if step:
        assert process.returncode == -signal.SIGKILL, (step, out, error)
        return 0
    assert process.returncode == 0, error
    return int(out.splitlines()[-1])
