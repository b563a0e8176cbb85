"""Slots of image transfers, shared fairly between organizations.

An organization has at most half of the slots. A free slot goes to each of the waiting organizations in order, to one
transfer of each. A transfer whose source is slow ends when others wait for its slot (`SourceRate`), so that sources
which send next to nothing do not occupy the slots for hours.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from remuda.kernel.errors import Unavailable

MIN_BYTES_PER_S = 256 * 1024
"""Slowest rate of a source while other organizations wait."""
_WINDOW_S = 30.0


class TransferSlots:
    """Slots for `count` concurrent transfers."""

    def __init__(self, count: int) -> None:
        self._free, self._share = count, max(1, count // 2)
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By organization, the one that has waited longest first."""

    def is_contended(self, organization: str) -> bool:
        """Return whether an organization's slots keep another one waiting."""
        return not self._free and any(each != organization and self._has_share(each) for each in self._waiting)

    @asynccontextmanager
    async def acquire(self, organization: str) -> AsyncIterator[None]:
        """Wait for a slot, and keep it for the block."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(organization, deque()).append(waiter)
        self._grant()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._release(organization)
            else:
                self._forget(organization, waiter)
            raise
        try:
            yield
        finally:
            self._release(organization)

    def _has_share(self, organization: str) -> bool:
        return self._running[organization] < self._share

    def _grant(self) -> None:
        """Give the free slots to the organizations that wait and have less than their share."""
        while self._free:
            organization = next(filter(self._has_share, self._waiting), None)
            if organization is None:
                return
            waiters = self._waiting.pop(organization)
            waiters.popleft().set_result(None)
            if waiters:
                self._waiting[organization] = waiters  # behind the others
            self._free -= 1
            self._running[organization] += 1

    def _release(self, organization: str) -> None:
        self._free += 1
        self._running[organization] -= 1
        if not self._running[organization]:
            del self._running[organization]
        self._grant()

    def _forget(self, organization: str, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting[organization]
        waiters.remove(waiter)
        if not waiters:
            del self._waiting[organization]


class SourceRate:
    """Rate at which a source sends. Only time that is spent waiting for it counts, not that of a slow provider."""

    def __init__(self) -> None:
        self._waited_s, self._received = 0.0, 0

    def record(self, waited_s: float, received: int, *, is_contended: bool) -> None:
        """Add what was received; raise Unavailable if it is too little while others wait for the slot."""
        self._waited_s += waited_s
        self._received += received
        if self._waited_s < _WINDOW_S:
            return
        is_slow = self._received < MIN_BYTES_PER_S * self._waited_s
        self._waited_s, self._received = 0.0, 0
        if is_slow and is_contended:
            raise Unavailable(
                f"The server of the image sends less than {MIN_BYTES_PER_S // 1024} KiB per second while other "
                "organizations wait to import. Use a faster server, or import later."
            )
