"""Deletion guard: stops mass deletion that was not requested, until an operator resumes it.

A controller calls `admit_deletion` before it deletes something at a provider. A deletion that was requested, of the
object or of any of its owners, always passes and is not counted. Any other is counted by group, which is a project by
default, and over all groups. More than a configured share of the objects within the window trips the guard of that
group, or of everything: from then on nothing of it is deleted without a request. A few deletions always pass, since a
share of a handful says nothing.

The counts and trips are stored objects, written by compare-and-swap before anything is deleted, so no restart resets
them, and two processes that both believe to lead count together. The age of a count is measured by the wall clock or by
the monotonic clock of this process: only a jump of the former together with a restart loses counts.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, Unreadable, Unsealable
from remuda.kernel.ids import derived_id
from remuda.reconcile.kinds import EVERYTHING, Deletion, DeletionGuardRecord, DeletionGuardSpec
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.reporter import report
from remuda.reconcile.results import Blocked, ReconcileContext
from remuda.reconcile.sources import names
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata, Resource

_RECOUNT_AFTER_S = 60.0


class Population:
    """The number of objects of one kind, readable or not, by the value of a label."""

    def __init__(self, kind: type[Resource], label: str, *, store: Store, clock: Clock) -> None:
        self._kind, self._label, self._store = kind, label, store
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    async def of(self, group: str) -> int:
        """Return the number of objects of a group; counted again when the last count is old."""
        now = self._clock.monotonic()
        self._counts = {each: known for each, known in self._counts.items() if now - known[0] < _RECOUNT_AFTER_S}
        if group not in self._counts:
            self._counts[group] = now, await self._count(group)
        return self._counts[group][1]

    async def _count(self, group: str) -> int:
        labels = None if group in {"", EVERYTHING} else {self._label: group}
        count = 0
        async for name in names(self._store, self._kind, labels=labels):
            count += bool(group) or await self._has_no_label(name)
        return count

    async def _has_no_label(self, name: str) -> bool:
        """Return whether an object has no group, which no index knows. An unreadable one does not count."""
        try:
            resource = await self._store.get(self._kind, name)
        except (NotFound, Unreadable, Unsealable):
            return False
        return not resource.metadata.labels.get(self._label)


PROJECT_LABEL = "unikorn-cloud.org/project"
"""The label whose value is the group of an object, by default."""

MASS_DELETION = "MassDeletion"
"""The reason of a blocked deletion."""

_NAMES = "d1b2a0a4-3c7e-5f6b-8d0e-5f1d6a9e4b27"  # our own namespace, for the names of guard records


@dataclass(frozen=True, kw_only=True)
class DeletionLimit:
    """A limit for deletions that were not requested, within the window."""

    share: float = 0.2
    """More than this share of the objects is too much."""
    always: int = 3
    """This many always pass."""
    most: int = 1000
    """More than this many never pass."""


@dataclass(frozen=True, kw_only=True)
class DeletionGuardSettings:
    """Limits of a deletion guard."""

    group: DeletionLimit = DeletionLimit()
    overall: DeletionLimit = DeletionLimit(always=20)
    """The limit of all groups together."""
    window: timedelta = timedelta(minutes=30)
    """The time for which a deletion is counted."""


class DeletionGuard:
    """Guards the deletions of one controller and kind. The controller reports the groups that it has stopped."""

    def __init__(
        self,
        controller: str,
        kind: type[Resource],
        *,
        ports: ReconcilePorts,
        settings: DeletionGuardSettings | None = None,
        label: str = PROJECT_LABEL,
    ) -> None:
        self._controller = controller
        self._store = ports.store
        self._clock = ports.clock
        self._reporter = ports.reporter
        self._settings = settings or DeletionGuardSettings()
        self._label = label
        self._population = Population(kind, label, store=ports.store, clock=ports.clock)
        self._deleted: dict[str, float] = {}
        """The monotonic time of each counted deletion, by uid."""
        self._lock = asyncio.Lock()
        report(ports.reporter.armed, controller)

    async def admit_deletion(self, resource: Resource, context: ReconcileContext) -> Blocked | None:
        """Count a deletion, and return None; or, if it must not happen, the result that the controller returns instead.

        Several calls for one object count once. Raises Conflict when another process counted concurrently: retry.
        """
        if await self._is_deletion_requested(resource):
            return None
        group = resource.metadata.labels.get(self._label, "")
        async with self._lock:
            records = [await self._record(group), await self._record(EVERYTHING)]
            stopped = next((each.spec.group for each in records if each.spec.tripped is not None), None)
            if stopped is not None:
                await self.report()
                return _blocked(stopped)
            return await self._count(records, resource, context)

    async def resume(self, group: str) -> None:
        """Allow deletions in a group, or in `EVERYTHING`, again, and reset its count."""
        while True:
            record = await self._record(group)
            if not record.version:
                return
            try:
                await self._store.update(replace(record, spec=replace(record.spec, deleted=(), tripped=None)))
            except Conflict:
                continue
            await self.report()
            return

    async def tripped(self) -> list[str]:
        """Return the groups in which nothing is deleted without a request; `EVERYTHING` may be one of them."""
        page = await self._store.list(DeletionGuardRecord, index=("tripped", self._controller))
        return [record.spec.group for record in page.items]

    async def report(self) -> None:
        """Report the number of tripped groups."""
        report(self._reporter.tripped, self._controller, len(await self.tripped()))

    async def _is_deletion_requested(self, resource: Resource) -> bool:
        """Return whether deletion of the object, or of a direct or indirect owner, was requested."""
        if resource.is_deleting:
            return True
        seen, pending = {resource.uid}, list(resource.metadata.owner_references)
        while pending:
            reference = pending.pop()
            kind = self._store.registry.owning(reference)
            if kind is None or reference.uid in seen:
                continue
            seen.add(reference.uid)
            try:
                owner: Resource = await self._store.get(kind.type, reference.name)
            except NotFound:
                continue
            if owner.uid == reference.uid:
                if owner.is_deleting:
                    return True
                pending += owner.metadata.owner_references
        return False

    async def _count(
        self, records: list[DeletionGuardRecord], resource: Resource, context: ReconcileContext
    ) -> Blocked | None:
        counted = []
        for record in records:
            recent = self._recent(record)
            if any(each.uid == resource.uid for each in recent):
                continue
            if await self._exceeds_limit(record.spec.group, len(recent) + 1):
                return await self._trip(record, resource, context)
            deleted = (*recent, Deletion(uid=resource.uid, time=self._clock.now()))
            counted.append(replace(record, spec=replace(record.spec, deleted=deleted)))
        for record in counted:
            is_group = record.spec.group != EVERYTHING
            await self._write(record, [_entry(record, resource, context, "DeletedWithoutRequest")] if is_group else [])
        self._deleted[resource.uid] = self._clock.monotonic()
        return None

    def _recent(self, record: DeletionGuardRecord) -> tuple[Deletion, ...]:
        """Return the deletions within the window."""
        now, ticks, window_s = self._clock.now(), self._clock.monotonic(), self._settings.window.total_seconds()
        self._deleted = {uid: at for uid, at in self._deleted.items() if ticks - at < window_s}
        for each in record.spec.deleted:
            age_s = max(0.0, (now - each.time).total_seconds())
            if age_s < window_s:
                self._deleted.setdefault(each.uid, ticks - age_s)
        return tuple(each for each in record.spec.deleted if each.uid in self._deleted)

    async def _exceeds_limit(self, group: str, count: int) -> bool:
        limit = self._settings.overall if group == EVERYTHING else self._settings.group
        if count <= limit.always:
            return False
        return count > limit.most or count > limit.share * await self._population.of(group)

    async def _trip(self, record: DeletionGuardRecord, resource: Resource, context: ReconcileContext) -> Blocked:
        group, deleted = record.spec.group, len(record.spec.deleted)
        tripped = replace(record, spec=replace(record.spec, tripped=self._clock.now()))
        await self._write(tripped, [_entry(tripped, resource, context, "MassDeletionStopped")])
        context.log.error("mass deletion stopped", group=group, deleted=deleted)
        await self.report()
        return _blocked(group)

    async def _record(self, group: str) -> DeletionGuardRecord:
        name = derived_id(_NAMES, f"{self._controller}/{group}")
        try:
            return await self._store.get(DeletionGuardRecord, name)
        except NotFound:
            spec = DeletionGuardSpec(controller=self._controller, group=group)
            return DeletionGuardRecord(metadata=Metadata(name=name), spec=spec)

    async def _write(self, record: DeletionGuardRecord, log: list[Record]) -> None:
        if record.version:
            await self._store.update(record, log=log)
            return
        try:
            await self._store.create(record, log=log)
        except AlreadyExists:
            raise Conflict("DeletionGuardRecord", record.name) from None


def _entry(record: DeletionGuardRecord, resource: Resource, context: ReconcileContext, event: str) -> Record:
    return context.event(resource, event, group=record.spec.group, deleted=len(record.spec.deleted))


def _blocked(group: str) -> Blocked:
    where = {"": "", EVERYTHING: "in all groups "}.get(group, f"in {group} ")
    return Blocked(
        MASS_DELETION,
        f"too many objects {where}would be deleted without a request, "
        "so deletion is paused until an operator resumes it",
    )
