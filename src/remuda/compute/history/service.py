"""The history of instances: their timeline, their operations, and the explanation of their state.

Every method takes the context of the call and requires the permission to read the instance. The history stays readable
after the instance was deleted, with the same permission, for as long as it is kept. Events of an instance's server are
in the instance's own timeline, as its controller observed them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from remuda.access.checks import require_for_object
from remuda.access.principal import Context
from remuda.compute.history.explanation import (
    ExplanationInput,
    Tombstone,
    explain,
    explain_deleted,
    find_deletion_cause,
    find_power_request,
    find_tombstone,
)
from remuda.compute.history.reasons import PowerRequest
from remuda.compute.history.schema import EventRead, ExplanationRead, OperationRead
from remuda.compute.history.timeline import (
    OperationView,
    images_in,
    incarnation_of,
    is_name_conflict,
    read_entries,
    rejected_operations,
    without_rejected,
)
from remuda.compute.instances.rules import has_scope
from remuda.compute.instances.server_lookup import is_in_scope
from remuda.compute.kinds import INSTANCE, ComputeInstance, ProjectPolicy
from remuda.compute.names import permission
from remuda.compute.ports import RegionClient
from remuda.http.list_cache import array
from remuda.http.page_reads import PageRead, Reading
from remuda.http.pagination import PageTokens, page_headers
from remuda.http.responses import Collection, Rendered
from remuda.http.schema import PageQuery
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import Forbidden, Malformed, NotFound, Unavailable
from remuda.kernel.sealing import Sealer
from remuda.operations.kinds import OPEN, Operation
from remuda.operations.service import Operations
from remuda.quota.lifecycle import project_ref
from remuda.region.networks.schema import NetworkRead
from remuda.region.servers.schema import ServerRead
from remuda.resources.conventions import network_of, organization_of, project_of, region_of
from remuda.resources.crud import find
from remuda.resources.query import require_for
from remuda.store.contract import Store
from remuda.store.logs import TIMELINE, Entry, Log, subject_of

READ = permission("instances", "read")
"""The permission to read an instance, which includes its history."""

_DEFAULT_LIMIT = 100
_SLICE = 100
_SOON_AFTER = 500
"""The number of entries within which a rejected operation has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Histories of the instances of all projects."""

    store: Store
    log: Log
    clock: Clock
    sealer: Sealer
    region: RegionClient
    operations: Operations
    _view: OperationView = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_view", OperationView(self.operations.sagas))

    async def list_timeline(self, context: Context, instance: str, query: PageQuery) -> PageRead[list[EventRead]]:
        """Return a page of the events of an instance and of earlier ones with its id, the latest first."""
        found = await self._known(context, instance)
        subject = _subject(instance)
        tokens = PageTokens(self.sealer, path=f"{TIMELINE}/{subject}", caller=context.principal.caller)
        before = None if query.continue_ is None else tokens.read_position(query.continue_)
        limit = query.limit or _DEFAULT_LIMIT

        async def read(reading: Reading) -> Rendered[list[EventRead]]:
            async with reading.page(limit):
                newer, rejected = await self._newer(subject, before, found, reading)
                entries = await self._read(subject, before, rejected, limit + 1, reading)
                images = images_in(entries[:limit])
            names = await self._image_names(context, found, images)  # without a slot: another service may be slow
            async with reading.page(limit):
                shown, older = entries[:limit], entries[limit] if len(entries) > limit else None
                body = array(await _rendered(read_entries(shown, newer=newer, older=older, images=names)))
            continue_token = None if older is None else tokens.write_position(shown[-1].position)
            return Rendered(body, headers=page_headers(query, continue_token))

        return PageRead(read)

    async def list_operations(self, context: Context, instance: str) -> Collection[Operation, list[OperationRead]]:
        await self._known(context, instance)
        index = ("subject", _subject(instance))
        return Collection(
            store=self.store,
            kind=Operation,
            view=self._view,
            index=index,
            visible=lambda each: not is_name_conflict(each),
        )

    async def explain(self, context: Context, instance: str) -> ExplanationRead:
        """Explain the state of an instance: what it waits for, since when, and who can resolve that."""
        found, now = await self._known(context, instance), self.clock.now()
        if isinstance(found, Tombstone):
            return explain_deleted(found, await find_deletion_cause(self.log, _subject(instance), found.uid), now=now)
        servers, network = await self._observed(found)
        policy = await find(self.store, ProjectPolicy, project_of(found))
        # all open operations are fewer than the operations of one instance, of which finished ones are kept
        open_operations = (await self.store.list(Operation, index=OPEN)).items
        about = (INSTANCE.qualified, instance)
        return explain(
            ExplanationInput(
                instance=found,
                servers=servers,
                network=network,
                operations=[each for each in open_operations if (each.spec.subject_kind, each.spec.subject) == about],
                policy=None if policy is None else policy.spec,
                power=await self._power(found),
                now=now,
            )
        )

    async def _power(self, instance: ComputeInstance) -> PowerRequest | None:
        """Return the last request to start or stop an instance, if the instance is stopped."""
        if instance.status.power_state != "Stopped":
            return None
        return await find_power_request(self.log, _subject(instance.name), instance.uid)

    async def _known(self, context: Context, instance: str) -> ComputeInstance | Tombstone:
        """Return an instance that the caller may read, or the record of a deleted one, or raise NotFound."""
        found = await find(self.store, ComputeInstance, instance)
        if found is not None:
            if not has_scope(found):
                raise NotFound(INSTANCE.name, instance)
            require_for(context.principal, READ, found)
            return found
        tombstone = await find_tombstone(self.log, _subject(instance))
        if tombstone is None:
            raise NotFound(INSTANCE.name, instance)
        try:
            organization, project = tombstone.organization, tombstone.project
            require_for_object(context.principal, READ, organization, project, kind=INSTANCE.name, name=instance)
        except Forbidden:
            raise NotFound(INSTANCE.name, instance) from None
        return tombstone

    async def _newer(
        self, subject: str, before: int | None, found: ComputeInstance | Tombstone, reading: Reading
    ) -> tuple[str, set[str]]:
        """Return the uid in the first entry after a cursor, and the operations that were rejected soon after it.

        The uid is the present instance's, if there is no later entry.
        """
        present = found.uid if isinstance(found, ComputeInstance) else ""
        if before is None:
            return present, set()
        page = await self.log.read(TIMELINE, subject, after=before - 1, limit=_SOON_AFTER)
        reading.count(len(page.entries))
        return next(filter(None, map(incarnation_of, page.entries)), present), set(rejected_operations(page.entries))

    async def _read(
        self, subject: str, before: int | None, rejected: set[str], limit: int, reading: Reading
    ) -> Sequence[Entry]:
        """Return up to `limit` entries before a cursor, the latest first, without those of rejected operations."""
        entries: list[Entry] = []
        while True:
            page = await self.log.read_back(TIMELINE, subject, before=before, limit=min(limit - len(entries), _SLICE))
            reading.count(len(page.entries))
            entries += without_rejected(page.entries, rejected)
            if page.next is None or len(entries) == limit:
                return entries
            before = page.next
            await yield_to_loop()

    async def _image_names(
        self, context: Context, found: ComputeInstance | Tombstone, images: set[str]
    ) -> Mapping[str, str]:
        """Return the names of those images that the caller may use now; none if region does not offer them."""
        if isinstance(found, Tombstone):
            organization, region = found.organization, found.region
        else:
            organization, region = organization_of(found), region_of(found)
        if not images or not region:
            return {}
        try:
            offered = await self.region.list_images(context, organization, region)
        except (Unavailable, NotFound, Forbidden, Malformed):  # Malformed if a damaged label holds no id
            return {}
        return {each.metadata.id: each.metadata.name for each in offered if each.metadata.id in images}

    async def _observed(self, instance: ComputeInstance) -> tuple[Sequence[ServerRead] | None, NetworkRead | None]:
        """Return the servers and the network of an instance; nothing if region does not respond."""
        try:
            servers = await self.region.list_servers(instance.name, project_ref(instance))
            network = await self.region.find_network(network_of(instance))
            return [each for each in servers if is_in_scope(instance, each)], network
        except Unavailable:
            return None, None


async def _rendered(events: Iterator[EventRead]) -> Sequence[bytes]:
    """Return events as JSON; each is decoded only when it is rendered."""
    rendered: list[bytes] = []
    for number, event in enumerate(events, start=1):
        rendered.append(msgspec.json.encode(event))
        if number % _SLICE == 0:
            await yield_to_loop()
    return rendered


def _subject(instance: str) -> str:
    return subject_of(INSTANCE.qualified, instance)
