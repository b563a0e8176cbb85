"""What a process that runs a store does to its interpreter before anything else; a benchmark does the same."""

import gc
import sys

__all__ = ["SWITCH_INTERVAL_S", "prepare"]

SWITCH_INTERVAL_S = 0.0005
"""How long a busy loop keeps the interpreter from the commit thread. Python's own 5 ms make a commit wait for many."""


def prepare() -> None:
    """Let threads take turns quickly, and keep all that is loaded now out of the garbage collector's full passes."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
