"""The recent changes of one kind, and those who wait for the next.

Watchers hold a cursor, not a queue: they read the shared tail, or the table when they fell behind it. So a thousand
watchers that never read cost nothing, and a slow one is only told Gone when compaction has passed it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic

import msgspec

from remuda.kernel.errors import Gone
from remuda.store.contract import Change
from remuda.store.objects import ResourceT
from remuda.store.readside.tables import ChangeCode


class Landed(msgspec.Struct, Generic[ResourceT], frozen=True, gc=False):
    """A change that is durable, as watchers need it."""

    name: str
    version: int
    code: ChangeCode
    event: Change[ResourceT]
    """What a watcher without a filter sees."""
    before: ResourceT | None
    """The state before, if the object is found otherwise since (`Kind.is_moved`): only then can it enter or leave
    a filter."""
    weight: int
    """Bytes of the document."""
    whole: bool = False
    """The document is known to hold nothing that our types do not know."""


class Feed:
    """The tail of one kind's history."""

    def __init__(self, kind: str, *, reached: int, floor: int, keep: int, keep_bytes: int) -> None:
        self.kind = kind
        self.reached = reached
        self.floor = floor
        self.ticks = 0
        self.closed: Exception | None = None
        """What readers are told once the store is closed."""
        self._keep, self._keep_bytes = keep, keep_bytes
        self._tail: list[Landed[Any]] = []
        self._tail_from = reached
        self._tail_bytes = 0
        self._last_change = reached
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._has_news = False
        self._readers_ahead = 0

    def extend(self, changes: Sequence[Landed[Any]]) -> None:
        """Add changes in the order of their versions. Of very many, the last `keep` are enough."""
        if len(changes) >= self._keep:
            self._tail, self._tail_from, self._tail_bytes = [], changes[0].version - 1, 0
        self._tail.extend(changes)
        self._tail_bytes += sum(change.weight for change in changes)
        self._has_news = True
        self._last_change = max(self._last_change, changes[-1].version) if changes else self._last_change
        if len(self._tail) > 2 * self._keep or self._tail_bytes > 2 * self._keep_bytes:
            self._trim()

    def _trim(self) -> None:
        """Let the oldest go. At twice the bound, so that it is rarely done."""
        drop = max(0, len(self._tail) - self._keep)
        self._tail_bytes -= sum(change.weight for change in self._tail[:drop])
        while drop < len(self._tail) and self._tail_bytes > self._keep_bytes:
            self._tail_bytes -= self._tail[drop].weight
            drop += 1
        if drop:
            self._tail_from = self._tail[drop - 1].version
            del self._tail[:drop]

    def close(self, reason: Exception) -> None:
        """End everybody's wait: nothing will happen any more."""
        self.closed = reason
        self._has_news = True
        self.advance(self.reached)

    def advance(self, version: int) -> None:
        """Everything up to this version has arrived: wake those who wait for it."""
        self.reached = max(self.reached, version)
        if not self._has_news and not self._readers_ahead:
            return
        self._has_news = False
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def tick(self) -> None:
        """Let idle watchers send a bookmark."""
        self.ticks += 1
        self._has_news = True
        self.advance(self.reached)

    def lose_history(self, version: int) -> None:
        """Changes up to this version were missed: whoever stands before it is told Gone."""
        self._tail.clear()
        self._tail_bytes = 0
        self._tail_from = self._last_change = self.floor = version
        self._has_news = True
        self.advance(self.reached)

    def forget(self, version: int) -> None:
        """History up to this version is compacted. Of a kind that was quiet, nothing is lost by that."""
        self.floor = max(self.floor, min(version, self._last_change))

    def after(self, cursor: int, *, limit: int) -> Sequence[Landed[Any]] | None:
        """Return the next changes after a version, or None if they reach further back than the tail."""
        if cursor < self._tail_from:
            return None
        start = len(self._tail)
        while start and self._tail[start - 1].version > cursor:
            start -= 1
        return self._tail[start : start + limit]

    async def wait(self) -> None:
        """Return when something may have happened."""
        if self.closed is not None:
            raise self.closed
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when a condition holds that only the arrival of versions can make true."""
        self._readers_ahead += 1
        try:
            while not condition():
                await self.wait()
        finally:
            self._readers_ahead -= 1

    async def reach(self, version: int, patience_s: float) -> None:
        """Return when everything up to `version` has arrived, or raise Gone when patience ends."""
        if self.reached >= version:
            return
        try:
            async with asyncio.timeout(patience_s):
                await self.until(lambda: self.reached >= version)
        except TimeoutError:
            raise Gone(self.kind, str(version)) from None
