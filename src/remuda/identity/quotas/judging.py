"""What becomes of a head: each method judges a head as it is read, and returns the change that is written over it.

What is to be done to a row that is there is judged by its present state, whatever a cache says. The head is written
only if it is the one that was judged, and the row after that: whoever changes the row between has noted it in the head.
"""

from collections.abc import Callable
from datetime import timedelta

from remuda.identity.kinds.quotas import Action, Allocation, Amounts, Intent, Quota
from remuda.identity.kinds.tenancy import Project
from remuda.identity.quotas.allocation_state import deadline_after, has_ended, is_living, owner_of
from remuda.identity.quotas.amounts import larger
from remuda.identity.quotas.catalogue import Kinds
from remuda.identity.quotas.intents import Settling
from remuda.identity.quotas.quota_state import OwnerHolds, charged, check_stays, find_intent, noted
from remuda.identity.quotas.writer import Apply, unchanged
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound
from remuda.resources.conventions import project_of
from remuda.store.contract import Store

Check = Callable[[Allocation], None]
"""Looks at a row as it stands before it is written, and raises what speaks against that."""

Edit = Callable[[Allocation], Allocation]
"""Returns a row as it is to be."""


class Judging:
    """Judges what is asked of the ledger."""

    def __init__(self, store: Store, clock: Clock, settling: Settling, kinds: Kinds, *, intent_life: timedelta) -> None:
        self._store, self._clock, self._settling, self._kinds = store, clock, settling, kinds
        self._intent_life = intent_life

    async def take(self, head: Quota, wanted: Allocation) -> tuple[Apply, None]:
        """Count a new row, unless its operation is at it already."""
        check_stays(head)
        if find_intent(head.spec, wanted.name) is not None or await self._settling.find(wanted.name) is not None:
            return unchanged, None
        return await self._charge(wanted), None

    async def change(self, head: Quota, name: str, edit: Edit, check: Check) -> tuple[Apply, Allocation]:
        """Count the larger of what a row holds and of what it is to hold."""
        row = await self._settling.present(name)
        if row is None or not is_living(row):
            raise NotFound("Allocation", name)
        if find_intent(head.spec, name) is not None:
            raise Conflict("Allocation", name)
        check(row)
        held, edited = row.spec.allocations, edit(row)
        amounts = edited.spec.allocations
        intent = self._intent(row, "change", larger(held, amounts), wants=amounts, turn=edited.spec.turn)
        catalogue = await self._kinds.all()
        return lambda spec: charged(spec, intent, held, catalogue), row

    async def release(self, head: Quota, name: str, turn: int, check: Check) -> tuple[Apply, Allocation | None]:
        """Note that a row is to be released; what is under way with it comes to its end first."""
        row, open_ = await self._settling.present(name), find_intent(head.spec, name)
        if row is None or has_ended(row, turn):
            return unchanged, row
        if is_living(row):
            check(row)
        if open_ is not None:
            return unchanged, row
        intent = self._intent(row, "release", row.spec.allocations if is_living(row) else (), turn=turn)
        return lambda spec: noted(spec, intent), row

    async def renewal(self, head: Quota, name: str, check: Check) -> tuple[Apply, Allocation]:
        """Count again what a row held when it was released."""
        row = await self._settling.present(name)
        if row is None:
            raise NotFound("Allocation", name)
        check(row)
        check_stays(head)
        if is_living(row) or find_intent(head.spec, name) is not None:
            raise Conflict("Allocation", name)
        return await self._charge(row), row

    async def _charge(self, row: Allocation) -> Apply:
        """Return the change that counts a row which is not living yet.

        Whoever looked for the project before may have slept since: when it is gone, the head knows nothing of it.
        """
        await self._store.get(Project, project_of(row))
        owner = owner_of(row)
        if (await self._store.list_names(Allocation, index=("owner", owner), limit=1)).items:
            raise OwnerHolds(owner)
        intent, catalogue = self._intent(row, "take", row.spec.allocations), await self._kinds.all()
        return lambda spec: charged(spec, intent, (), catalogue)

    def _intent(self, row: Allocation, action: Action, holds: Amounts, *, wants: Amounts = (), turn: int = 0) -> Intent:
        return Intent(
            allocation=row.name,
            project=project_of(row),
            owner=owner_of(row),
            action=action,
            holds=holds,
            deadline=deadline_after(row, self._clock.now() + self._intent_life),
            wants=wants,
            turn=turn,
        )
