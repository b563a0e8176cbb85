"""A service on a loop and in a thread of its own, as long as a block runs."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import uvloop

TIMEOUT_S = 30
T = TypeVar("T")
Serve = Callable[[Future[T], asyncio.Event], Coroutine[Any, Any, None]]
"""Serves until the event is set; when it is ready, it says what is there."""


@contextmanager
def in_a_thread(serve: Serve[T]) -> Iterator[T]:
    """Run it while the block runs."""
    ready: Future[T] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(target=_run, args=(serve, ready, begun), name="service")
    thread.start()
    try:
        yield ready.result(TIMEOUT_S)
    finally:
        loop, stop = begun.result(TIMEOUT_S)
        with suppress(RuntimeError):  # the loop is closed: it has ended by itself
            loop.call_soon_threadsafe(stop.set)
        thread.join(TIMEOUT_S)


def _run(serve: Serve[T], ready: Future[T], begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    async def run() -> None:
        stop = asyncio.Event()
        begun.set_result((asyncio.get_running_loop(), stop))
        await serve(ready, stop)

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)
