"""Waiting for something to become what was asked for, and saying meanwhile how far it is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from remuda.cli.asking.pausing import pause
from remuda.cli.output import is_terminal, note
from remuda.config.durations import duration_text
from remuda.kernel.errors import NotFound, Unusable

__all__ = ["OutOfTime", "Progress", "status_of", "until", "until_gone"]

Progress = Callable[[Any], str]
"""Says how far something is."""

_OLD = {"provisioned"}
"""What is still said of something that is already on its way elsewhere."""
_SHORTEST_S, _LONGEST_S, _SLOWER = 0.1, 1.0, 1.3
"""Between two looks: at first what is quick is seen at once, later nobody is asked more often than is of use."""


class OutOfTime(Unusable):
    """Raised when what was waited for takes longer than somebody wants to wait. It goes on all the same."""

    code = "out_of_time"
    exit_code = 124
    """The same that timeout(1) ends with, so that scripts can tell this from what has failed."""

    def __init__(self, limit_s: float, so_far: str) -> None:
        limit = duration_text(timedelta(seconds=limit_s))
        super().__init__(
            f"It is not done after {limit}, and goes on without being waited for ({so_far}): show it to see how far it "
            "is, or wait longer with --timeout."
        )


def status_of(thing: Any) -> str:
    """Say how far something is, in the words of the API."""
    metadata = thing["metadata"]
    status = metadata["provisioningStatus"]
    message = (metadata.get("provisioningStatusDetail") or {}).get("message", "")
    return f"{metadata['name']} is {status}" + ("" if message in {"", status, *_OLD} else f": {message}")


def until(
    read: Callable[[], Any],
    is_done: Callable[[Any], bool],
    has_failed: Callable[[Any], bool],
    *,
    limit_s: float,
    progress: Progress = status_of,
    remedy: str = "show it for more",
) -> Any:
    """Wait until something is done, and return it; raise if it has failed, or takes longer than that."""
    with _told() as tell:
        for thing in _looks(read, limit_s, progress):
            if is_done(thing):
                return thing
            if has_failed(thing):
                raise Unusable(f"{progress(thing).rstrip('.')}: {remedy}.")
            tell(progress(thing))
    raise AssertionError("looking ends by raising")


def until_gone(read: Callable[[], Any], *, limit_s: float) -> None:
    """Wait until something is gone; raise if that takes longer."""
    try:
        until(read, lambda _: False, lambda _: False, limit_s=limit_s)
    except NotFound:
        return


def _looks(read: Callable[[], Any], limit_s: float, progress: Progress) -> Iterator[Any]:
    from remuda.kernel.clock import SystemClock  # noqa: PLC0415  who does not wait need not import asyncio

    clock, pause_s = SystemClock(), _SHORTEST_S
    end = clock.monotonic() + limit_s
    while True:
        yield (thing := read())
        if clock.monotonic() > end:
            raise OutOfTime(limit_s, progress(thing))
        pause(pause_s)
        pause_s = min(pause_s * _SLOWER, _LONGEST_S)


@contextmanager
def _told() -> Iterator[Callable[[str], None]]:
    """Give what shows a line: one that changes in place where somebody watches, else each that is new."""
    if is_terminal(sys.stderr):
        from rich.console import Console  # noqa: PLC0415  only needed where somebody watches
        from rich.text import Text  # noqa: PLC0415  same

        with Console(stderr=True).status("") as status:
            yield lambda line: status.update(Text(f"{line} …"))  # as it is: brackets in it mean nothing
        return
    last = ""

    def tell(line: str) -> None:
        nonlocal last
        if line != last:
            note(line)
            last = line

    yield tell
