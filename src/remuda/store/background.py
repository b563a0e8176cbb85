"""Duties: what a store does in the background, for as long as it is open.

A duty that fails is told in the log and begun again after a pause, so that no error nobody thought of ends it unseen.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from remuda.kernel.clock import Clock

Duty = Callable[[], Coroutine[Any, Any, None]]
"""Begins a piece of background work, which goes on for ever or ends when it is done."""

_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0


class Duties:
    """The background work of one open store."""

    def __init__(self, clock: Clock) -> None:
        self.failing: dict[str, str] = {}
        """The duties that wait to be begun again, and why."""
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, duty: Duty) -> None:
        """Begin a duty, and again whenever it fails."""
        self._tasks.append(asyncio.create_task(self._keep(name, duty), name=name))

    async def stop(self) -> None:
        """End them all."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _keep(self, name: str, duty: Duty) -> None:
        pause_s = _PAUSE_S
        while True:
            began = self._clock.monotonic()
            try:
                await duty()
            except Exception as error:  # noqa: BLE001  whatever it was, the duty goes on
                self.failing[name] = str(error) or type(error).__name__
                structlog.get_logger().exception("duty failed", duty=name)
            else:
                return
            if self._clock.monotonic() - began > _LONGEST_PAUSE_S:
                pause_s = _PAUSE_S
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            del self.failing[name]
