"""Callers who ask at random, all at once, and the history of what they were told."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Hashable
from itertools import count
from typing import TypeVar

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, Unavailable
from remuda.kernel.randomness import Randomness
from tests.kit.proofs.crashing_store import CrashError
from tests.kit.proofs.linearizability.checker import UNKNOWN, Call, linearize
from tests.kit.proofs.linearizability.model import (
    GONE,
    OK,
    REFUSED,
    Allocate,
    Change,
    Confirm,
    Expire,
    LedgerModel,
    Op,
    Read,
    Release,
    SetLimit,
)
from tests.kit.proofs.linearizability.quota_clients import QuotaClient

T = TypeVar("T")

LOST = (AlreadyExists, Conflict, NotFound)
"""What a caller is told who fell asleep over what it asked: it may have been done, and rolled back since."""


class History:
    """Everything that was asked, with what came of it."""

    def __init__(self) -> None:
        self.calls: list[Call[Op]] = []
        self.outcomes: Counter[str] = Counter()
        self.half_released: dict[str, tuple[str, int]] = {}
        """What dead callers wanted to release, and nobody knows whether they did: for whom, and how much."""
        self._moments = count()

    def begin(self) -> int:
        """Return the present moment."""
        return next(self._moments)

    def end(self, op: Op, result: Hashable, began: int) -> None:
        """Note what came of a call."""
        self.outcomes[f"{type(op).__name__} {result if isinstance(result, str) else 'read'}"] += 1
        self.calls.append(Call(op, result, began, next(self._moments)))

    def lose(self, op: Op, began: int) -> None:
        """Note that nobody knows what came of a call."""
        self.outcomes[f"{type(op).__name__} unknown"] += 1
        self.calls.append(Call(op, UNKNOWN, began, None))
        if isinstance(op, Allocate):
            self.calls.append(Call(Expire(op.name), UNKNOWN, began, None))

    def check(self, limit: int) -> None:
        """Fail unless the ledger can have behaved like one."""
        assert linearize(self.calls, LedgerModel(limit)) is not None, "\n".join(map(str, self.calls))


class Caller:
    """Asks at random, one thing after the other, and stops when it is dead."""

    def __init__(
        self,
        name: str,
        quotas: QuotaClient,
        history: History,
        clock: Clock,
        randomness: Randomness,
        *,
        reads: bool = True,
    ) -> None:
        self.is_dead = False
        self.held: dict[str, tuple[str, int]] = {}
        """What it holds: the allocation, by its owner's and how much."""
        self.quotas = quotas
        self._name, self._history = name, history
        self._clock, self._draw, self._numbers = clock, randomness.randrange, count(1)
        self._reads = reads

    async def ask(self, times: int, *, pause_s: float) -> None:
        """Do something at random, so many times."""
        acts = [self._allocate, self._allocate, self._allocate, self._release, self._change, self._set_limit]
        acts += [self._read] if self._reads else []
        for _ in range(times):
            if self.is_dead:
                return
            await self._clock.sleep(pause_s * self._draw(100) / 100)
            await acts[self._draw(len(acts))]()

    async def _told(self, op: Op, lost: Op, asking: Awaitable[tuple[Hashable, T]]) -> T | None:
        """Ask, and note what came of it; `lost` is what to note if nobody knows."""
        began = self._history.begin()
        try:
            result, value = await asking
        except (CrashError, Unavailable):
            self.is_dead = True
            self._history.lose(lost, began)
        except LOST:
            self._history.lose(lost, began)
        else:
            self._history.end(op, result, began)
            return value
        return None

    async def _allocate(self) -> None:
        owner, amount = f"{self._name}-{next(self._numbers)}", 1 + self._draw(3)

        async def ask() -> tuple[Hashable, str | None]:
            allocation = await self.quotas.allocate(owner, amount)
            return OK if allocation else REFUSED, allocation

        if (allocation := await self._told(Allocate(amount), Allocate(amount, owner), ask())) is not None:
            self.held[allocation] = (owner, amount)

    async def confirm_all(self) -> None:
        """Say that everything is there that dead callers wanted to release, and hold from now on what is."""
        for allocation, (owner, amount) in sorted(self._history.half_released.items()):

            async def ask(allocation: str = allocation) -> tuple[Hashable, bool]:
                is_there = await self.quotas.confirm(allocation)
                return (OK if is_there else GONE), is_there

            if await self._told(Confirm(allocation), Confirm(allocation), ask()):
                self.held[allocation] = (owner, amount)
        self._history.half_released.clear()

    async def look(self) -> None:
        """Read the limit and what is used."""
        await self._read()

    async def _release(self) -> None:
        if not self.held:
            return
        allocation = sorted(self.held)[self._draw(len(self.held))]
        owner, amount = self.held.pop(allocation)
        self._history.half_released[allocation] = (owner, amount)

        async def ask() -> tuple[Hashable, None]:
            await self.quotas.release(allocation)
            del self._history.half_released[allocation]
            return OK, None

        await self._told(Release(amount), Release(amount, allocation), ask())

    async def _change(self) -> None:
        if not self.held:
            return
        allocation = sorted(self.held)[self._draw(len(self.held))]
        owner, amount = self.held.pop(allocation)
        wanted = self._draw(6)

        async def ask() -> tuple[Hashable, int]:
            is_done = await self.quotas.change(allocation, owner, wanted)
            return (OK, wanted) if is_done else (REFUSED, amount)

        op = Change(amount, wanted)
        if (held := await self._told(op, op, ask())) is not None:
            self.held[allocation] = (owner, held)

    async def _set_limit(self) -> None:
        limit = 4 + self._draw(8)

        async def ask() -> tuple[Hashable, None]:
            return OK if await self.quotas.set_limit(limit) else REFUSED, None

        await self._told(SetLimit(limit), SetLimit(limit), ask())

    async def _read(self) -> None:
        async def ask() -> tuple[Hashable, None]:
            return await self.quotas.read(), None

        await self._told(Read(), Read(), ask())


async def crowd(callers: list[Caller], times: int, *, pause_s: float = 0.05) -> None:
    """Let all of them ask at once."""
    await asyncio.gather(*[caller.ask(times, pause_s=pause_s) for caller in callers])
