"""Lanes: where work runs that must not hold the loop.

The store needs two: one for COMMIT, which waits for the disk, and one for long work of low urgency. They are ports: a
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

Work = Callable[[], None]
"""What a lane runs."""

Done = Callable[[BaseException | None], None]
"""What the loop is told at its end: the error it ended with, or None."""


class Lane(Protocol):
    """Runs work in the order it was submitted, and tells the loop when it is done."""

    def submit(self, work: Work, done: Done) -> None:
        """Run `work` off the loop, then call `done` on the loop with its error, if any."""
        ...

    def close(self) -> None:
        """Finish what was submitted and stop."""
        ...


class ThreadLane:
    """One thread. With `idle`, the kernel gives it only the time nobody else wants."""

    def __init__(self, name: str, *, idle: bool = False) -> None:
        self._queue: queue.SimpleQueue[tuple[Work, Done, asyncio.AbstractEventLoop] | None] = queue.SimpleQueue()
        self._idle = idle
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, done: Done) -> None:
        self._queue.put((work, done, asyncio.get_running_loop()))

    def close(self) -> None:
        """Finish what was submitted and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        if self._idle:
            with contextlib.suppress(OSError):  # a courtesy: without it the work is only less polite
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while (item := self._queue.get()) is not None:
            work, done, loop = item
            error: BaseException | None = None
            try:
                work()
            except BaseException as caught:  # noqa: BLE001  whatever it was belongs to the caller on the loop
                error = caught
            loop.call_soon_threadsafe(done, error)


async def run_in(lane: Lane, work: Callable[[], ResultT]) -> ResultT:
    """Run `work` in a lane and return what it returned."""
    finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    results: list[ResultT] = []

    def done(error: BaseException | None) -> None:
        if finished.cancelled():
            return
        if error is None:
            finished.set_result(None)
        else:
            finished.set_exception(error)

    lane.submit(lambda: results.append(work()), done)
    await finished
    return results[0]
