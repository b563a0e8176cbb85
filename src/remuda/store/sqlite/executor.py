"""Executor: runs blocking work off the event loop.

The store has two: one for COMMIT, which waits for the disk, and one for long work of low priority. They are ports: a
thread each in production, a seeded callback in simulation.
"""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

ResultT = TypeVar("ResultT")

BlockingCall = Callable[[], None]
"""A function that an executor runs."""

Done = Callable[[BaseException | None], None]
"""A callback on the event loop, with the error of the work, or None."""


class Executor(Protocol):
    """Runs work in the order it was submitted, and reports its end on the event loop."""

    def submit(self, work: BlockingCall, done: Done) -> None:
        """Run `work` off the event loop, then call `done` on it with the error, if any."""

    def close(self) -> None:
        """Finish the submitted work and stop."""


class ThreadExecutor:
    """One thread. With `idle` it has the lowest scheduling priority."""

    def __init__(self, name: str, *, idle: bool = False) -> None:
        self._queue: queue.SimpleQueue[tuple[BlockingCall, Done, asyncio.AbstractEventLoop] | None] = (
            queue.SimpleQueue()
        )
        self._idle = idle
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: BlockingCall, done: Done) -> None:
        self._queue.put((work, done, asyncio.get_running_loop()))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        if self._idle:
            with contextlib.suppress(OSError):  # only an optimization
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while (item := self._queue.get()) is not None:
            work, done, loop = item
            error: BaseException | None = None
            try:
                work()
            except BaseException as caught:  # noqa: BLE001  the caller on the event loop gets the error
                error = caught
            loop.call_soon_threadsafe(done, error)


async def run_in(executor: Executor, work: Callable[[], ResultT]) -> ResultT:
    finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    results: list[ResultT] = []

    def done(error: BaseException | None) -> None:
        if finished.cancelled():
            return
        if error is None:
            finished.set_result(None)
        else:
            finished.set_exception(error)

    executor.submit(lambda: results.append(work()), done)
    await finished
    return results[0]
