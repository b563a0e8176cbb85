"""A process that falls asleep around one of its writes, or over what it has read, and wakes up when all is over.

What was read before a sleep is old after it, as what a cache tells that has not heard the news.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from remuda.kernel.clock import Clock
from remuda.store.contract import Store
from remuda.store.objects import Resource, ResourceT
from tests.kit.forwarding_store import Passing
from tests.kit.proofs.crashing_store import Moment

ResultT = TypeVar("ResultT")


class SleepyStore(Passing):
    """Sleeps around its nth write, and after its nth read of one object if that is wanted, counted from 1."""

    def __init__(self, inner: Store, clock: Clock, *, at: int, moment: Moment, for_s: float, at_read: int = 0) -> None:
        super().__init__(inner)
        self.writes, self.reads = 0, 0
        self.has_slept = False
        self._clock, self._for_s = clock, for_s
        self._at, self._moment, self._at_read = at, moment, at_read

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        found = await super().get(kind, name)
        self.reads += 1
        if self.reads == self._at_read:
            await self._sleep()
        return found

    async def around(self, verb: str, what: Resource | None, write: Callable[[], Awaitable[ResultT]]) -> ResultT:  # noqa: ARG002  as Passing has it
        self.writes += 1
        is_it = self.writes == self._at
        if is_it and self._moment == "before":
            await self._sleep()
        written = await write()
        if is_it and self._moment == "after":
            await self._sleep()
        return written

    async def _sleep(self) -> None:
        self.has_slept = True
        await self._clock.sleep(self._for_s)
