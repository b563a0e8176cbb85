"""How what was begun in the ledger comes to its end, whoever began it.

What is done here is done by the one who began it, by anybody who comes across it, and by the controller when its time
is over; by all of them at once, or by one of them after a long sleep. So a row is written only from a state that was
read before the intent was last seen in the head, and a head is changed only if it still has exactly that intent.
"""

from collections.abc import Sequence

from remuda.identity.kinds.quotas import Allocation, Amounts, Intent, Quota
from remuda.identity.quotas.allocation_state import (
    bar,
    confirmed,
    is_confirmed_under,
    is_living,
    kept,
    released,
    turned,
    with_amounts,
)
from remuda.identity.quotas.quota_state import find_intent, settled
from remuda.identity.quotas.writer import Apply, Combiner
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.resources.conventions import organization_of
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

TRIES = 20
"""How often a row is read again before its caller is told that it changes all the time."""


class Settling:
    """Rows, and the ends of what is under way with them."""

    def __init__(self, store: Store, clock: Clock, heads: Combiner) -> None:
        self._store, self._clock, self._heads = store, clock, heads

    async def find(self, name: str) -> Allocation | None:
        """Return a row, living or released."""
        return await find(self._store, Allocation, name)

    async def living(self, name: str) -> Allocation:
        """Return a row that holds something, or raise NotFound."""
        row = await self._store.get(Allocation, name)
        if not is_living(row):
            raise NotFound("Allocation", name)
        return row

    async def present(self, name: str) -> Allocation | None:
        """Return a row as it is at present, whatever a cache says; raise Conflict if that is behind."""
        row = await self.find(name)
        # This changes nothing, and so writes nothing, but it fails unless the version is the present one.
        return None if row is None else await self._store.update(row)

    async def confirm(self, name: str, log: Sequence[Record] = ()) -> Allocation:
        """Let a row stand, and drop the intent under which it was taken, or was to be released."""
        for _ in range(TRIES):
            row = await self.living(name)
            try:
                if row.spec.life == "confirmed":
                    return await self.keep(row, log)
                row = await self._store.update(confirmed(row), log=log)
            except Conflict:
                continue
            await self.clear(row)
            return row
        raise Conflict("Allocation", name)

    async def keep(self, row: Allocation, log: Sequence[Record] = ()) -> Allocation:
        """Return a living row as it is at present, with nothing under way that would release it once it is confirmed.

        Whoever wanted that was never told that it is done, and would be told nothing of it being done later.
        Raises Conflict if the row has changed.
        """
        organization = organization_of(row)
        intent = find_intent((await self._heads.current(organization, about=row.name)).spec, row.name)
        if intent is not None and intent.action == "release":
            row = await self._store.update(kept(row, intent), log=log)
        else:
            row = await self._store.update(row)  # this changes nothing, as in `present`
        if intent is not None and is_confirmed_under(row, intent):
            await self.settle(organization, intent, intent.holds)
        return row

    async def clear(self, row: Allocation) -> None:
        """Drop the intent under which a row was taken that is confirmed by now."""
        organization = organization_of(row)
        intent = await self.open_intent(organization, row.name)
        if intent is not None and is_confirmed_under(row, intent):
            await self.settle(organization, intent, intent.holds)

    async def open_intent(self, organization: str, name: str) -> Intent | None:
        """Return what is under way with a row, as far as is known here."""
        head = await self._heads.find(organization)
        return None if head is None else find_intent(head.spec, name)

    async def is_open(self, organization: str, intent: Intent) -> bool:
        """Tell whether an intent is in the head at present, whatever a cache says."""
        head = await self._heads.current(organization, about=intent.allocation)
        return find_intent(head.spec, intent.allocation) == intent

    async def settle(self, organization: str, intent: Intent, left: Amounts) -> None:
        """Drop an intent, after which `left` is counted for its row."""

        async def judge(_: Quota) -> tuple[Apply, None]:
            return lambda spec: settled(spec, intent, left), None

        await self._heads.write(organization, judge, about=intent.allocation)

    async def end_open(self, organization: str, name: str) -> None:
        """End what is under way with a row, because somebody who is there wants something else with it.

        What is living stays, though it was not confirmed yet, or was to be released.
        """
        intent = await self.open_intent(organization, name)
        if intent is None:
            return
        row = await self.find(name)
        if intent.action != "change" and row is not None and is_living(row):
            await self.confirm(name)
        else:
            await self.close(organization, intent)

    async def close(self, organization: str, intent: Intent) -> None:
        """End it because its time is over: changes and releases are carried out, and what was taken is taken back.

        What was confirmed since stays.
        """
        row = await self.find(intent.allocation)
        if await self.is_open(organization, intent):
            await self.close_from(organization, intent, row)

    async def close_from(
        self, organization: str, intent: Intent, row: Allocation | None, log: Sequence[Record] = ()
    ) -> None:
        """Do so from a row that was read before the intent was last seen."""
        for _ in range(TRIES):
            try:
                left = await self._end_row(organization, intent, row, log)
                await self.settle(organization, intent, left)
            except (AlreadyExists, Conflict, NotFound):
                row = await self.find(intent.allocation)
                if not await self.is_open(organization, intent):
                    return
            else:
                return
        raise Conflict("Allocation", intent.allocation)

    async def _end_row(
        self, organization: str, intent: Intent, row: Allocation | None, log: Sequence[Record]
    ) -> Amounts:
        """Make of a row what its intent comes to, and return what is to be counted for it from then on."""
        if row is None:
            await self._store.create(bar(intent, organization, self._clock.now()))
            return ()
        if intent.action == "change" and is_living(row):
            await self._store.update(turned(with_amounts(row, intent.wants), intent.turn), log=log)
            return intent.wants
        if is_confirmed_under(row, intent):
            return intent.holds
        is_held = intent.action == "take" or is_living(row)
        ended = turned(released(row, self._clock.now()) if is_held else row, intent.turn)
        if ended != row:
            await self._store.update(ended, log=log)
        return ()
