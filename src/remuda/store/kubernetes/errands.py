"""Errands: what must still be done when a write is over, and could not be because the server did not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.errors import RemudaError, Unavailable

_FIRST_S, _LONGEST_S = 0.2, 30.0


@dataclass(frozen=True, eq=False)
class _Errand:
    what: str
    attempt: Callable[[], Awaitable[object]]


class Errands:
    """Tries each until it is answered, whatever the answer is."""

    def __init__(self, backoffs: RetryTimers) -> None:
        self._backoff = backoffs.new(first_s=_FIRST_S, longest_s=_LONGEST_S)
        self._pending: list[_Errand] = []
        self._news = asyncio.Event()

    def __len__(self) -> int:
        """Return how many are not done yet."""
        return len(self._pending)

    def add(self, what: str, attempt: Callable[[], Awaitable[object]]) -> None:
        """Have something tried again, soon and for as long as the server is unavailable."""
        self._pending.append(_Errand(what, attempt))
        self._news.set()

    async def run(self) -> None:
        while True:
            if not self._pending:
                self._backoff.reset()
                self._news.clear()
                await self._news.wait()
            await self._backoff.pause()
            for errand in list(self._pending):
                await self._try(errand)

    async def _try(self, errand: _Errand) -> None:
        try:
            await errand.attempt()
        except Unavailable as error:
            structlog.get_logger().warning("errand put off", what=errand.what, cause=error.sentence)
            return
        except RemudaError as error:
            structlog.get_logger().info("errand done", what=errand.what, outcome=error.sentence)
        except Exception:
            self._pending.remove(errand)
            raise
        self._pending.remove(errand)
