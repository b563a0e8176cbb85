"""Time limit of the work for one request."""

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from remuda.kernel.errors import TimedOut

T = TypeVar("T")


async def run_with_timeout(limit_s: float, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work, or cancel it and raise TimedOut. Only work that waits costs a timer."""
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
    while True:
        thrown: BaseException | None = None
        sent = None
        try:
            sent = yield waits_for
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # noqa: BLE001  the work handles it
            thrown = error
        try:
            waits_for = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # same
