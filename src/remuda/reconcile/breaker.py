"""The breaker: mass destruction that nobody has asked for stops, and asks.

Before a controller destroys something at a provider it asks `allow`. A deletion mark on the object, or on any owner of
it, is a user's request: it always passes and does not count. Whatever else is destroyed (a replacement, what looks like
an orphan, the result of a misread answer) is counted by group, a project unless set otherwise. More than a set share of
the group's objects within the window trips the breaker: from then on nothing of that group is destroyed unasked, until
an operator releases it. A few always pass, since a share of a handful says nothing.

The count and the trip are a stored object, written by compare-and-swap before anything is destroyed. So neither a
restart nor a crash loop resets them, and two processes that both believe to lead count together.
"""

from dataclasses import dataclass
from datetime import timedelta

import msgspec

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.kernel.ids import derived_id
from remuda.reconcile.kinds import BreakerRecord, BreakerSpec, Destruction
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.results import Blocked
from remuda.reconcile.run import Run
from remuda.store.objects import Metadata, Resource

__all__ = ["MASS_DESTRUCTION", "PROJECT_LABEL", "Breaker", "BreakerSettings"]

PROJECT_LABEL = "unikorn-cloud.org/project"
"""The label whose value is the group of an object, unless another is set."""

MASS_DESTRUCTION = "MassDestruction"
"""The reason by which a blocked destruction is known."""

_NAMES = "d1b2a0a4-3c7e-5f6b-8d0e-5f1d6a9e4b27"  # a namespace of our own, for the names of breakers
_PAGE = 500
_POPULATION_S = 60.0

replace = msgspec.structs.replace


@dataclass(frozen=True, kw_only=True)
class BreakerSettings:
    """What an operator may set."""

    share: float = 0.2
    """More than this share of a group's objects, destroyed unasked, is too much."""
    always: int = 3
    """So many pass in any case."""
    most: int = 1000
    """More than so many are too much in any case."""
    window: timedelta = timedelta(minutes=30)
    """What was destroyed longer ago no longer counts."""


class Breaker:
    """Guards what one controller destroys of one kind."""

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
        self._kind = kind
        self._store = ports.store
        self._clock = ports.clock
        self._reporter = ports.reporter
        self._settings = settings or BreakerSettings()
        self._label = label
        self._populations: dict[str, tuple[float, int]] = {}

    async def allow(self, resource: Resource, run: Run) -> Blocked | None:
        """Return None if it may be destroyed, otherwise what to return instead of destroying it.

        Asking again for the same object counts once. Raises Conflict when another worker was counting: try again.
        """
        if await self._is_asked_for(resource):
            return None
        group = resource.metadata.labels.get(self._label, "")
        record = await self._record(group)
        if record.spec.tripped is not None:
            await self.report()
            return self._blocked(group)
        now = self._clock.now()
        recent = tuple(each for each in record.spec.destroyed if now - each.time < self._settings.window)
        if any(each.uid == resource.uid for each in recent):
            return None
        if await self._is_too_much(group, len(recent) + 1):
            return await self._trip(record, resource, run)
        spec = replace(record.spec, destroyed=(*recent, Destruction(uid=resource.uid, time=now)))
        await self._write(replace(record, spec=spec), resource, run, "destroyed unasked")
        return None

    async def release(self, group: str) -> None:
        """Let a controller go on in a group, and count from nothing again."""
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
        """Return the groups in which nothing is destroyed unasked."""
        page = await self._store.list(BreakerRecord, index=("tripped", self._controller))
        return [record.spec.group for record in page.items]

    async def report(self) -> None:
        """Tell the reporter how many groups have tripped: call it once when the process starts."""
        self._reporter.tripped(self._controller, len(await self.tripped()))

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

    async def _is_too_much(self, group: str, count: int) -> bool:
        settings = self._settings
        if count <= settings.always:
            return False
        return count > settings.most or count > settings.share * await self._population(group)

    async def _population(self, group: str) -> int:
        """Return how many objects the group has; counted anew when the last count is old."""
        now = self._clock.monotonic()
        counted, population = self._populations.get(group, (float("-inf"), 0))
        if now - counted < _POPULATION_S:
            return population
        population = 0
        after: str | None = None
        while True:
            page = await self._store.list(
                self._kind, labels={self._label: group} if group else None, limit=_PAGE, after=after
            )
            population += sum(each.metadata.labels.get(self._label, "") == group for each in page.items)
            after = page.next
            if after is None:
                break
        self._populations = {group: (now, population)} | {
            each: known for each, known in self._populations.items() if now - known[0] < _POPULATION_S
        }
        return population

    async def _trip(self, record: BreakerRecord, resource: Resource, run: Run) -> Blocked:
        spec = replace(record.spec, tripped=self._clock.now())
        await self._write(replace(record, spec=spec), resource, run, "mass destruction stopped")
        run.log.error("mass destruction stopped", group=spec.group, destroyed=len(spec.destroyed))
        await self.report()
        return self._blocked(spec.group)

    def _blocked(self, group: str) -> Blocked:
        where = f"in {group} " if group else ""
        return Blocked(MASS_DESTRUCTION, f"too much {where}would go without a request, an operator has to release it")

    async def _record(self, group: str) -> BreakerRecord:
        name = derived_id(_NAMES, f"{self._controller}/{group}")
        try:
            return await self._store.get(BreakerRecord, name)
        except NotFound:
            spec = BreakerSpec(controller=self._controller, group=group)
            return BreakerRecord(metadata=Metadata(name=name), spec=spec)

    async def _write(self, record: BreakerRecord, resource: Resource, run: Run, event: str) -> None:
        log = [run.entry(resource, event, group=record.spec.group, destroyed=len(record.spec.destroyed))]
        if record.version:
            await self._store.update(record, log=log)
            return
        try:
            await self._store.create(record, log=log)
        except AlreadyExists:
            raise Conflict("BreakerRecord", record.name) from None
