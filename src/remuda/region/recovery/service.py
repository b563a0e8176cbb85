"""Recovery: the service that operators call where a controller cannot continue by itself.

Every method checks that the caller has the permission everywhere, and can be repeated: what a crash interrupted is
completed by the same request.

**Retry** has a controller reconcile an object at once, and resets a server's failure count. **Abandon** deletes an
object whose resources cannot be deleted at the provider, after recording them as orphans. **Adopt** creates the object
of a server that lost it. **Forget** deletes the record of an orphan, or the orphan itself.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from remuda.access.checks import require_everywhere
from remuda.access.principal import Context
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, NotFound, RemudaError
from remuda.providers.contract.common import Handle, id_in, uid_in
from remuda.providers.contract.provider import EventSubject
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.kinds import EVERYTHING
from remuda.region.catalogue.provider_registry import ProviderRegistry, require
from remuda.region.kinds.common import ABANDONED, ABANDONED_EVENT, RETRIED, is_abandoned
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.orphans import (
    ADDRESSED_SUBJECTS,
    ORPHAN,
    Orphan,
    OrphanClaim,
    OrphanSpec,
    new_orphan,
    orphan_id,
)
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import SERVER, Server
from remuda.region.monitor.inventory import Owners, find_inventory
from remuda.region.names import permission
from remuda.region.networks.ipam import find_address_of
from remuda.region.recovery import rules
from remuda.region.recovery.rules import KIND_OF, resources_of
from remuda.region.recovery.schema import (
    AbandonWrite,
    AdoptWrite,
    ForgetWrite,
    OrphanQuery,
    OrphanRead,
    RecoverableKind,
)
from remuda.resources.conventions import IDENTITY, REGION, identity_of, organization_of, project_of, region_of
from remuda.resources.crud import audit_records, find, retry_on_conflict
from remuda.store.contract import Store, label_index
from remuda.store.logs import Record, timeline_event
from remuda.store.objects import Resource

_PERMISSION = permission("regions", "update")
"""Permission of platform administrators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Recovery of objects and orphans of all regions."""

    store: Store
    clock: Clock
    providers: ProviderRegistry
    owners: Owners
    guard: DeletionGuard
    """Stops the deletion of orphans when there are too many."""

    async def orphans(self, context: Context, query: OrphanQuery) -> Collection[Orphan, list[OrphanRead]]:
        """Return the orphans: resources at providers that belong to no object."""
        require_everywhere(context.principal, _PERMISSION)
        regions = frozenset(query.regions)
        return Collection(
            store=self.store,
            kind=Orphan,
            view=rules.orphan_view,
            labels={REGION: query.regions[0]} if len(regions) == 1 else {},
            scopes=[(label_index(REGION), each) for each in regions] if len(regions) > 1 else None,
            visible=(lambda orphan: region_of(orphan) in regions) if len(regions) > 1 else None,
        )

    async def retry(self, context: Context, kind: RecoverableKind, name: str) -> None:
        """Have the controller reconcile an object now, with its failures reset."""
        require_everywhere(context.principal, _PERMISSION)

        async def write() -> None:
            found: Resource = await self.store.get(KIND_OF[kind], name)
            if isinstance(found, Server) and rules.needs_reset(found):
                found = await self.store.update_status(rules.retried_server(found))
            annotated = rules.annotated(found, RETRIED, context.operation)
            await self.store.update(annotated, log=audit_records(context, kind, found))

        await retry_on_conflict(write)

    async def abandon(self, context: Context, kind: RecoverableKind, name: str, body: AbandonWrite) -> None:
        """Complete the deletion of an object without deleting its resources at the provider."""
        require_everywhere(context.principal, _PERMISSION)

        async def write() -> None:
            found: Resource = await self.store.get(KIND_OF[kind], name)
            if not found.is_deleting:
                remedy = "delete it first, and abandon it if its deletion does not complete"
                raise Invalid(f"The object {name} of {kind}", "is not being deleted", remedy=remedy)
            if is_abandoned(found):
                return
            await self._record_orphans(found, body.reason)
            log = [*audit_records(context, kind, found), self._event(found, body.reason, context)]
            await self.store.update(rules.annotated(found, ABANDONED, body.reason), log=log)

        await retry_on_conflict(write)

    async def adopt(self, context: Context, orphan: str, body: AdoptWrite) -> Server:
        """Create the object of a server that exists at a provider, on the network that it is on there."""
        require_everywhere(context.principal, _PERMISSION)
        repeated = (await self.store.list(Server, index=("operation", context.operation))).items
        if repeated:
            return repeated[0]  # the same request, whose response was lost
        record = await self.store.get(Orphan, orphan)
        rules.check_adoptable(record, body)
        lost = await self._find_lost(record, await self.store.get(Network, body.network_id))
        payer = payer_principal(context.principal, ProjectRef(organization_of(lost.network), project_of(lost.network)))
        groups = await self._groups(lost.port.spec.groups)
        server = rules.adopted_server(lost, body.name, groups, payer, operation=context.operation)
        await self._claim("adoption", orphan)
        created = await self.store.create(server, log=audit_records(context, SERVER.plural, server))
        await self._drop(record.name)
        await self._drop(orphan_id(region_of(record), "port", rules.port_of(record)))
        return created

    async def forget(self, context: Context, orphan: str, body: ForgetWrite) -> None:
        """Delete the record of an orphan, which is found again if it still exists; or the orphan at its provider."""
        require_everywhere(context.principal, _PERMISSION)
        record = await self.store.get(Orphan, orphan)
        if not body.remove:
            await self._check_forgettable(record.spec)
            log = audit_records(context, ORPHAN.plural, record)
            await self.store.delete(Orphan, record.name, uid=record.uid, log=log)
            return
        cloud = await self.providers.get(region_of(record))
        inventory = require(find_inventory(cloud.provider, record.spec.subject))
        if await self.owners.orphan_cause(inventory, record.spec.handle) is None:
            raise Invalid("orphan", "belongs to an object again", remedy="delete the object")
        await self._claim("removal", orphan)
        await inventory.remove(record.spec.handle)

    async def resume_deletions(self, context: Context) -> None:
        """Have the monitor delete orphans again, after it stopped because there were too many."""
        require_everywhere(context.principal, _PERMISSION)
        for group in ("", EVERYTHING):  # orphans are in no project, so both groups have the same limit
            await self.guard.resume(group)

    async def _claim(self, claim: OrphanClaim, orphan: str) -> None:
        async def write() -> None:
            record = await self.store.get(Orphan, orphan)
            await self.store.update(rules.claimed_for(claim, record, self.clock.now()))

        await retry_on_conflict(write)

    async def _find_lost(self, record: Orphan, network: Network) -> rules.LostServer:
        identity = await self.store.get(Identity, identity_of(network))
        provider = (await self.providers.get(region_of(record))).provider
        found = await require(provider.servers).find_server(record.spec.handle)
        if found is None:
            raise NotFound("server at the provider", record.spec.provider_name)
        if found.state == "removing":
            raise Invalid("orphan", "is being deleted at its provider", remedy="create a new server")
        port = rules.check_network(
            record, network, identity, await require(provider.ports).find_port(rules.port_of(record))
        )
        return rules.LostServer(orphan=record, network=network, found=found, port=port)

    async def _groups(self, names: Sequence[str]) -> list[str]:
        """Return the security groups of a port that still exist."""
        found = [(name, await find(self.store, SecurityGroup, id_in(name), include_deleting=False)) for name in names]
        return [group.name for name, group in found if group is not None and group.uid == uid_in(name)]

    async def _check_forgettable(self, spec: OrphanSpec) -> None:
        """Raise Invalid for an orphan with an allocated address, which is released when its record is dropped."""
        if spec.has_address and await find_address_of(self.store, spec.object_id, spec.object_uid) is not None:
            raise Invalid(
                "orphan",
                "has an address of its network",
                remedy="delete the orphan, and its record is deleted after it",
            )

    async def _record_orphans(self, found: Resource, reason: str) -> None:
        """Record the resources that an object may have; those with an address even if they are not found.

        The monitor releases the address when the absence is confirmed, and drops the record.
        """
        label = found.metadata.labels.get(IDENTITY)
        identity = None if label is None else await find(self.store, Identity, label)
        region, now = region_of(found), self.clock.now()
        for subject, handle in resources_of(found, identity):
            if subject in ADDRESSED_SUBJECTS or await self._may_exist(region, subject, handle):
                record = new_orphan(region, subject, handle, "ObjectAbandoned", now, reason=reason)
                with suppress(AlreadyExists):
                    await self.store.create(record)

    async def _may_exist(self, region: str, subject: EventSubject, handle: Handle) -> bool:
        """Return whether a provider has a resource, or does not respond: the monitor checks again."""
        try:
            inventory = find_inventory((await self.providers.get(region)).provider, subject)
            return inventory is not None and await inventory.find(handle) is not None
        except RemudaError:
            return True

    def _event(self, found: Resource, reason: str, context: Context) -> Record:
        """Return the timeline event by which the monitor knows not to delete the orphans."""
        event = {
            "event": ABANDONED_EVENT,
            "uid": found.uid,
            "generation": found.metadata.generation,
            "reason": reason,
            "by": context.principal.actor_name,
        }
        return timeline_event(self.store.registry.of(type(found)).qualified, found.name, event)

    async def _drop(self, orphan: str) -> None:
        found = await find(self.store, Orphan, orphan)
        if found is not None:
            await self.store.delete(Orphan, found.name, uid=found.uid)
