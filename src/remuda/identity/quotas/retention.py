"""Forgets rows that were released so long ago that nobody may ask for them any more.

They are found by the day on which they ended. A name that was taken to keep late writers out is among them, so nothing
is forgotten within a day, whatever an operator says.
"""

from datetime import timedelta

from remuda.identity.kinds.quotas import Allocation
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound
from remuda.reconcile.leader import Leader
from remuda.store.contract import Store

_AT_LEAST = timedelta(days=1)
_LOOKS_BACK = timedelta(days=400)
"""So long can no process have run, and what ended in that time is forgotten all the same."""
_PAGE = 100


class Retention:
    """Looks for such rows now and then, if this process leads."""

    def __init__(
        self, store: Store, *, clock: Clock, leader: Leader, usage_kept: timedelta, every_s: float = 3600.0
    ) -> None:
        self._store, self._clock, self._leader, self._every_s = store, clock, leader, every_s
        self._kept = max(usage_kept, _AT_LEAST)

    async def keep(self) -> None:
        """Look for ever: a duty."""
        while True:
            await self._clock.sleep(self._every_s)
            if self._leader.is_leading:
                await self.forget()

    async def forget(self) -> int:
        """Forget what is due, and return how many rows that were."""
        last = self._clock.now() - self._kept
        forgotten = 0
        for days in range(_LOOKS_BACK.days + 1):
            day = (last - timedelta(days=days)).date().isoformat()
            forgotten += await self._forget_day(day)
        return forgotten

    async def _forget_day(self, day: str) -> int:
        forgotten, after = 0, None
        while True:
            page = await self._store.list(Allocation, index=("ended", day), limit=_PAGE, after=after)
            for row in page.items:
                forgotten += await self._forget(row)
            after = page.next
            if after is None:
                return forgotten

    async def _forget(self, row: Allocation) -> bool:
        if row.spec.ended is None or row.spec.ended + self._kept > self._clock.now():
            return False
        try:
            await self._store.delete(Allocation, row.name, uid=row.uid, version=row.version)
        except (Conflict, NotFound):
            return False  # it was renewed, or somebody else was faster
        return True
