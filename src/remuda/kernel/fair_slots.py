"""Slots of a scarce resource, shared fairly between those who compete for it."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """Slots for `count` concurrent uses; each key has at most its share of them.

    A free slot goes to each of the waiting keys in order, to one use of each.
    """

    def __init__(self, count: int, *, share: int) -> None:
        self._free, self._share = count, share
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By key, the one that has waited longest first."""

    @property
    def waiting(self) -> int:
        """Number of uses that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    @property
    def is_idle(self) -> bool:
        """Whether no slot is used or waited for."""
        return not self._running and not self._waiting

    def is_contended(self, key: str) -> bool:
        """Return whether the slots of a key keep another one waiting."""
        return not self._free and any(each != key and self._has_share(each) for each in self._waiting)

    @asynccontextmanager
    async def acquire(self, key: str) -> AsyncIterator[None]:
        """Wait for a slot, and keep it for the block."""
        await self.take(key)
        try:
            yield
        finally:
            self.release(key)

    async def take(self, key: str) -> None:
        """Wait for a slot, for a use that ends elsewhere: it ends with `release`. If cancelled, no slot is taken."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(waiter)
        self._grant()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.release(key)
            else:
                self._forget(key, waiter)
            raise

    def release(self, key: str) -> None:
        """Free a slot that was taken."""
        self._free += 1
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._grant()

    def _has_share(self, key: str) -> bool:
        return self._running[key] < self._share

    def _grant(self) -> None:
        """Give the free slots to the keys that wait and have less than their share."""
        while self._free:
            key = next(filter(self._has_share, self._waiting), None)
            if key is None:
                return
            waiters = self._waiting.pop(key)
            waiters.popleft().set_result(None)
            if waiters:
                self._waiting[key] = waiters  # behind the others
            self._free -= 1
            self._running[key] += 1

    def _forget(self, key: str, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting[key]
        waiters.remove(waiter)
        if not waiters:
            del self._waiting[key]
