"""Completion of intents in quota records.

An intent is completed by the caller that added it, by any other that finds it, or by the controller after its deadline;
by several at the same time, or by one after a long pause. Therefore an allocation is written only from a state that was
read before the intent was last seen in the record, and a record is changed only if it still has this intent.
"""

from collections.abc import Sequence

from remuda.identity.kinds.quotas import Allocation, Amounts, Intent, Quota
from remuda.identity.quotas.allocation_state import (
    confirmed,
    is_active,
    is_confirmed_under,
    released,
    retained,
    tombstone,
    with_amounts,
    with_fencing_token,
)
from remuda.identity.quotas.quota_state import find_intent, with_intent_completed
from remuda.identity.quotas.writer import Apply, QuotaWriter
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.resources.conventions import organization_of
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

MAX_ATTEMPTS = 20
"""Attempts to write an allocation before a caller gets a conflict."""


class Intents:
    """Allocations and the completion of their intents."""

    def __init__(self, store: Store, clock: Clock, writer: QuotaWriter) -> None:
        self._store, self._clock, self._writer = store, clock, writer

    async def get_active(self, name: str) -> Allocation:
        """Return an allocation that is not released, or raise NotFound."""
        allocation = await self._store.get(Allocation, name)
        if not is_active(allocation):
            raise NotFound("Allocation", name)
        return allocation

    async def read_latest(self, name: str) -> Allocation | None:
        """Return the latest version of an allocation, whatever a cache has. Raises Conflict if the cache is behind."""
        allocation = await find(self._store, Allocation, name)
        # This writes nothing, but fails unless the version is the latest one.
        return None if allocation is None else await self._store.update(allocation)

    async def confirm(self, name: str, log: Sequence[Record] = ()) -> Allocation:
        """Confirm an allocation, and remove the intent under which it was reserved or was to be released."""
        for _ in range(MAX_ATTEMPTS):
            allocation = await self.get_active(name)
            try:
                if allocation.spec.state == "confirmed":
                    return await self.retain(allocation, log)
                allocation = await self._store.update(confirmed(allocation), log=log)
            except Conflict:
                continue
            await self.complete_confirmed(allocation)
            return allocation
        raise Conflict("Allocation", name)

    async def retain(self, allocation: Allocation, log: Sequence[Record] = ()) -> Allocation:
        """Return the latest version of an active allocation, after removal of an intent that would release it."""
        organization = organization_of(allocation)
        intent = find_intent((await self._writer.read_latest(organization, key=allocation.name)).spec, allocation.name)
        if intent is not None and intent.action == "release":
            allocation = await self._store.update(retained(allocation, intent), log=log)
        else:
            allocation = await self._store.update(allocation)  # this writes nothing, as in `read_latest`
        if intent is not None and is_confirmed_under(allocation, intent):
            await self.complete(organization, intent, intent.amounts)
        return allocation

    async def complete_confirmed(self, allocation: Allocation) -> None:
        """Remove the intent under which a confirmed allocation was reserved."""
        organization = organization_of(allocation)
        intent = await self.open_intent(organization, allocation.name)
        if intent is not None and is_confirmed_under(allocation, intent):
            await self.complete(organization, intent, intent.amounts)

    async def open_intent(self, organization: str, name: str) -> Intent | None:
        """Return the open intent of an allocation, as the cache has it."""
        record = await self._writer.find(organization)
        return None if record is None else find_intent(record.spec, name)

    async def is_open(self, organization: str, intent: Intent) -> bool:
        """Return whether the latest version of the record has this intent."""
        record = await self._writer.read_latest(organization, key=intent.allocation)
        return find_intent(record.spec, intent.allocation) == intent

    async def complete(self, organization: str, intent: Intent, left: Amounts) -> None:
        """Remove an intent, and count `left` for its allocation from now on."""

        async def validate(_: Quota) -> tuple[Apply, None]:
            return lambda spec: with_intent_completed(spec, intent, left), None

        await self._writer.write(organization, validate, key=intent.allocation)

    async def complete_open(self, organization: str, name: str) -> None:
        """Complete the open intent of an allocation before another change; an active allocation stays."""
        intent = await self.open_intent(organization, name)
        if intent is None:
            return
        allocation = await find(self._store, Allocation, name)
        if intent.action != "update" and allocation is not None and is_active(allocation):
            await self.confirm(name)
        else:
            await self.complete_latest(organization, intent)

    async def complete_latest(self, organization: str, intent: Intent) -> None:
        """Complete an intent from the latest allocation: an unconfirmed reservation is rolled back."""
        allocation = await find(self._store, Allocation, intent.allocation)
        if await self.is_open(organization, intent):
            await self.complete_from(organization, intent, allocation)

    async def complete_from(
        self, organization: str, intent: Intent, allocation: Allocation | None, log: Sequence[Record] = ()
    ) -> None:
        """Complete an intent from an allocation that was read before the intent was last seen."""
        for _ in range(MAX_ATTEMPTS):
            try:
                left = await self._finish_allocation(organization, intent, allocation, log)
                await self.complete(organization, intent, left)
            except (AlreadyExists, Conflict, NotFound):
                allocation = await find(self._store, Allocation, intent.allocation)
                if not await self.is_open(organization, intent):
                    return
            else:
                return
        raise Conflict("Allocation", intent.allocation)

    async def _finish_allocation(
        self, organization: str, intent: Intent, allocation: Allocation | None, log: Sequence[Record]
    ) -> Amounts:
        """Apply the intent to its allocation, and return the amounts to count for it from now on."""
        if allocation is None:
            await self._store.create(tombstone(intent, organization, self._clock.now()))
            return ()
        if intent.action == "update" and is_active(allocation):
            await self._store.update(
                with_fencing_token(with_amounts(allocation, intent.new_amounts), intent.fencing_token), log=log
            )
            return intent.new_amounts
        if is_confirmed_under(allocation, intent):
            return intent.amounts
        needs_release = intent.action == "reserve" or is_active(allocation)
        finished = with_fencing_token(
            released(allocation, self._clock.now()) if needs_release else allocation, intent.fencing_token
        )
        if finished != allocation:
            await self._store.update(finished, log=log)
        return ()
