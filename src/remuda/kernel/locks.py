"""Mutexes of one process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class KeyedLock:
    """A mutex per key: concurrent updates of one object wait instead of conflicting.

    It works only within this process, and only saves retries: between processes, writes compare versions.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def acquire(self, key: str) -> AsyncIterator[None]:
        """Hold the lock of a key."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            yield
