"""Time limit of the work for one request."""

import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from remuda.kernel.errors import TimedOut
from remuda.kernel.time_limits import TimeLimits

T = TypeVar("T")


async def run_with_timeout(limits: TimeLimits, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work, or cancel it and raise TimedOut. Only work that waits is limited."""
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what a coroutine returns
    limit = limits.begin()
    try:
        with limit:
            return await _resumed(work, waits_for)
    except TimeoutError:
        if limit.is_expired:
            raise TimedOut(limits.seconds) from None
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
