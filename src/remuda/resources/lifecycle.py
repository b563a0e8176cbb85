"""What all kinds with a controller have in common."""

from collections.abc import Iterator
from typing import Annotated

from remuda.kernel.conditions import Condition
from remuda.store.kinds import keyed
from remuda.store.objects import StoredStruct

IN_CARE = "unikorn"
"""The finalizer of every controller of ours: it still has work to do. (Existing clusters chose the name, and take every
other one for a reference.)"""

Conditions = Annotated[tuple[Condition, ...], keyed("type")]
"""Statements about an object, one of each type."""


class LifecycleStatus(StoredStruct, frozen=True):
    """What every controller says about its objects."""

    conditions: Conditions = ()
    observed_generation: int = 0


def given(*values: str) -> Iterator[str]:
    """Yield the values that are not empty: what is not said is not found by it."""
    return (value for value in values if value)
