"""Turns: who wants to change the same thing waits for the other, instead of colliding with it.

Only within this process, and only for the sake of speed and of callers who would have to try again: what holds between
processes is that writes compare versions.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class Turns:
    """A queue for each key that anybody asks for."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Have the key to oneself."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            yield
