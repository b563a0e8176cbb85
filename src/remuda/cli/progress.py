"""Progress of an operation: wait until it is complete, and show its status meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from remuda.cli.output import echo_error, status_line
from remuda.cli.resources import state_of
from remuda.kernel.clock import SystemClock, duration_text
from remuda.kernel.errors import NotFound, TooMany, Unavailable, Unusable

ItemT = TypeVar("ItemT")

_FIRST_INTERVAL_S, _MAX_INTERVAL_S, _FACTOR = 0.1, 1.0, 1.3
"""Between two reads: short at first, because most operations are quick."""
_CLOCK = SystemClock()


async def sleep(seconds: float) -> None:
    await _CLOCK.sleep(seconds)


class OutOfTime(Unusable):
    """Raised when the operation is not complete after the time limit. It continues."""

    code = "wait_timed_out"
    exit_code = 124
    """As timeout(1) has it, so that scripts can tell this from a failure."""

    def __init__(self, limit_s: float, status: str, command: str) -> None:
        limit = duration_text(timedelta(seconds=limit_s))
        super().__init__(
            f"The operation is not complete after {limit} and continues ({status}): {command} shows its status, or "
            "wait longer with --timeout."
        )


class StatusUnknown(Unusable):
    """Raised when the server did not respond at the end of the time limit. The operation continues."""

    code = "wait_unreachable"
    exit_code = OutOfTime.exit_code

    def __init__(self, cause: str, command: str) -> None:
        super().__init__(f"{_continues(command)} {cause}")


def status_of(item: Any) -> str:
    """Return the status of a resource, with its message."""
    status, message = state_of(item.metadata)
    return f"{item.metadata.name} is {status}" + ("" if message in {"", "provisioned"} else f": {message}")


async def wait_until(
    read: Callable[[], Awaitable[ItemT]],
    is_complete: Callable[[ItemT], bool],
    has_failed: Callable[[ItemT], bool],
    *,
    limit_s: float,
    command: str,
    progress: Callable[[ItemT], str] = status_of,
    remedy: str = "show it for more",
) -> ItemT:
    """Wait until an item is complete and return it; raise if it failed or the time is up.

    A server that does not respond is asked again, because it may be starting. `command` shows the item's status.
    """
    with _reported_when_interrupted(command), status_line() as report:
        async for is_last in _polls(limit_s):
            try:
                item = await read()
            except (Unavailable, TooMany) as error:
                if is_last:
                    raise StatusUnknown(error.message, command) from None
                report(error.message)
                continue
            if is_complete(item):
                return item
            if has_failed(item):
                raise Unusable(f"{progress(item).rstrip('.')}: {remedy}.")
            if is_last:
                raise OutOfTime(limit_s, progress(item), command)
            report(progress(item))
    raise AssertionError("the last poll returns or raises")


async def wait_until_deleted(
    read: Callable[[], Awaitable[ItemT]],
    is_other: Callable[[ItemT], bool],
    *,
    limit_s: float,
    command: str,
    progress: Callable[[ItemT], str] = status_of,
) -> None:
    """Wait until an item does not exist, or another one has its id; raise if the time is up."""
    try:
        await wait_until(read, is_other, lambda _: False, limit_s=limit_s, command=command, progress=progress)
    except NotFound:
        return


async def _polls(limit_s: float) -> AsyncIterator[bool]:
    """Yield when it is time to read, and whether that is the last time."""
    interval_s = _FIRST_INTERVAL_S
    deadline = _CLOCK.monotonic() + limit_s
    while (now := _CLOCK.monotonic()) < deadline:
        yield False
        await sleep(min(interval_s, deadline - now))
        interval_s = min(interval_s * _FACTOR, _MAX_INTERVAL_S)
    yield True


def _continues(command: str) -> str:
    return f"The operation was requested and continues: {command} shows its status."


@contextmanager
def _reported_when_interrupted(command: str) -> Iterator[None]:
    """Say that the operation continues when the user stops waiting."""
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        echo_error(_continues(command))
        raise
