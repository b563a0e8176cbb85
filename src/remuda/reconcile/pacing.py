"""When monitors work: only in the process that leads, and slowly enough that nobody notices."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.errors import RemudaError
from remuda.reconcile.leader import Leader

_STRIDE = 50
"""After so many things there is a pause, unless told otherwise. The first few after a pause cost two to three times as
much as those that follow, since processor and kernel have forgotten them meanwhile: so pauses are few and long."""
Work = Callable[[], Awaitable[None]]
"""The function that a leader-only loop calls."""


class Pace:
    """Holds back whoever goes through many things."""

    def __init__(self, clock: Clock, per_s: float, *, stride: int = _STRIDE) -> None:
        """Let so many pass in a second, on the average, and wait after each `stride` of them."""
        self._clock, self._stride, self._pause_s, self._count = clock, stride, stride / per_s, 0

    async def step(self) -> None:
        """Count one more thing, and wait a little after some; after each others get their turn on the loop."""
        self._count += 1
        if self._count % self._stride == 0:
            await self._clock.sleep(self._pause_s)
        else:
            await let_others_run()


async def every(period: timedelta, clock: Clock, work: Work, *, at_once: bool = False, **facts: str) -> None:
    """Do something for ever, now and then; a provider or store in trouble is told in the log, with these facts."""
    pause_s = 0.0 if at_once else period.total_seconds()
    while True:
        await clock.sleep(pause_s)
        pause_s = period.total_seconds()
        try:
            await work()
        except RemudaError as error:
            structlog.get_logger().warning("monitor could not look", error=error.code, **facts)


async def while_leading(leader: Leader, work: Work) -> None:
    """Do something, and begin it anew whenever this process has come to lead; end it at once when it does not."""
    while True:
        await leader.won()
        tasks = [asyncio.ensure_future(work()), asyncio.ensure_future(leader.lost())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
