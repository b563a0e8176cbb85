"""Reads of many objects or records: pages, logs, and lists that are not in the cache.

Each takes milliseconds of the event loop and up to some megabytes, so only a few run at a time. The others wait without
memory of their own. Organizations take turns: one has two slots at most, and the last half of them is for organizations
that have none. What a read looked at counts against the rate limit of the caller, as further requests.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from remuda.access.principal import Principal
from remuda.kernel.fair_slots import FairSlots

ResponseT = TypeVar("ResponseT")

_CONCURRENT, _SHARE, _RESERVED = 8, 2, 4
OBJECTS_PER_REQUEST = 50
"""Number of objects or records that count as one request; the first ones are included in the request itself."""
ITEM_BYTES = 1 << 10
"""Memory of an item of a page, before its size is known."""
_FEW_ITEMS = 32
"""Items for which memory is taken before a list whose length is not known is read."""


def page_slots() -> FairSlots:
    """Return the slots of a process for reads of many objects."""
    return FairSlots(_CONCURRENT, share=_SHARE, reserved=_RESERVED)


def reader_key(principal: Principal) -> str:
    """Return the key under which a caller takes turns: its organization, all of them if it is not known which, or it.

    A caller cannot choose it: neither with another organization in the path, nor with another account.
    """
    if principal.organization is not None and principal.organization in principal.organizations:
        return principal.organization
    return " ".join(sorted(principal.organizations)) or f"caller {principal.caller}"


class Reading:
    """The read of many objects for one request. It takes turns with others, but has no quota and no share of memory."""

    __slots__ = ("_charged", "_examined", "_key", "_slots")

    def __init__(self, slots: FairSlots, key: str) -> None:
        self._slots, self._key = slots, key
        self._examined = self._charged = 0

    @asynccontextmanager
    async def page(self, items: int = _FEW_ITEMS) -> AsyncIterator[None]:
        """Wait for a slot, and keep it and memory for a page of so many items during the block.

        Raise OverLimit if the quota was used up meanwhile, and TooMuchBuffered or NoFreeBuffer.
        """
        async with self.slice():
            self._check_quota()
            with self._memory(items * ITEM_BYTES):
                yield

    @asynccontextmanager
    async def slice(self) -> AsyncIterator[None]:
        """Wait for a slot, and keep it during the block: for a part of a list, whose memory is counted already."""
        await self._slots.take(self._key)
        try:
            yield
        finally:
            self._slots.release(self._key)

    def count(self, objects: int) -> None:
        """Count objects or records that were read, whether or not they are returned."""
        self._examined += objects
        further = max(0, (self._examined - 1) // OBJECTS_PER_REQUEST) - self._charged
        if further:
            self._charged += further
            self._charge(further)

    def _check_quota(self) -> None:
        """Raise OverLimit if the caller has used more than its quota."""

    def _memory(self, size: int) -> AbstractContextManager[Any]:  # noqa: ARG002  for subclasses
        """Return a context that counts bytes, or raises TooMuchBuffered or NoFreeBuffer."""
        return nullcontext()

    def _charge(self, requests: int) -> None:
        """Count further requests of the caller."""


@dataclass(frozen=True, slots=True)
class PageRead(Generic[ResponseT]):
    """A page that the request pipeline reads, after the service has checked the permission to do so."""

    read: Callable[[Reading], Coroutine[Any, Any, Any]]
    """Returns the response, or `Rendered`. It reads and renders within `Reading.page`."""
