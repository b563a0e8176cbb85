"""Listings, part by part: each part is a call of its own, so none holds a slot while its reader thinks."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from remuda.providers.calls import Calls

ItemT = TypeVar("ItemT")

EVERYTHING = "everything"
"""The key of reads that are about nothing in particular."""


async def listed(
    calls: Calls, verb: str, begin: Callable[[], AsyncIterator[Sequence[ItemT]]]
) -> AsyncGenerator[Sequence[ItemT], None]:
    """Yield the parts of a listing. Raises as soon as one is missing; the next listing begins anew."""
    parts = begin()

    async def first() -> Sequence[ItemT] | None:
        nonlocal parts
        parts = begin()
        return await anext(parts, None)

    async def following() -> Sequence[ItemT] | None:
        return await anext(parts, None)

    try:
        part = await calls.call(EVERYTHING, verb, first, safe=True)
        while part is not None:
            yield part
            part = await calls.call(EVERYTHING, verb, following, safe=True, once=True)
    finally:
        await _close(parts)


async def _close(parts: AsyncIterator[Sequence[ItemT]]) -> None:
    if isinstance(parts, AsyncGenerator):
        with suppress(RuntimeError):  # a part that came too late is still on its way, and ends by itself
            await parts.aclose()
