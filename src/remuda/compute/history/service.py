"""The history room: what happened to an instance, what was done to it, and why it is as it is.

All of it is for whoever may read the instance, and as long as it is remembered also for whoever might have read it.
What happened to an instance's server is told in the instance's own timeline, as its controller sees it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from remuda.access.checks import allow_for_object
from remuda.access.context import Context
from remuda.charging.ports import Place
from remuda.compute.history.explaining import Known, explain, explain_gone
from remuda.compute.history.gone import STREAM, GoneInstance, find_gone
from remuda.compute.history.operating import OperationView
from remuda.compute.history.reading import incarnation_of, read_entries
from remuda.compute.history.wire import EventRead, ExplanationRead, OperationRead
from remuda.compute.instances.rules import has_scope
from remuda.compute.kinds.instances import INSTANCE, ComputeInstance
from remuda.compute.kinds.policies import ProjectPolicy
from remuda.compute.permissions import permission
from remuda.compute.ports import NetworkSeen, RegionPort, ServerSeen
from remuda.http.lists.tokens import PageTokens
from remuda.http.replies import Collection
from remuda.http.routes import PageQuery
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Forbidden, NotFound, Unavailable
from remuda.kernel.sealing import Sealer
from remuda.kernel.turns import let_others_run
from remuda.operations.kinds import OPEN, Operation
from remuda.operations.operations import Operations
from remuda.resources.labels import organization_of, project_of
from remuda.resources.reading import find
from remuda.resources.regional import network_of, region_of
from remuda.resources.scoping import allow_for
from remuda.store.contract import Store
from remuda.store.logs import Log, subject_of

__all__ = ["READ", "EventPage", "History"]

READ = permission("instances", "read")
"""Who may read an instance may read its past."""

_DEFAULT_LIMIT = 100
_SLICE = 100


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some of what happened, the latest first."""

    events: list[EventRead]
    next: str | None
    """Hand this back as `continue`; None if there is no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The room."""

    store: Store
    log: Log
    clock: Clock
    sealer: Sealer
    region: RegionPort
    operations: Operations
    _view: OperationView = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_view", OperationView(self.operations.sagas))

    async def timeline(self, context: Context, instance: str, query: PageQuery) -> EventPage:
        """Return what happened to an instance, and to those that had its id before it."""
        found = await self._known(context, instance)
        subject = _subject(instance)
        tokens = PageTokens(self.sealer, path=f"{STREAM}/{subject}", caller=context.principal.caller)
        place = None if query.continue_ is None else tokens.read_position(query.continue_)
        newer = await self._newer(subject, place, found)
        events, place = await self._read(subject, place, newer, query.limit or _DEFAULT_LIMIT)
        return EventPage(events, None if place is None else tokens.write_position(place))

    async def list_operations(self, context: Context, instance: str) -> Collection[Operation, list[OperationRead]]:
        """Return what was done to an instance all or not at all, for as long as that is kept."""
        await self._known(context, instance)
        index = ("subject", _subject(instance))
        return Collection(store=self.store, kind=Operation, view=self._view, index=index)

    async def explain(self, context: Context, instance: str) -> ExplanationRead:
        """Say why an instance is as it is."""
        found, now = await self._known(context, instance), self.clock.now()
        if isinstance(found, GoneInstance):
            return explain_gone(since=found.time, now=now, incarnation=found.uid)
        servers, network = await self._seen(found)
        policy = await find(self.store, ProjectPolicy, project_of(found))
        under_way = (await self.store.list(Operation, index=OPEN)).items  # an instance may have had very many
        about = (INSTANCE.qualified, instance)
        return explain(
            Known(
                instance=found,
                servers=servers,
                network=network,
                operations=[each for each in under_way if (each.spec.subject_kind, each.spec.subject) == about],
                policy=None if policy is None else policy.spec,
                now=now,
            )
        )

    async def _known(self, context: Context, instance: str) -> ComputeInstance | GoneInstance:
        """Return an instance that the caller may read, or what is remembered of one that is gone.

        Of one that is gone a caller without the right is told what everybody is told of one that never was.
        """
        found = await find(self.store, ComputeInstance, instance)
        if found is not None:
            if not has_scope(found):
                raise NotFound(INSTANCE.name, instance)
            allow_for(context.principal, READ, found)
            return found
        gone = await find_gone(self.log, _subject(instance))
        if gone is None:
            raise NotFound(INSTANCE.name, instance)
        try:
            allow_for_object(
                context.principal, READ, gone.organization, gone.project, kind=INSTANCE.name, name=instance
            )
        except Forbidden:
            raise NotFound(INSTANCE.name, instance) from None
        return gone

    async def _newer(self, subject: str, place: int | None, found: ComputeInstance | GoneInstance) -> str:
        """Return the incarnation of what came right after a place; the present one, if nothing did."""
        present = found.uid if isinstance(found, ComputeInstance) else ""
        if place is None:
            return present
        page = await self.log.read(STREAM, subject, after=place - 1, limit=_SLICE)
        return next(filter(None, map(incarnation_of, page.entries)), present)

    async def _read(
        self, subject: str, place: int | None, newer: str, limit: int
    ) -> tuple[list[EventRead], int | None]:
        """Return what came before a place, and where to go on, if there is more."""
        events: list[EventRead] = []
        while True:
            wanted = min(limit - len(events), _SLICE)
            page = await self.log.read_back(STREAM, subject, before=place, limit=wanted + 1)
            entries, rest = page.entries[:wanted], page.entries[wanted:]
            events += read_entries(entries, newer=newer, older=rest[0] if rest else None)
            if not rest:
                return events, None
            place, newer = entries[-1].position, events[-1].incarnation
            if len(events) == limit:
                return events, place
            await let_others_run()

    async def _seen(self, instance: ComputeInstance) -> tuple[Sequence[ServerSeen] | None, NetworkSeen | None]:
        """Return what region shows of an instance; nothing, if it does not answer."""
        place, network = Place(organization_of(instance), project_of(instance)), network_of(instance)
        try:
            servers = await self.region.servers_of(instance.name, place, region_of(instance), network)
            return servers, await self.region.find_network(network)
        except Unavailable:
            return None, None


def _subject(instance: str) -> str:
    return subject_of(INSTANCE.qualified, instance)
