"""The one place where things are put together."""

import gc
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from remuda.http.edge.health import PROCESS
from remuda.http.routes import Table
from remuda.store.kinds import Registry

__all__ = ["Published", "prepare_interpreter", "registry", "tables"]

_SWITCH_INTERVAL_S = 0.0005


@dataclass(frozen=True, slots=True)
class Published:
    """A table, and where one process mounts it."""

    prefix: str
    """Such as `/compute`; empty for what has all the room."""
    table: Table


def prepare_interpreter() -> None:
    """Make Python fit for a process that runs a store; call it once, when everything is imported.

    A busy loop hands the interpreter over to the commit thread after Python's switch interval: at the default of 5 ms
    a commit waits several times as long as the disk needs. And what is loaded now lives as long as the process, so the
    garbage collector's full passes, which hold the loop, need not look at it.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()


def registry() -> Registry:
    """Return every kind of every service. A service adds its kinds here when it comes."""
    return Registry([])


def tables() -> Mapping[str, Published]:
    """Return the routes of the process and of every service, by name. A service adds its table here when it comes."""
    return {PROCESS.service: Published("", PROCESS)}
