"""The breaker: mass destruction that nobody has asked for stops, and asks.

Before a controller destroys something at a provider it asks `allow`. A deletion mark on the object, or on any owner of
it, is a user's request: it always passes and does not count. Whatever else is destroyed (a replacement, what looks like
an orphan, the result of a misread answer) is counted twice: by group, a project unless set otherwise, and over all
groups, since many small ones can go without any of them losing much. More than a set share of the objects within the
window trips the breaker of that group, or of everything: from then on nothing of it is destroyed unasked, until an
operator releases it. A few always pass, since a share of a handful says nothing.

The counts and the trips are stored objects, written by compare-and-swap before anything is destroyed. So neither a
restart nor a crash loop resets them, and two processes that both believe to lead count together. The one record of
everything is no bottleneck: within a process callers take turns, and only another process makes one try again.

What counts is young by the wall's clock, or by that of this process: a jump of the former forgets nothing that this
process knew of. Only a jump together with a restart does.

How many objects a group has, for shares of it: counted by name, so that one that cannot be read stops nothing.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, Unreadable, Unsealable
from remuda.kernel.ids import derived_id
from remuda.reconcile.kinds import EVERYTHING, BreakerRecord, BreakerSpec, Destruction
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.reporter import tell
from remuda.reconcile.results import Blocked, Run
from remuda.reconcile.sources import names
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata, Resource

_COUNTED_ANEW_S = 60.0


class Population:
    """The objects of one kind, by the value of a label."""

    def __init__(self, kind: type[Resource], label: str, *, store: Store, clock: Clock) -> None:
        self._kind = kind
        self._label = label
        self._store = store
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    async def of(self, group: str) -> int:
        """Return how many objects the group has; counted anew when the last count is old."""
        now = self._clock.monotonic()
        self._counts = {each: known for each, known in self._counts.items() if now - known[0] < _COUNTED_ANEW_S}
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
        """Tell whether an object is of no group, which no index knows; of one that cannot be read nobody knows."""
        try:
            resource = await self._store.get(self._kind, name)
        except (NotFound, Unreadable, Unsealable):
            return False
        return not resource.metadata.labels.get(self._label)


PROJECT_LABEL = "unikorn-cloud.org/project"
"""The label whose value is the group of an object, unless another is set."""

MASS_DESTRUCTION = "MassDestruction"
"""The reason by which a blocked destruction is known."""

_NAMES = "d1b2a0a4-3c7e-5f6b-8d0e-5f1d6a9e4b27"  # a namespace of our own, for the names of breakers


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much may be destroyed unasked within the window."""

    share: float = 0.2
    """More than this share of the objects is too much."""
    always: int = 3
    """So many pass in any case."""
    most: int = 1000
    """More than so many are too much in any case."""


@dataclass(frozen=True, kw_only=True)
class BreakerSettings:
    """What an operator may set."""

    group: Limit = Limit()
    """Of one group."""
    overall: Limit = Limit(always=20)
    """Of all groups together."""
    window: timedelta = timedelta(minutes=30)
    """What was destroyed longer ago no longer counts."""


class Breaker:
    """Guards what one controller destroys of one kind. Hand it to the driver, which reports what it has stopped."""

    def __init__(
        self,
        controller: str,
        kind: type[Resource],
        *,
        ports: ReconcilePorts,
        settings: BreakerSettings | None = None,
        label: str = PROJECT_LABEL,
    ) -> None:
        self._controller = controller
        self._store = ports.store
        self._clock = ports.clock
        self._reporter = ports.reporter
        self._settings = settings or BreakerSettings()
        self._label = label
        self._population = Population(kind, label, store=ports.store, clock=ports.clock)
        self._destroyed: dict[str, float] = {}
        """When what counts was destroyed, by uid and in monotonic time."""
        self._turn = asyncio.Lock()
        tell(ports.reporter.armed, controller)

    async def allow(self, resource: Resource, run: Run) -> Blocked | None:
        """Return None if it may be destroyed, otherwise what to return instead of destroying it.

        Asking again for the same object counts once. Raises Conflict when another process was counting: try again.
        """
        if await self._is_asked_for(resource):
            return None
        group = resource.metadata.labels.get(self._label, "")
        async with self._turn:
            records = [await self._record(group), await self._record(EVERYTHING)]
            stopped = next((each.spec.group for each in records if each.spec.tripped is not None), None)
            if stopped is not None:
                await self.report()
                return _blocked(stopped)
            return await self._count(records, resource, run)

    async def release(self, group: str) -> None:
        """Let a controller go on in a group, or in `EVERYTHING`, and count from nothing again."""
        while True:
            record = await self._record(group)
            if not record.version:
                return
            try:
                await self._store.update(replace(record, spec=replace(record.spec, destroyed=(), tripped=None)))
            except Conflict:
                continue
            await self.report()
            return

    async def tripped(self) -> list[str]:
        """Return the groups in which nothing is destroyed unasked; `EVERYTHING` may be one of them."""
        page = await self._store.list(BreakerRecord, index=("tripped", self._controller))
        return [record.spec.group for record in page.items]

    async def report(self) -> None:
        """Tell the reporter how many groups have tripped."""
        tell(self._reporter.tripped, self._controller, len(await self.tripped()))

    async def _is_asked_for(self, resource: Resource) -> bool:
        """Tell whether the object or an owner of it, near or far, is marked for deletion."""
        if resource.is_marked:
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
                if owner.is_marked:
                    return True
                pending += owner.metadata.owner_references
        return False

    async def _count(self, records: list[BreakerRecord], resource: Resource, run: Run) -> Blocked | None:
        counted = []
        for record in records:
            recent = self._recent(record)
            if any(each.uid == resource.uid for each in recent):
                continue
            if await self._is_too_much(record.spec.group, len(recent) + 1):
                return await self._trip(record, resource, run)
            destroyed = (*recent, Destruction(uid=resource.uid, time=self._clock.now()))
            counted.append(replace(record, spec=replace(record.spec, destroyed=destroyed)))
        for record in counted:
            is_group = record.spec.group != EVERYTHING
            await self._write(record, [_entry(record, resource, run, "DestroyedUnasked")] if is_group else [])
        self._destroyed[resource.uid] = self._clock.monotonic()
        return None

    def _recent(self, record: BreakerRecord) -> tuple[Destruction, ...]:
        """Return what still counts."""
        now, ticks, window_s = self._clock.now(), self._clock.monotonic(), self._settings.window.total_seconds()
        self._destroyed = {uid: at for uid, at in self._destroyed.items() if ticks - at < window_s}
        for each in record.spec.destroyed:
            age_s = max(0.0, (now - each.time).total_seconds())
            if age_s < window_s:
                self._destroyed.setdefault(each.uid, ticks - age_s)
        return tuple(each for each in record.spec.destroyed if each.uid in self._destroyed)

    async def _is_too_much(self, group: str, count: int) -> bool:
        limit = self._settings.overall if group == EVERYTHING else self._settings.group
        if count <= limit.always:
            return False
        return count > limit.most or count > limit.share * await self._population.of(group)

    async def _trip(self, record: BreakerRecord, resource: Resource, run: Run) -> Blocked:
        group, destroyed = record.spec.group, len(record.spec.destroyed)
        tripped = replace(record, spec=replace(record.spec, tripped=self._clock.now()))
        await self._write(tripped, [_entry(tripped, resource, run, "MassDestructionStopped")])
        run.log.error("mass destruction stopped", group=group, destroyed=destroyed)
        await self.report()
        return _blocked(group)

    async def _record(self, group: str) -> BreakerRecord:
        name = derived_id(_NAMES, f"{self._controller}/{group}")
        try:
            return await self._store.get(BreakerRecord, name)
        except NotFound:
            spec = BreakerSpec(controller=self._controller, group=group)
            return BreakerRecord(metadata=Metadata(name=name), spec=spec)

    async def _write(self, record: BreakerRecord, log: list[Record]) -> None:
        if record.version:
            await self._store.update(record, log=log)
            return
        try:
            await self._store.create(record, log=log)
        except AlreadyExists:
            raise Conflict("BreakerRecord", record.name) from None


def _entry(record: BreakerRecord, resource: Resource, run: Run, event: str) -> Record:
    return run.entry(resource, event, group=record.spec.group, destroyed=len(record.spec.destroyed))


def _blocked(group: str) -> Blocked:
    where = {"": "", EVERYTHING: "in all "}.get(group, f"in {group} ")
    return Blocked(MASS_DESTRUCTION, f"too much {where}would go without a request, an operator has to release it")
