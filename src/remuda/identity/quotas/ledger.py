"""Quota ledger: reservations, updates and releases of allocations within the limits.

A quota record and its allocations are several objects, and a process can crash or pause between two writes. They are
kept consistent by intents. An intent is added to the record in the same compare-and-swap that counts it, says how much
the record counts for the allocation meanwhile, and only while it is there may that count change. ::

    reserve   record: count, add intent │ allocation: create │ on confirm: record: remove intent
    update    record: count the larger, add intent │ allocation: update │ record: count the new, remove intent
    release   record: add intent │ allocation: release │ record: subtract, remove intent
    confirm   during a release: allocation: confirm under that intent │ record: remove intent
    renew     record: count, add intent │ allocation: reactivate, unconfirmed │ on confirm: record: remove intent

A late writer gets a conflict, reads again, and finds its intent gone. The name of an allocation that was never created
is taken by a tombstone. A confirmed allocation is released only under an intent to release it, and not if it was
confirmed since.
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
    is_active,
    is_released_for,
    owner_of,
    renewed,
    reserved_under,
    same_operation,
    with_amounts,
)
from remuda.identity.quotas.intents import MAX_ATTEMPTS, Intents
from remuda.identity.quotas.quota_state import (
    Catalogue,
    OwnerHasAllocation,
    check_not_deleting,
    find_intent,
    larger,
    limits_in,
    with_intent,
    with_limits,
    with_reservation,
)
from remuda.identity.quotas.writer import Apply, QuotaWriter, unchanged
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import organization_of, project_of
from remuda.resources.crud import exists, find
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
"""Quota kinds with the default limits of organizations."""


async def seed_quota_metadata(store: Store) -> None:
    """Create the built-in quota kinds that are missing. Changes by operators stay."""
    for kind, spec in BUILT_IN.items():
        with suppress(AlreadyExists):
            await store.create(QuotaMetadata(metadata=Metadata(name=kind), spec=spec))


class QuotaKinds:
    """Cache of the quota kinds, which is read again when one has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counter: int | None = None
        self._read: Catalogue = {}

    async def all(self) -> Catalogue:
        counter = self._store.change_counter([QuotaMetadata])
        if counter != self._counter:
            found = await self._store.list(QuotaMetadata)
            self._read, self._counter = {each.name: each.spec for each in found.items}, counter
        return self._read


Check = Callable[[Allocation], None]
"""Raises if an allocation must not be written."""

Edit = Callable[[Allocation], Allocation]


class Validation:
    """Validation of changes against a quota record; each method returns the change to write.

    An existing allocation is read in its latest version. The record is written only in the version that was validated,
    and the allocation after it: a concurrent writer of the allocation has added an intent to the record.
    """

    def __init__(
        self, store: Store, clock: Clock, intents: Intents, kinds: QuotaKinds, *, intent_lifetime: timedelta
    ) -> None:
        self._store, self._clock, self._intents, self._kinds = store, clock, intents, kinds
        self._intent_lifetime = intent_lifetime

    async def reserve(self, record: Quota, requested: Allocation) -> tuple[Apply, None]:
        """Count a new allocation, unless its operation has done so."""
        check_not_deleting(record)
        name = requested.name
        if find_intent(record.spec, name) is not None or await exists(self._store, Allocation, name):
            return unchanged, None
        return await self._reservation(requested), None

    async def update(self, record: Quota, name: str, edit: Edit, check: Check) -> tuple[Apply, Allocation]:
        """Count the larger of the present and the requested amounts."""
        allocation = await self._intents.read_latest(name)
        if allocation is None or not is_active(allocation):
            raise NotFound("Allocation", name)
        if find_intent(record.spec, name) is not None:
            raise Conflict("Allocation", name)
        check(allocation)
        present, edited = allocation.spec.allocations, edit(allocation)
        amounts = edited.spec.allocations
        intent = self._new_intent(
            allocation, "update", larger(present, amounts), new_amounts=amounts, fencing_token=edited.spec.fencing_token
        )
        catalogue = await self._kinds.all()
        return lambda spec: with_reservation(spec, intent, present, catalogue), allocation

    async def release(
        self, record: Quota, name: str, fencing_token: int, check: Check
    ) -> tuple[Apply, Allocation | None]:
        """Add an intent to release an allocation; an open intent is completed first."""
        allocation, open_intent = await self._intents.read_latest(name), find_intent(record.spec, name)
        if allocation is None or is_released_for(allocation, fencing_token):
            return unchanged, allocation
        if is_active(allocation):
            check(allocation)
        if open_intent is not None:
            return unchanged, allocation
        intent = self._new_intent(
            allocation,
            "release",
            allocation.spec.allocations if is_active(allocation) else (),
            fencing_token=fencing_token,
        )
        return lambda spec: with_intent(spec, intent), allocation

    async def renew(self, record: Quota, name: str, check: Check) -> tuple[Apply, Allocation]:
        """Count the amounts of a released allocation again."""
        allocation = await self._intents.read_latest(name)
        if allocation is None:
            raise NotFound("Allocation", name)
        check(allocation)
        check_not_deleting(record)
        if is_active(allocation) or find_intent(record.spec, name) is not None:
            raise Conflict("Allocation", name)
        return await self._reservation(allocation), allocation

    async def _reservation(self, allocation: Allocation) -> Apply:
        """Return the change that counts an allocation which is not active yet.

        The project is read again: the caller may have paused since it checked, and the record does not know deleted
        projects.
        """
        await self._store.get(Project, project_of(allocation))
        owner = owner_of(allocation)
        if (await self._store.list_names(Allocation, index=("owner", owner), limit=1)).items:
            raise OwnerHasAllocation(owner)
        intent = self._new_intent(allocation, "reserve", allocation.spec.allocations)
        catalogue = await self._kinds.all()
        return lambda spec: with_reservation(spec, intent, (), catalogue)

    def _new_intent(
        self,
        allocation: Allocation,
        action: Action,
        amounts: Amounts,
        *,
        new_amounts: Amounts = (),
        fencing_token: int = 0,
    ) -> Intent:
        return Intent(
            allocation=allocation.name,
            project=project_of(allocation),
            owner=owner_of(allocation),
            action=action,
            amounts=amounts,
            deadline=deadline_after(allocation, self._clock.now() + self._intent_lifetime),
            new_amounts=new_amounts,
            fencing_token=fencing_token,
        )


QuotaCheck = Callable[[Quota], None]
"""Raises if a quota record must not be written."""


class Ledger:
    """Quota records and allocations of all organizations. A process has one. Every method can be repeated."""

    def __init__(self, store: Store, clock: Clock, randomness: Randomness, *, intent_lifetime: timedelta) -> None:
        self.kinds = QuotaKinds(store)
        self.writer = QuotaWriter(store, clock, randomness)
        self.intents = Intents(store, clock, self.writer)
        self._validation = Validation(store, clock, self.intents, self.kinds, intent_lifetime=intent_lifetime)
        self._store, self._clock = store, clock

    async def reserve(self, requested: Allocation, *, log: Sequence[Record] = ()) -> Allocation:
        """Create an allocation within the limits, or return the one that the same operation created."""
        for _ in range(MAX_ATTEMPTS):
            found = await find(self._store, Allocation, requested.name)
            if found is not None:
                try:
                    return await self.intents.retain(same_operation(found, requested), log)
                except Conflict:
                    continue
            record, _ = await self.writer.write(
                organization_of(requested),
                lambda record: self._validation.reserve(record, requested),
                key=requested.name,
            )
            intent = find_intent(record.spec, requested.name)
            if intent is None:
                continue  # it was created meanwhile
            try:
                allocation = await self._store.create(reserved_under(requested, intent, self._clock.now()), log=log)
            except AlreadyExists:
                continue  # the same operation runs twice, or took too long
            if allocation.spec.state == "confirmed":
                await self.intents.complete_confirmed(allocation)
            return allocation
        raise Conflict("Allocation", requested.name)

    async def confirm(self, name: str, *, log: Sequence[Record] = ()) -> Allocation:
        return await self.intents.confirm(name, log)

    async def update(self, name: str, edit: Edit, *, check: Check, log: Sequence[Record] = ()) -> Allocation:
        """Update an allocation within the limits. This also confirms it, since its owner exists."""
        for _ in range(MAX_ATTEMPTS):
            allocation = await self.intents.get_active(name)
            check(allocation)
            organization = organization_of(allocation)
            await self.intents.complete_open(organization, name)
            try:
                record, allocation = await self.writer.write(
                    organization, lambda record: self._validation.update(record, name, edit, check), key=name
                )
            except Conflict:
                continue
            intent = find_intent(record.spec, name)
            assert intent is not None, "it was just added"
            return await self._apply_update(organization, intent, allocation, edit, log)
        raise Conflict("Allocation", name)

    async def release(self, name: str, *, fencing_token: int = 0, check: Check, log: Sequence[Record] = ()) -> None:
        """Release an allocation, which cannot be renewed with an earlier fencing token. It can be repeated."""
        allocation: Allocation | None = await self._store.get(Allocation, name)
        assert allocation is not None, "get returns or raises"
        organization = organization_of(allocation)
        for _ in range(MAX_ATTEMPTS):
            try:
                record, allocation = await self.writer.write(
                    organization, lambda record: self._validation.release(record, name, fencing_token, check), key=name
                )
            except Conflict:
                continue
            intent = find_intent(record.spec, name)
            if intent is not None:
                await self.intents.complete_from(
                    organization, intent, allocation, () if intent.action == "update" else log
                )
                allocation = await find(self._store, Allocation, name)
            if allocation is None or is_released_for(allocation, fencing_token):
                return  # otherwise another intent was completed first
        raise Conflict("Allocation", name)

    async def roll_back(self, organization: str, project: str, name: str) -> bool:
        """Release the reservation of an allocation that was never created; return whether there was one."""
        intent = find_intent((await self.writer.read_latest(organization, key=name)).spec, name)
        if intent is None or intent.project != project:
            return False
        await self.intents.complete_latest(organization, intent)
        return True

    async def renew(self, name: str, *, check: Check, log: Sequence[Record] = ()) -> Allocation:
        """Reserve the amounts of a released allocation again, within the limits. It must be confirmed again."""
        for _ in range(MAX_ATTEMPTS):
            allocation = await self._store.get(Allocation, name)
            check(allocation)
            organization = organization_of(allocation)
            try:
                if is_active(allocation):
                    return await self.intents.retain(allocation, log)
                await self.intents.complete_open(organization, name)
                record, allocation = await self.writer.write(
                    organization, lambda record: self._validation.renew(record, name, check), key=name
                )
                intent = find_intent(record.spec, name)
                assert intent is not None, "it was just added"
                return await self._store.update(renewed(allocation, intent, self._clock.now()), log=log)
            except Conflict:
                continue
        raise Conflict("Allocation", name)

    async def set_limits(
        self,
        organization: str,
        project: str | None,
        change: Callable[[Limits], Limits],
        *,
        check: QuotaCheck,
        log: Sequence[Record],
    ) -> Quota:
        """Write what `change` makes of the limits of an organization, or of one of its projects."""

        async def validate(record: Quota) -> tuple[Apply, None]:
            check(record)
            catalogue = await self.kinds.all()
            return lambda spec: with_limits(spec, project, change(limits_in(spec, project)), catalogue), None

        key = f"limits of {project or organization}"
        return (await self.writer.write(organization, validate, key=key, log=log))[0]

    async def _apply_update(
        self, organization: str, intent: Intent, allocation: Allocation, edit: Edit, log: Sequence[Record]
    ) -> Allocation:
        """Write an updated allocation and complete the intent, unless another caller has completed it."""
        amounts = intent.new_amounts
        for _ in range(MAX_ATTEMPTS):
            try:
                allocation = await self._store.update(with_amounts(edit(allocation), amounts), log=log)
            except Conflict:
                allocation = await self.intents.get_active(allocation.name)
                amounts = (
                    intent.new_amounts
                    if await self.intents.is_open(organization, intent)
                    else allocation.spec.allocations
                )
                continue
            await self.intents.complete(organization, intent, intent.new_amounts)
            return allocation
        raise Conflict("Allocation", allocation.name)
