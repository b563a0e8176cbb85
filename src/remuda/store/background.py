"""Background tasks: the work that an open store, or a process, does until it is stopped.

A task that fails is logged and started again after a pause, so that an unexpected error does not end it unnoticed.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from remuda.kernel.clock import Clock

BackgroundTask = Callable[[], Coroutine[Any, Any, None]]
"""Starts a background task, which runs for ever or ends when it is done."""

_PAUSE_S = 1.0
_MAX_PAUSE_S = 30.0


class BackgroundTasks:
    """The background tasks of one store or process."""

    def __init__(self, clock: Clock) -> None:
        self.failing: dict[str, str] = {}
        """The tasks that wait for their restart, each with the error."""
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, task: BackgroundTask) -> None:
        """Start a task, and restart it whenever it fails."""
        self._tasks.append(asyncio.create_task(self._supervise(name, task), name=name))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _supervise(self, name: str, task: BackgroundTask) -> None:
        pause_s = _PAUSE_S
        while True:
            began = self._clock.monotonic()
            try:
                await task()
            except Exception as error:  # noqa: BLE001  no error ends the task
                self.failing[name] = str(error) or type(error).__name__
                structlog.get_logger().exception("background task failed", task=name)
            else:
                return
            if self._clock.monotonic() - began > _MAX_PAUSE_S:
                pause_s = _PAUSE_S
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            del self.failing[name]
