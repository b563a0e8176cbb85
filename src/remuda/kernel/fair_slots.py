"""Slots of a scarce resource, shared fairly between those who compete for it."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager


class Displaced(Exception):  # noqa: N818  the name states what happened
    """Raised for a use that no longer waits, because another one has its place (`displace`)."""


class FairSlots:
    """Slots for `count` concurrent uses; each key has at most its share of them.

    A free slot goes to each of the waiting keys in order, to one use of each. The last `reserved` slots are for keys
    that have none, so that a few keys together cannot have all.
    """

    def __init__(self, count: int, *, share: int, reserved: int = 0) -> None:
        self._free, self._share, self._reserved = count, share, reserved
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[bool]]] = {}
        """By key, the one that has waited longest first. The result is whether it has a slot."""

    @property
    def waiting(self) -> int:
        """Number of uses that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    @property
    def keys(self) -> Collection[str]:
        """Keys that wait for a slot."""
        return self._waiting.keys()

    @property
    def is_idle(self) -> bool:
        """Whether no slot is used or waited for."""
        return not self._running and not self._waiting

    def is_contended(self, key: str) -> bool:
        """Return whether the slots of a key keep another one waiting."""
        return not self._free and any(each != key and self._has_share(each) for each in self._waiting)

    @asynccontextmanager
    async def acquire(self, key: str, *, deadline: float | None = None) -> AsyncIterator[None]:
        """Wait for a slot, and keep it for the block.

        Raise Displaced if another use has taken the place, and TimeoutError at the deadline, a time of the loop.
        """
        async with asyncio.timeout_at(deadline):
            await self.take(key)
        try:
            yield
        finally:
            self.release(key)

    async def take(self, key: str) -> None:
        """Wait for a slot, for a use that ends elsewhere with `release`. Raise Displaced as `acquire` does."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(waiter)
        self._grant()
        try:
            has_slot = await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._forget(key, waiter)
            elif waiter.result():
                self.release(key)
            raise
        if not has_slot:
            raise Displaced

    def release(self, key: str) -> None:
        """Free a slot that was taken."""
        self._free += 1
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._grant()

    def displace(self, key: str) -> bool:
        """Let another use take the place of the newest one of the key with most that wait.

        Return False, and change nothing, if no key would then still have as many as this one.
        """
        most = max(self._waiting, key=lambda each: len(self._waiting[each]), default=key)
        if len(self._waiting.get(most, ())) <= len(self._waiting.get(key, ())) + 1:
            return False
        self.displace_from(most)
        return True

    def displace_from(self, key: str) -> None:
        """Let another use take the place of the newest one of a key that waits."""
        newest = self._waiting[key][-1]
        self._forget(key, newest)
        if not newest.cancelled():
            newest.set_result(False)

    def _has_share(self, key: str) -> bool:
        return self._running[key] < self._share

    def _may_have_next(self, key: str) -> bool:
        return not self._running[key] or (self._has_share(key) and self._free > self._reserved)

    def _grant(self) -> None:
        """Give the free slots to the keys that wait and have less than their share."""
        while self._free:
            key = next(filter(self._may_have_next, self._waiting), None)
            if key is None:
                return
            waiters = self._waiting.pop(key)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[key] = waiters  # behind the others
            if waiter.cancelled():
                continue
            waiter.set_result(True)
            self._free -= 1
            self._running[key] += 1

    def _forget(self, key: str, waiter: asyncio.Future[bool]) -> None:
        waiters = self._waiting.get(key, deque())
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._waiting.pop(key, None)
