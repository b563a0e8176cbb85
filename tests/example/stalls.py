"""The quota ledger: who has which stall of a yard, and never more than the yard has.

A stall is taken in two writes, (1) the head counts it and notes an intent, (2) a row named after the operation is
made, and the mount's controller confirms the row, which clears the intent. It is given back in three: (1) the head
notes an intent to release, (2) the row is released, (3) the head subtracts and drops the intent. Only the presence of
an intent allows a subtraction, and the head is written by compare-and-swap, so nothing is counted twice or twice given
back, whoever crashes or sleeps in between. A released row stays for a while: whoever was asleep collides with it.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, NotFound, OwnerRejected, Unavailable
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.example.kinds import (
    HELD,
    KEEPS_LEDGER,
    LEDGER,
    YARD,
    YARD_LABEL,
    Intent,
    Ledger,
    LedgerSpec,
    Stall,
    StallSpec,
    Yard,
    scope_labels,
)

INTENT_S = 600
"""By then a stall that is being taken is confirmed, or its operation is long over: the yard looks what became of it."""

_TRIES = 50


class Stalls:
    """The stalls of all yards. Every method can be repeated."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def take(self, yard: str, operation: str, *, again: bool = False) -> None:
        """Take a stall for an operation; `again`, although it was released: its mount is there and needs it."""
        for _ in range(_TRIES):
            head, row = await self._head(yard), await self._row(operation)
            if row is not None and row.spec.life != "released":
                return
            if row is not None and not again:
                await self.give_back(yard, operation)
                raise Unavailable(f"The operation {operation} was undone because it took too long: try again.")
            intent = find_intent(head, operation)
            if intent is not None and intent.is_release:
                await self.give_back(yard, operation)  # let whoever began to release it come to an end
                continue
            try:
                if intent is None:
                    await self._charge(head, operation)
                await self._write_row(yard, operation, row)
            except (AlreadyExists, Conflict):
                continue
            return
        raise Conflict("Ledger", yard)

    async def confirm(self, yard: str, operation: str) -> bool:
        """Settle a stall that was taken; False if it is not held, so that it has to be taken again."""
        for _ in range(_TRIES):
            row = await self._row(operation)
            if row is None or row.spec.life == "released":
                return False
            try:
                if row.spec.life == "unconfirmed":
                    await self._store.update(replace(row, spec=replace(row.spec, life="confirmed")))
                head = await self._store.get(Ledger, yard)
                intent = find_intent(head, operation)
                if intent is not None and not intent.is_release:
                    await self._write_head(head, used=head.spec.used, without=operation)
            except Conflict:
                continue
            return True
        raise Conflict("Ledger", yard)

    async def is_settled(self, yard: str, operation: str) -> bool:
        """Tell whether a stall is held and nothing about it is under way."""
        row, head = await self._row(operation), await self._find_head(yard)
        is_confirmed = row is not None and row.spec.life == "confirmed"
        return is_confirmed and head is not None and find_intent(head, operation) is None

    async def give_back(self, yard: str, operation: str) -> None:
        """Release what an operation took, or see to it that it cannot take anything any more."""
        for _ in range(_TRIES):
            try:
                if await self._gave_back(yard, operation):
                    return
            except (AlreadyExists, Conflict, NotFound):
                continue
        raise Conflict("Ledger", yard)

    async def set_limit(self, yard: Yard) -> bool:
        """Bring the ledger to the yard's limit, or as near as what is used allows; tell whether it is reached."""
        head = await self._head(yard.name)
        limit = max(yard.spec.stalls, head.spec.used)
        if limit != head.spec.limit:
            await self._store.update(replace(head, spec=replace(head.spec, limit=limit)))
        return limit == yard.spec.stalls

    async def _gave_back(self, yard: str, operation: str) -> bool:
        head, row = await self._find_head(yard), await self._row(operation)
        intent = find_intent(head, operation) if head is not None else None
        if row is not None and row.spec.life != "released":
            if head is not None and (intent is None or not intent.is_release):
                release = Intent(operation=operation, deadline=self._deadline(), is_release=True)
                await self._write_head(head, used=head.spec.used, without=operation, new=release)
            await self._release(row)
            return False
        if row is None and head is not None:
            await self._bar(head, operation)
        if head is not None and intent is not None:
            await self._write_head(head, used=head.spec.used - 1, without=operation)
        return True

    async def _head(self, yard_id: str) -> Ledger:
        try:
            return await self._store.get(Ledger, yard_id)
        except NotFound:
            yard = await self._store.get(Yard, yard_id)
        metadata = Metadata(
            name=yard.name,
            labels=scope_labels(yard.metadata) | {YARD_LABEL: yard.name},
            owner_references=(YARD.owner(yard),),
            finalizers=(KEEPS_LEDGER,),
        )
        try:
            return await self._store.create(Ledger(metadata=metadata, spec=LedgerSpec(limit=yard.spec.stalls)))
        except AlreadyExists:
            return await self._store.get(Ledger, yard_id)

    async def _find_head(self, yard: str) -> Ledger | None:
        try:
            return await self._store.get(Ledger, yard)
        except NotFound:
            return None

    async def _row(self, operation: str) -> Stall | None:
        try:
            return await self._store.get(Stall, operation)
        except NotFound:
            return None

    async def _charge(self, head: Ledger, operation: str) -> None:
        if head.is_deleting:
            raise OwnerRejected("Stall", operation, owner=f"yard {head.name}")
        if head.spec.used >= head.spec.limit:
            raise Forbidden(f"the yard has {head.spec.limit} stalls and all are taken: free one, or raise the limit")
        intent = Intent(operation=operation, deadline=self._deadline())
        await self._write_head(head, used=head.spec.used + 1, without=operation, new=intent)

    async def _write_head(self, head: Ledger, *, used: int, without: str, new: Intent | None = None) -> None:
        kept = tuple(intent for intent in head.spec.intents if intent.operation != without)
        intents = (*kept, new) if new is not None else kept
        await self._store.update(replace(head, spec=replace(head.spec, used=used, intents=intents)))

    async def _write_row(self, yard: str, operation: str, released: Stall | None) -> None:
        if released is not None:
            metadata = replace(released.metadata, finalizers=(*released.metadata.finalizers, HELD))
            spec = replace(released.spec, life="unconfirmed", released_at=None)
            await self._store.update(replace(released, metadata=metadata, spec=spec))
            return
        head = await self._store.get(Ledger, yard)
        await self._store.create(self._new_row(head, operation, StallSpec(yard=yard), finalizers=(HELD,)))

    async def _release(self, row: Stall) -> None:
        finalizers = tuple(each for each in row.metadata.finalizers if each != HELD)
        spec = replace(row.spec, life="released", released_at=self._clock.now())
        await self._store.update(replace(row, metadata=replace(row.metadata, finalizers=finalizers), spec=spec))

    async def _bar(self, head: Ledger, operation: str) -> None:
        """Take the row's name, so that nobody who was asleep can."""
        spec = StallSpec(yard=head.name, life="released", released_at=self._clock.now())
        try:
            await self._store.create(self._new_row(head, operation, spec, finalizers=()))
        except OwnerRejected:  # the yard goes, and takes no row from anybody
            return

    def _new_row(self, head: Ledger, operation: str, spec: StallSpec, *, finalizers: tuple[str, ...]) -> Stall:
        metadata = Metadata(
            name=operation,
            labels=dict(head.metadata.labels),
            owner_references=(LEDGER.owner(head),),
            finalizers=finalizers,
        )
        return Stall(metadata=metadata, spec=spec)

    def _deadline(self) -> datetime:
        return self._clock.now() + timedelta(seconds=INTENT_S)


def find_intent(head: Ledger, operation: str) -> Intent | None:
    """Return what the head notes of an operation."""
    return next((intent for intent in head.spec.intents if intent.operation == operation), None)
