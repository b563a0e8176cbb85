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

The kinds of quota: those that are built in, and those that somebody has added to them.

`floatingips` is among them because compute charges it: a kind that nobody has described cannot be limited.

What becomes of a head: each method judges a head as it is read, and returns the change that is written over it.

What is to be done to a row that is there is judged by its present state, whatever a cache says. The head is written
only if it is the one that was judged, and the row after that: whoever changes the row between has noted it in the head.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from remuda.identity.kinds.quotas import (
    Action,
    Allocation,
    Amounts,
    Intent,
    Limits,
    Quota,
    QuotaMetadata,
    QuotaMetadataSpec,
)
from remuda.identity.kinds.tenancy import Project
from remuda.identity.quotas.allocation_state import (
    deadline_after,
    has_ended,
    held_under,
    is_living,
    owner_of,
    renewed,
    same_operation,
    with_amounts,
)
from remuda.identity.quotas.intents import TRIES, Settling
from remuda.identity.quotas.quota_state import (
    Catalogue,
    OwnerHolds,
    charged,
    check_stays,
    find_intent,
    larger,
    noted,
    with_limits,
    with_project_limits,
)
from remuda.identity.quotas.writer import Apply, Combiner, unchanged
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import organization_of, project_of
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata


def _count(display_name: str, description: str, default: int) -> QuotaMetadataSpec:
    return QuotaMetadataSpec(display_name=display_name, description=description, default=default)


def _binary(display_name: str, description: str, default: int) -> QuotaMetadataSpec:
    return QuotaMetadataSpec(display_name=display_name, description=description, default=default, format="binary")


BUILT_IN: Mapping[str, QuotaMetadataSpec] = {
    "clusters": _count("Clusters", "Clusters of any type.", 5),
    "filestorage": _binary("File storage", "Bytes of shared file storage.", 1 << 40),
    "floatingips": _count("Floating IPs", "Public addresses of instances.", 5),
    "gpus": _count("GPUs", "Physical graphics processors.", 40),
    "loadbalancers": _count("Load balancers", "Load balancers.", 5),
    "networks": _count("Networks", "Private networks.", 5),
    "publicips": _count("Public IPs", "Public addresses of load balancers.", 5),
    "servers": _count("Servers", "Virtual and physical servers.", 10),
    "volume": _binary("Block storage", "GiB of block storage.", 0),
}
"""What everybody has to begin with."""


async def seed_quota_metadata(store: Store) -> None:
    """Write the kinds that are built in, where they are missing: what an operator made of them stays."""
    for kind, spec in BUILT_IN.items():
        with suppress(AlreadyExists):
            await store.create(QuotaMetadata(metadata=Metadata(name=kind), spec=spec))


class Kinds:
    """The kinds that there are, read again only when one has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stamp: int | None = None
        self._read: Catalogue = {}

    async def all(self) -> Catalogue:
        """Return them by name."""
        stamp = self._store.change_counter([QuotaMetadata])
        if stamp != self._stamp:
            found = await self._store.list(QuotaMetadata)
            self._read, self._stamp = {each.name: each.spec for each in found.items}, stamp
        return self._read


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
