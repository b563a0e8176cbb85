"""A time limit that costs nothing while nobody waits.

A timer per request is a tenth of what a read costs, and most reads never wait: they end where they begin. So a
coroutine is begun without a timer, and gets one only when it waits for something.
"""

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from remuda.kernel.errors import TimedOut

T = TypeVar("T")


async def within(limit_s: float, work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns, or cancel it and raise TimedOut."""
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what a coroutine returns
    timeout = asyncio.timeout(limit_s)
    try:
        async with timeout:
            return await _resumed(work, waits_for)
    except TimeoutError:
        if timeout.expired():
            raise TimedOut(limit_s) from None
        raise


@types.coroutine
def _resumed(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Go on with a coroutine that was begun, and that waits for something."""
    while True:
        thrown: BaseException | None = None
        sent = None
        try:
            sent = yield waits_for
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # noqa: BLE001  it is the work's to handle
            thrown = error
        try:
            waits_for = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # same
