"""Networks: the service that the API's routes call."""

from contextlib import suppress
from dataclasses import dataclass

from remuda.access.principal import Context, Permission, Verb, requester_of
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.operations.service import Operations
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.region.catalogue.provider_registry import ProviderRegistry, require, require_enabled
from remuda.region.kinds.networks import NETWORK, Identity, Network
from remuda.region.networks import rules
from remuda.region.networks.sagas import CREATE_NETWORK, NewNetwork
from remuda.region.networks.schema import NetworkCreate, NetworkRead, NetworkUpdate
from remuda.resources.conventions import CONTROLLER_FINALIZER, identity_of
from remuda.resources.crud import find
from remuda.resources.query import require_for
from remuda.resources.service import ProjectResourceService


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks(ProjectResourceService[Network, NetworkRead]):
    """Networks. A network is deleted through its hidden identity, and with that everything on the network."""

    kind, endpoint, view = NETWORK, "region:networks:v2", rules.NETWORK_VIEW
    noun, is_kept_in_use = "network", True

    clock: Clock
    providers: ProviderRegistry
    operations: Operations

    async def create(self, context: Context, body: NetworkCreate) -> Network:
        """Create a network if the quota of its project allows it."""
        spec, principal = body.spec, context.principal
        project = ProjectRef(spec.organization_id, spec.project_id)
        await self.authorize_create(context, project.organization, project.project)
        cloud = await self.providers.get_visible(principal, spec.region_id)
        require(cloud.provider.networks)
        require_enabled(cloud.region)
        rules.check_new(body, principal)
        new = NewNetwork(
            network=context.operation,
            requested=body,
            provider=cloud.provider.type,
            requester=requester_of(payer_principal(principal, project)),
        )
        return await self.run_create(context, self.operations, CREATE_NETWORK, new, organization=project.organization)

    async def update(self, context: Context, network: str, body: NetworkUpdate) -> Network:

        async def changed(found: Network) -> Network:
            rules.check_spec(body.spec)
            return rules.changed_network(found, body, context.principal, self.clock.now())

        return await self.update_with(context, network, changed)

    async def after_deletion(self, found: Network) -> None:
        """Delete the hidden identity of a network. If this process stops before, the network's controller does it."""
        root = await find(self.store, Identity, identity_of(found), include_deleting=False)
        if root is not None:
            with suppress(NotFound):  # its controller was faster
                await self.store.delete(Identity, root.name, uid=root.uid)

    async def add_reference(self, context: Context, network: str, reference: str) -> None:
        """Add a reference of another service, which prevents the deletion of a network."""
        await self.add_finalizer(
            context,
            lambda: self._find_for_reference(context, "create", network),
            reference,
            own=CONTROLLER_FINALIZER,
            if_deleting="unable to add reference, resource is being deleted",
        )

    async def remove_reference(self, context: Context, network: str, reference: str) -> None:
        await self.remove_finalizer(
            context, lambda: self._find_for_reference(context, "delete", network), reference, own=CONTROLLER_FINALIZER
        )

    async def _find_for_reference(self, context: Context, verb: Verb, network: str) -> Network:
        """Return a network whose references the caller may change, which requires no read permission."""
        found = await self.load(network)
        require_for(context.principal, Permission(f"{self.endpoint}/references", verb), found)
        return found
