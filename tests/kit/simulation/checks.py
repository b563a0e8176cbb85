"""Checks that simulations share: of what the store holds at one moment, and of what was logged."""

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

DEFECTS = {"reconcile failed", "step failed", "step failed unexpectedly", "change not mapped to keys"}
"""Lines of the log that tell of an error nobody thought of."""

T = TypeVar("T")


def at_once(reading: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that waits for nothing: so nothing changes while it reads."""
    try:
        reading.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    reading.close()
    raise AssertionError("a read of the store waits for nothing")


def check_log(lines: Iterable[Mapping[str, Any]]) -> None:
    """The log tells of no error that nobody thought of."""
    defects = [line for line in lines if line["event"] in DEFECTS]
    assert not defects, defects
