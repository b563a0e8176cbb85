"""Blocking of the event loop: the CPU time of the thread in each callback, and the lag of a heartbeat beside it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Held", "watched"]

_BEAT_S = 0.002


class Held:
    """The worst that was seen."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.lag_s = 0.0
        self.culprit = ""


@asynccontextmanager
async def watched() -> AsyncIterator[Held]:
    """Time every callback of every loop while the block runs."""
    held = Held()
    plain = asyncio.Handle._run  # noqa: SLF001  the one place all callbacks pass

    def timed(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        plain(handle)
        used = time.thread_time() - start
        if used > held.cpu_s:
            held.cpu_s, held.culprit = used, repr(handle)

    asyncio.Handle._run = timed  # type: ignore[assignment,method-assign]  # noqa: SLF001  same
    heart = asyncio.create_task(_beat(held))
    try:
        yield held
    finally:
        heart.cancel()
        asyncio.Handle._run = plain  # type: ignore[method-assign]  # noqa: SLF001  same


async def _beat(held: Held) -> None:
    while True:
        due = time.perf_counter() + _BEAT_S
        await asyncio.sleep(_BEAT_S)
        held.lag_s = max(held.lag_s, time.perf_counter() - due)
