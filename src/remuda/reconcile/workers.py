"""Workers: take keys from a queue and have each looked after, whatever comes of it."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from remuda.kernel.clock import let_others_run
from remuda.reconcile.queue import Item, Queue

LookAfter = Callable[[str, Item], Awaitable[None]]
"""Works on one key and tells the queue when it has finished. It should contain every error."""

_AFTER_FAULT_S = 60.0


class Workers:
    """Some tasks that empty one queue."""

    def __init__(self, count: int, queue: Queue, look_after: LookAfter, *, name: str) -> None:
        self._queue = queue
        self._look_after = look_after
        self._tasks = [asyncio.create_task(self._work(), name=f"{name}-{number}") for number in range(count)]

    async def stop(self, *, grace_s: float) -> None:
        """Take nothing new, let what is under way end within the grace, and cancel what has not."""
        self._queue.close()
        if grace_s > 0:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        while (taken := await self._queue.take()) is not None:
            key, item = taken
            try:
                await self._look_after(key, item)
            except Exception:  # noqa: BLE001  a fault around a pass must end neither the worker nor its key
                structlog.get_logger().exception("worker failed", key=key)
                if self._queue.is_out(key):
                    self._queue.finish(key, again_s=_AFTER_FAULT_S, has_failed=True)
            # A pass that finds nothing to do waits for nothing, and there may be thousands of them.
            await let_others_run()
