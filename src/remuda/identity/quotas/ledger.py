"""The quota ledger: who holds how much, and never more than there may be.

A head and its rows are several objects, and a process can die or fall asleep between any two writes. What keeps them
together is the intent: it is noted in the head by the same compare-and-swap that counts it, it says how much the head
counts for the row meanwhile, and only its presence allows that count to be changed again. ::

    take      head: count, intent │ row: made, named after the operation │ confirmed: head: drop the intent
    change    head: count the larger, intent │ row: changed │ head: count the new, drop the intent
    release   head: intent │ row: released, or in a later turn │ head: subtract, drop the intent
    confirm   while it is to be released: row: confirmed under that intent │ head: drop the intent
    renew     head: count, intent │ row: living again, unconfirmed │ confirmed: head: drop the intent

Whoever is late collides, reads again, and finds that its intent is gone: a row that was never made is closed by taking
its name, one that was not yet renewed by changing it, and a confirmed one is released only under an intent to release
it, and not if somebody has confirmed it since. An unconfirmed one needs none: that under which it was taken is there.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

from remuda.identity.kinds.quotas import Allocation, Intent, Limits, Quota
from remuda.identity.quotas.allocation_state import (
    has_ended,
    held_under,
    is_living,
    renewed,
    same_operation,
    with_amounts,
)
from remuda.identity.quotas.catalogue import Kinds
from remuda.identity.quotas.intents import TRIES, Settling
from remuda.identity.quotas.judging import Check, Edit, Judging
from remuda.identity.quotas.quota_state import find_intent, with_limits, with_project_limits
from remuda.identity.quotas.writer import Apply, Combiner
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import organization_of
from remuda.store.contract import Store
from remuda.store.logs import Record

HeadCheck = Callable[[Quota], None]
"""Looks at a head as it stands before it is written, and raises what speaks against that."""


class Ledger:
    """The heads and rows of all organizations: make one for each process. Every method can be repeated."""

    def __init__(self, store: Store, clock: Clock, randomness: Randomness, *, intent_life: timedelta) -> None:
        self.kinds = Kinds(store)
        """The catalogue."""
        self.heads = Combiner(store, clock, randomness)
        """The way to write a head."""
        self.settling = Settling(store, clock, self.heads)
        """The way to end what was begun."""
        self._judging = Judging(store, clock, self.settling, self.kinds, intent_life=intent_life)
        self._store, self._clock = store, clock

    async def take(self, wanted: Allocation, *, log: Sequence[Record] = ()) -> Allocation:
        """Make a row, if there is room for what it holds; the same one again if its operation made it before.

        One that is confirmed as it is made is settled at once.
        """
        for _ in range(TRIES):
            found = await self.settling.find(wanted.name)
            if found is not None:
                try:
                    return await self.settling.keep(same_operation(found, wanted), log)
                except Conflict:
                    continue
            head, _found = await self.heads.write(
                organization_of(wanted), lambda head: self._judging.take(head, wanted), about=wanted.name
            )
            intent = find_intent(head.spec, wanted.name)
            if intent is None:
                continue  # it was made meanwhile
            try:
                row = await self._store.create(held_under(wanted, intent, self._clock.now()), log=log)
            except AlreadyExists:
                continue  # the same operation runs twice, or took too long
            if row.spec.life == "confirmed":
                await self.settling.clear(row)
            return row
        raise Conflict("Allocation", wanted.name)

    async def confirm(self, name: str, *, log: Sequence[Record] = ()) -> Allocation:
        """Settle what was taken. Raises NotFound if it is not held: then it has to be renewed, or taken again."""
        return await self.settling.confirm(name, log)

    async def change(self, name: str, edit: Edit, *, check: Check, log: Sequence[Record] = ()) -> Allocation:
        """Change a row, if there is room for what it then holds. Whoever changes it is there: that confirms it, too."""
        for _ in range(TRIES):
            row = await self.settling.living(name)
            check(row)
            organization = organization_of(row)
            await self.settling.end_open(organization, name)
            try:
                head, row = await self.heads.write(
                    organization, lambda head: self._judging.change(head, name, edit, check), about=name
                )
            except Conflict:
                continue
            intent = find_intent(head.spec, name)
            assert intent is not None, "it has just been noted"
            return await self._carry_out(organization, intent, row, edit, log)
        raise Conflict("Allocation", name)

    async def release(self, name: str, *, turn: int = 0, check: Check, log: Sequence[Record] = ()) -> None:
        """Give back what a row holds, and not hold it again in an earlier turn.

        Raises NotFound if nobody has ever heard of it; twice is fine.
        """
        row: Allocation | None = await self._store.get(Allocation, name)
        assert row is not None, "it was found"
        organization = organization_of(row)
        for _ in range(TRIES):
            try:
                head, row = await self.heads.write(
                    organization, lambda head: self._judging.release(head, name, turn, check), about=name
                )
            except Conflict:
                continue
            intent = find_intent(head.spec, name)
            if intent is not None:
                await self.settling.close_from(organization, intent, row, () if intent.action == "change" else log)
                row = await self.settling.find(name)
            if row is None or has_ended(row, turn):
                return  # otherwise something else came to its end first
        raise Conflict("Allocation", name)

    async def take_back(self, organization: str, project: str, name: str) -> bool:
        """Hold nothing for a row that was never made, because whoever began it died; tell whether anything was."""
        intent = find_intent((await self.heads.current(organization, about=name)).spec, name)
        if intent is None or intent.project != project:
            return False
        await self.settling.close(organization, intent)
        return True

    async def renew(self, name: str, *, check: Check, log: Sequence[Record] = ()) -> Allocation:
        """Hold again what a row held when it was released, if there is room; it has to be confirmed anew."""
        for _ in range(TRIES):
            row = await self._store.get(Allocation, name)
            check(row)
            organization = organization_of(row)
            try:
                if is_living(row):
                    return await self.settling.keep(row, log)
                await self.settling.end_open(organization, name)
                head, row = await self.heads.write(
                    organization, lambda head: self._judging.renewal(head, name, check), about=name
                )
                intent = find_intent(head.spec, name)
                assert intent is not None, "it has just been noted"
                return await self._store.update(renewed(row, intent, self._clock.now()), log=log)
            except Conflict:
                continue
        raise Conflict("Allocation", name)

    async def set_limits(
        self, organization: str, project: str | None, limits: Limits, *, check: HeadCheck, log: Sequence[Record]
    ) -> Quota:
        """Replace the limits of an organization, or of one of its projects if that is given."""

        async def judge(head: Quota) -> tuple[Apply, None]:
            check(head)
            catalogue = await self.kinds.all()
            if project is None:
                return lambda spec: with_limits(spec, limits, catalogue), None
            return lambda spec: with_project_limits(spec, project, limits, catalogue), None

        about = f"limits of {project or organization}"
        return (await self.heads.write(organization, judge, about=about, log=log))[0]

    async def _carry_out(
        self, organization: str, intent: Intent, row: Allocation, edit: Edit, log: Sequence[Record]
    ) -> Allocation:
        """Write a row as it is to be, and settle. If somebody else was quicker, its amounts are no longer ours."""
        amounts = intent.wants
        for _ in range(TRIES):
            try:
                row = await self._store.update(with_amounts(edit(row), amounts), log=log)
            except Conflict:
                row = await self.settling.living(row.name)
                amounts = intent.wants if await self.settling.is_open(organization, intent) else row.spec.allocations
                continue
            await self.settling.settle(organization, intent, intent.wants)
            return row
        raise Conflict("Allocation", row.name)
