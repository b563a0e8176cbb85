"""Mutexes and running writes of one process."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
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


class RunningWrites:
    """The writes that run at a time, by key, so that another one can wait until those that run have ended.

    A write never waits, and one that begins later is not waited for.
    """

    def __init__(self) -> None:
        self._running: dict[str, set[asyncio.Future[None]]] = {}

    @contextmanager
    def add(self, key: str) -> Iterator[None]:
        """Count as a write of a key within this."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        running = self._running.setdefault(key, set())
        running.add(ended)
        try:
            yield
        finally:
            running.discard(ended)
            ended.set_result(None)
            if not running:
                self._running.pop(key, None)

    async def wait(self, key: str) -> None:
        """Wait until the writes of a key that run now have ended."""
        if running := self._running.get(key):
            await asyncio.wait([*running])
