"""Many callers at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["CALLERS", "by_callers"]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

CALLERS = 64
"""How many."""


async def by_callers(call: Callable[[ItemT], Awaitable[ResultT]], items: Iterable[ItemT]) -> list[ResultT]:
    """Have 64 callers go through these items, each taking the next when its last is answered."""
    waiting = iter(items)
    answered: list[ResultT] = []

    async def go() -> None:
        for each in waiting:
            answered.append(await call(each))  # noqa: PERF401  callers share the list

    await asyncio.gather(*(go() for _ in range(CALLERS)))
    return answered
