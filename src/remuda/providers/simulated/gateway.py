"""Where every call to the cloud arrives: it takes its time, and may go wrong.

What the cloud was told to do it does, even if whoever told it gives up: an effect is a task of its own. A cloud that
answers at once and never fails needs none of that, and has none of its cost: what it is asked for in one turn of the
loop is one commit.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import Subject
from remuda.providers.simulated.database import Storage
from remuda.providers.simulated.disk import Disk
from remuda.providers.simulated.faults import Calm, CloudFailed, Fault, FaultBounds, Faults, RateLimited
from remuda.providers.simulated.latency import Latency
from remuda.providers.simulated.past import Past
from remuda.providers.simulated.timers import Clockwork
from remuda.providers.simulated.together import Together

T = TypeVar("T")
Page = tuple[Sequence[T], Any]

PART = 500
"""So many rows are in a part of a list."""


@dataclass(slots=True, kw_only=True)
class Desk:
    """Takes calls."""

    clock: Clock
    randomness: Randomness
    storage: Storage
    clockwork: Clockwork
    latency: Latency
    faults: Faults
    bounds: FaultBounds
    past: Past
    disk: Disk | None = None
    """Where an answer has to be before it leaves; None if it need not."""
    _under_way: dict[asyncio.Task[Any], None] = field(default_factory=dict, init=False)  # in order
    _is_calm: bool = field(init=False)
    _is_quick: bool = field(init=False)
    _together: Together = field(init=False)

    def __post_init__(self) -> None:
        self._is_calm = isinstance(self.faults, Calm)
        self._is_quick = self._is_calm and self.latency.is_zero and self.disk is None
        self._together = Together(self.clockwork, self.storage, is_told=self._is_told)
        if not self._is_calm:
            self.storage.before_change = self.past.remember

    @property
    def lag_s(self) -> float:
        """How old a read can be."""
        return 0.0 if self._is_calm else self.bounds.stale_s

    @property
    def is_busy(self) -> bool:
        """Something that the cloud was told to do has not ended."""
        return bool(self._under_way) or self._together.is_busy

    async def change(self, verb: str, effect: Callable[[], T]) -> T:
        """Have an effect, whole or not at all."""
        if self._is_quick:
            return await self._together.have(effect)
        task = asyncio.create_task(self._work(verb, effect), name=f"cloud {verb}")
        self._under_way[task] = None
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def made(self, subject: Subject, handle: Handle) -> None:
        """Take note, inside an effect, that it makes something new."""
        if not self._is_calm and self._fires("not_found_yet", subject):
            self.past.hide(subject, handle)

    async def look(self, verb: str, read: Callable[[], T]) -> T:
        """Read what is never stale."""
        await self._begin(verb)
        self.clockwork.settle()
        return read()

    async def find(self, verb: str, subject: Subject, handle: Handle, read: Callable[[Handle], T | None]) -> T | None:
        await self._begin(verb)
        self.clockwork.settle()
        found = read(handle)
        if self._is_calm:
            return found
        return self.past.seen(subject, handle, found, is_stale=self._fires("stale", verb))  # type: ignore[no-any-return]  # it is what the reader reads

    async def parts(
        self,
        verb: str,
        subject: Subject,
        page: Callable[[Any], Page[T]],
        handle_of: Callable[[T], Handle],
        show: Callable[[Any], T] = lambda thing: thing,
    ) -> AsyncIterator[Sequence[T]]:
        """Yield all things of a sort as `page` reads them behind a mark: the things, and the next mark or None.

        `show` makes of what a read of one thing returns what stands in the list.
        """
        is_stale = self._fires("stale", verb)
        mark = None
        while True:
            await self._begin(verb)
            self.clockwork.settle()
            things, mark = page(mark)
            if not self._is_calm:
                present: dict[Handle, Any] = {handle_of(thing): thing for thing in things}
                if is_stale and mark is None:
                    present.update(dict.fromkeys(self.past.gone(subject)))
                things = [show(thing) for thing in self.past.rows(subject, present, is_stale=is_stale)]
                things += things[:1] if self._fires("doubled_rows", verb) else []
            yield things
            if mark is None:
                return
            await let_others_run()

    async def close(self) -> None:
        """Stop working: what has not been done will not be."""
        left = list(self._under_way)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    def _do(self, effect: Callable[[], T]) -> T:
        self.clockwork.settle()
        return self.storage.write(effect, is_told=self._is_told)

    def _is_told(self, answer: object) -> bool:
        """Tell whether a change is told beside its answer: not if that shows the thing, and is sure to come."""
        return answer is None or not self._is_calm

    async def _work(self, verb: str, effect: Callable[[], T]) -> T:
        await self._begin(verb)
        answer = self._do(effect)
        if self.disk is not None:
            await self.disk.reached()
        if self._fires("error_done", verb):
            raise CloudFailed
        if self._fires("timeout_done", verb):
            await self.clock.sleep(self.bounds.lost_answer_s)
        return answer

    async def _begin(self, verb: str) -> None:
        if self._is_quick:
            return
        pause_s = self.latency.of(verb, self.randomness)
        if self._fires("slow", verb):
            pause_s += self.randomness.uniform(0, self.bounds.slow_s)
        if pause_s > 0:
            await self.clock.sleep(pause_s)
        if self._fires("rate_limited", verb):
            raise RateLimited
        if self._fires("error", verb):
            raise CloudFailed

    def _fires(self, fault: Fault, verb: str) -> bool:
        if self._is_calm:
            return False
        return any([self.faults.fires(f"cloud.{fault}"), self.faults.fires(f"cloud.{fault}.{verb}")])

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.pop(task, None)
        if not task.cancelled():
            task.exception()  # told to whoever still waits; nobody else needs to hear of it
