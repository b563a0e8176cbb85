"""Python, made fit for a process that runs a store."""

import gc
import sys

_SWITCH_INTERVAL_S = 0.0005


def prepare_interpreter() -> None:
    """Make Python fit for a process that runs a store; call it once, when everything is imported.

    A busy loop hands the interpreter over to the commit thread after Python's switch interval: at the default of 5 ms
    a commit waits several times as long as the disk needs. And what is loaded now lives as long as the process, so the
    garbage collector's full passes, which hold the loop, need not look at it.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
