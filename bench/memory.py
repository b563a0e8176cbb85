"""How much memory a process takes."""

import os
from pathlib import Path

__all__ = ["peak_mib"]


def peak_mib(pid: int | None = None) -> float:
    """Return the largest resident size that a process had: this one, unless another is named.

    `ru_maxrss` would tell of its parent's too.
    """
    status = Path(f"/proc/{os.getpid() if pid is None else pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024
