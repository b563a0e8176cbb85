"""Waiting for something to become what was asked for, and saying meanwhile how far it is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from remuda.cli.client.transport import pause
from remuda.cli.output import note, status_line
from remuda.config.durations import duration_text
from remuda.kernel.errors import NotFound, TooMany, Unavailable, Unusable

Progress = Callable[[Any], str]
"""Says how far something is."""

_OLD = {"provisioned"}
"""What is still said of something that is already on its way elsewhere."""
_SHORTEST_S, _LONGEST_S, _SLOWER = 0.1, 1.0, 1.3
"""Between two looks: at first what is quick is seen at once, later nobody is asked more often than is of use."""


class OutOfTime(Unusable):
    """Raised when what was waited for takes longer than somebody wants to wait. It goes on all the same."""

    code = "wait_timed_out"
    exit_code = 124
    """The same that timeout(1) ends with, so that scripts can tell this from what has failed."""

    def __init__(self, limit_s: float, so_far: str, look: str) -> None:
        limit = duration_text(timedelta(seconds=limit_s))
        super().__init__(
            f"It is not done after {limit}, and goes on without being waited for ({so_far}): {look} says how far it "
            "is, or wait longer with --timeout."
        )


class OutOfSight(Unusable):
    """Raised when nobody has said how far it is by the time that somebody wants to wait. It goes on all the same."""

    code = "wait_unreachable"
    exit_code = OutOfTime.exit_code

    def __init__(self, trouble: str, look: str) -> None:
        super().__init__(f"{_left(look)} {trouble}")


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
    look: str,
    progress: Progress = status_of,
    remedy: str = "show it for more",
) -> Any:
    """Wait until something is done, and return it; raise if it has failed, or takes longer than that.

    A server that does not answer is asked again: it may be starting. `look` is the command that says how far it is.
    """
    with _said_if_interrupted(look), status_line() as tell:
        for is_last in _looks(limit_s):
            try:
                thing = read()
            except (Unavailable, TooMany) as trouble:
                if is_last:
                    raise OutOfSight(trouble.message, look) from None
                tell(trouble.message)
                continue
            if is_done(thing):
                return thing
            if has_failed(thing):
                raise Unusable(f"{progress(thing).rstrip('.')}: {remedy}.")
            if is_last:
                raise OutOfTime(limit_s, progress(thing), look)
            tell(progress(thing))
    raise AssertionError("the last look returns or raises")


def until_gone(
    read: Callable[[], Any],
    is_another: Callable[[Any], bool],
    *,
    limit_s: float,
    look: str,
    progress: Progress = status_of,
) -> None:
    """Wait until something is gone, or another is in its place; raise if that takes longer."""
    try:
        until(read, is_another, lambda _: False, limit_s=limit_s, look=look, progress=progress)
    except NotFound:
        return


def _looks(limit_s: float) -> Iterator[bool]:
    """Yield whenever it is time to look, and whether that is for the last time."""
    from remuda.kernel.clock import SystemClock  # noqa: PLC0415  who does not wait need not import asyncio

    clock, pause_s = SystemClock(), _SHORTEST_S
    end = clock.monotonic() + limit_s
    while (now := clock.monotonic()) < end:
        yield False
        pause(min(pause_s, end - now))
        pause_s = min(pause_s * _SLOWER, _LONGEST_S)
    yield True


def _left(look: str) -> str:
    return f"It was asked for, and goes on without being waited for: {look} says how far it is."


@contextmanager
def _said_if_interrupted(look: str) -> Iterator[None]:
    """Say that what was asked for goes on, where somebody stops waiting."""
    try:
        yield
    except KeyboardInterrupt:
        note(_left(look))
        raise
