"""Networks: the service that the API's routes call.

Every method takes the context of the call, checks the caller's permissions itself, and has at most one effect, or runs
an operation. A network is deleted through its hidden identity, and with that everything on the network.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.access.checks import allow_new_in_project
from remuda.access.principal import Context, Permission, requester_of
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, NotFound
from remuda.operations.service import Operations
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.region.catalogue.provider_registry import ProviderRegistry, need
from remuda.region.deletion import reject_if_used
from remuda.region.kinds.networks import NETWORK, Identity, Network
from remuda.region.names import permission
from remuda.region.networks import rules
from remuda.region.networks.sagas import CREATE_NETWORK, NewNetwork
from remuda.region.networks.schema import NetworkCreate, NetworkRead, NetworkUpdate
from remuda.region.ports import IdentityPort
from remuda.resources.conventions import CONTROLLER_FINALIZER, identity_of, is_api_v2
from remuda.resources.crud import audit_records, check_reference, check_state, find, retry_on_conflict
from remuda.resources.query import RegionalQuery, allow_for, allow_naming, filters_of
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """Networks of all projects."""

    store: Store
    clock: Clock
    identity: IdentityPort
    providers: ProviderRegistry
    operations: Operations

    async def list(self, context: Context, query: RegionalQuery) -> Collection[Network, list[NetworkRead]]:
        """Return the networks that the caller may see."""
        right, filters = permission("networks:v2", "read"), filters_of(query)
        await allow_naming(context.principal, right, filters, exists=self.identity.has_project)
        return Collection(
            store=self.store,
            kind=Network,
            view=rules.NETWORK_VIEW,
            labels=filters.labels(),
            visible=filters.visible(context.principal, right, lambda network: network.spec.tags),
        )

    async def create(self, context: Context, body: NetworkCreate) -> Network:
        """Create a network if the quota of its project allows it."""
        spec, principal = body.spec, context.principal
        place = ProjectRef(spec.organization_id, spec.project_id)
        right = permission("networks:v2", "create")
        await allow_new_in_project(
            principal, right, place.organization, place.project, exists=self.identity.has_project
        )
        cloud = await self.providers.get_visible(principal, spec.region_id)
        need(cloud.provider.networks)
        rules.check_new(body, principal)
        done = await self.operations.run(
            CREATE_NETWORK,
            id=context.operation,
            actor=principal.actor_name,
            input=NewNetwork(
                network=context.operation,
                wanted=body,
                provider=cloud.provider.type,
                by=requester_of(payer_principal(principal, place)),
            ),
            trace_id=context.trace_id,
            log=context.audit(NETWORK.plural, context.operation, organization=spec.organization_id),
        )
        return await self.store.get(Network, done.spec.subject)

    async def get(self, context: Context, network: str) -> Network:
        return await self._network(context, permission("networks:v2", "read"), network)

    async def update(self, context: Context, network: str, body: NetworkUpdate) -> Network:
        """Replace what a client may change of a network."""

        async def change() -> Network:
            found = await self._network(context, permission("networks:v2", "update"), network)
            if found.is_deleting:
                raise Malformed("network is being deleted")
            check_state(context, found, rules.writable_network(found))
            rules.check_update(body.spec)
            changed = rules.changed_network(found, body, context.principal, self.clock.now())
            return await self.store.update(changed, log=audit_records(context, NETWORK.plural, found))

        return await retry_on_conflict(change)

    async def delete(self, context: Context, network: str) -> None:
        """Delete a network, with everything on it that does not prevent that."""

        async def delete() -> None:
            found = await self._network(context, permission("networks:v2", "delete"), network)
            check_state(context, found, rules.writable_network(found))
            if found.is_deleting:
                return
            await reject_if_used(self.store, found, "network is in use and cannot be deleted")
            # Nothing uses this version of it. Its controller deletes the identity if this process stops before it does.
            log = audit_records(context, NETWORK.plural, found)
            await self.store.delete(Network, found.name, uid=found.uid, version=found.version, unused=True, log=log)
            root = await find(self.store, Identity, identity_of(found), marked=False)
            if root is not None:
                with suppress(NotFound):  # its controller was faster
                    await self.store.delete(Identity, root.name, uid=root.uid)

        await retry_on_conflict(delete)

    async def add_reference(self, context: Context, network: str, reference: str) -> None:
        """Add a reference of another service, which prevents that the network is deleted."""

        async def change() -> None:
            found = await self._referred(context, permission("networks:v2/references", "create"), network)
            check_reference(reference, own=CONTROLLER_FINALIZER)
            if found.is_deleting:
                raise Malformed("unable to add reference, resource is being deleted")
            if reference not in found.metadata.finalizers:
                await self._write_finalizers(context, found, (*found.metadata.finalizers, reference))

        await retry_on_conflict(change)

    async def remove_reference(self, context: Context, network: str, reference: str) -> None:
        """Remove a reference of another service."""

        async def change() -> None:
            found = await self._referred(context, permission("networks:v2/references", "delete"), network)
            check_reference(reference, own=CONTROLLER_FINALIZER)
            if reference in found.metadata.finalizers:
                kept = tuple(each for each in found.metadata.finalizers if each != reference)
                await self._write_finalizers(context, found, kept)

        await retry_on_conflict(change)

    async def _network(self, context: Context, right: Permission, network: str) -> Network:
        """Return a network that the caller may read and do this to."""
        found = await self._found(network)
        allow_for(context.principal, permission("networks:v2", "read"), found)
        allow_for(context.principal, right, found)
        return found

    async def _referred(self, context: Context, right: Permission, network: str) -> Network:
        """Return a network that the caller may do this to: adding references needs no read permission."""
        found = await self._found(network)
        allow_for(context.principal, right, found)
        return found

    async def _found(self, network: str) -> Network:
        """Return a network of this API. Raise NotFound for one that another API created."""
        found = await self.store.get(Network, network)
        if not is_api_v2(found):
            raise NotFound("Network", network)
        return found

    async def _write_finalizers(self, context: Context, network: Network, finalizers: Sequence[str]) -> None:
        changed = replace(network, metadata=replace(network.metadata, finalizers=tuple(finalizers)))
        await self.store.update(changed, log=audit_records(context, NETWORK.plural, network))
