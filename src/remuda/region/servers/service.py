"""Servers: the service that the API's routes call."""

from collections.abc import Iterable
from dataclasses import dataclass

from remuda.access.principal import Context
from remuda.cloudinit.user_data import check_user_data, read_user_data
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Forbidden, Invalid, NotFound, ResponseNotStored
from remuda.quota.lifecycle import payer_for, project_ref
from remuda.region.authorities.service import Authorities
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider, require_enabled
from remuda.region.images.service import find_image
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import SERVER, Server
from remuda.region.networks.service import Networks
from remuda.region.securitygroups.service import SecurityGroups
from remuda.region.servers import rules
from remuda.region.servers.capacity import check_capacity, check_fit, find_flavor
from remuda.region.servers.rules import last_applied_spec, replaced_server
from remuda.region.servers.schema import ReplaceWrite, ServerCreate, ServerNetworkingWire, ServerRead, ServerUpdate
from remuda.resources.conventions import network_of, organization_of, region_of
from remuda.resources.crud import retry_on_conflict
from remuda.resources.service import ProjectResourceService
from remuda.service import DocumentChecks


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers(ProjectResourceService[Server, ServerRead]):
    """Servers. Only services have permission to call this, on behalf of users."""

    kind, endpoint, view, noun = SERVER, "region:servers", rules.SERVER_VIEW, "server"
    has_tag_labels = True

    clock: Clock
    providers: ProviderRegistry
    networks: Networks
    groups: SecurityGroups
    authorities: Authorities
    documents: DocumentChecks

    async def create(self, context: Context, body: ServerCreate) -> Server:
        """Create a server on a network that has none of that name."""
        network = await self.networks.get(context, body.spec.network_id)
        self.authorize(context, "create", network)
        self.networks.reject_if_deleting(network)
        await self._check_new(context, body, network)
        server = rules.new_server(body, network, payer_for(context, network), operation=context.operation)
        created = await self.insert(context, server)
        if created.spec.operation != context.operation:
            raise AlreadyExists("Server", server.name)
        return created

    async def get_created(self, context: Context, body: ServerCreate) -> Server:
        """Return the server that the same request created before, or raise ResponseNotStored if it is gone."""
        name = rules.server_id(body.spec.network_id, body.metadata.name)
        try:
            found = await self.get(context, name)
        except NotFound:
            raise ResponseNotStored from None
        if found.spec.operation != context.operation:
            raise ResponseNotStored
        return found

    async def update(self, context: Context, server: str, body: ServerUpdate, *, revision: str | None = None) -> Server:
        """Replace the writable fields of a server of this revision. Another image or number of rebuilds rebuilds it."""

        async def change() -> Server:
            found = await self.get_authorized(context, "update", server)
            self.check_if_match(context, found)
            rules.check_revision(found, revision)
            network = await self.networks.get(context, network_of(found))
            await self._check_update(context, found, body, network)
            changed = rules.updated_server(found, body, context.principal, self.clock.now())
            return await self.save(context, found, changed)

        return await retry_on_conflict(change)

    async def replace(
        self, context: Context, server: str, body: ReplaceWrite, *, revision: str | None = None
    ) -> Server:
        """Replace a server of this revision by a new one with its port and addresses. Only services may do this."""
        if context.principal.type != "system":
            raise Forbidden("only a service may replace a server: update the instance that it belongs to")

        async def change() -> Server:
            found = await self.get_authorized(context, "update", server)
            self.check_if_match(context, found)
            rules.check_revision(found, revision)
            if found.spec.replacing_operation == context.operation:
                return found  # the same request, whose response was lost
            network = await self.networks.get(context, network_of(found))
            await self._check_replacement(context, found, body, network)
            replaced = replaced_server(
                found, body, context.principal, operation=context.operation, now=self.clock.now()
            )
            return await self.save(context, found, replaced)

        return await retry_on_conflict(change)

    async def _check_new(self, context: Context, requested: ServerCreate, network: Network) -> None:
        """Validate a new server, in the order of errors that clients know."""
        spec = requested.spec
        rules.check_injection(spec)
        authority = spec.ssh_certificate_authority_id
        await self._check_user_data(spec.user_data, with_authority=authority is not None)
        await self._check_authority(context, authority, network)
        await self._check_groups(context, spec.networking, network)
        cloud = await self.providers.get(region_of(network))
        require_enabled(cloud.region)
        image = await find_image(cloud, organization_of(network), spec.image_id, store=self.store)
        flavor = find_flavor(await cloud.flavors(), spec.flavor_id)
        if image is not None and image.state == "ready" and flavor is None:
            raise Invalid("spec.flavorId", "flavor is no longer offered by the region")
        check_fit(image, flavor, name=spec.image_id, pinned_to=spec.infrastructure_ref)
        rules.check_sources(spec.networking)

    async def _check_update(self, context: Context, found: Server, requested: ServerUpdate, network: Network) -> None:
        rules.check_update(found, requested)
        if requested.spec.user_data != rules.user_data_of(found.spec):
            has_authority = bool(found.spec.ssh_certificate_authority_id)
            await self._check_user_data(requested.spec.user_data, with_authority=has_authority)
        await self._check_groups(context, requested.spec.networking, network)
        if requested.spec.image_id != found.spec.image.id or requested.spec.rebuilds > found.spec.rebuilds:
            cloud = await self.providers.get(region_of(network))
            await self._check_image(cloud, found, requested.spec.image_id, requested.spec.flavor_id)
        rules.check_sources(requested.spec.networking)

    async def _check_user_data(self, text: str, *, with_authority: bool) -> None:
        if text:
            await self.documents.run(
                "spec.userData", lambda: check_user_data(read_user_data(text), with_authority=with_authority)
            )

    async def _check_replacement(
        self, context: Context, found: Server, requested: ReplaceWrite, network: Network
    ) -> None:
        if found.is_deleting:
            raise Invalid("server", "is being deleted", remedy="create a new server")
        authority = requested.ssh_certificate_authority_id
        await self._check_user_data(requested.user_data, with_authority=authority is not None)
        await self._check_authority(context, authority, network)
        cloud = await self.providers.get(region_of(network))
        await self._check_image(cloud, found, requested.image_id, requested.flavor_id, must_be_offered=True)
        if requested.flavor_id not in {found.spec.flavor_id, last_applied_spec(found).flavor_id}:
            check_capacity(find_flavor(await cloud.uncached_flavors(), requested.flavor_id))

    async def _check_image(
        self, cloud: RegionProvider, found: Server, image: str, flavor: str, *, must_be_offered: bool = False
    ) -> None:
        offered = find_flavor(await cloud.flavors(), flavor)
        if offered is None and must_be_offered:
            raise Invalid("spec.flavorId", "flavor is no longer offered by the region")
        chosen = await find_image(cloud, organization_of(found), image, store=self.store)
        check_fit(chosen, offered, name=image, pinned_to=found.spec.infrastructure_ref)

    async def _check_authority(self, context: Context, authority: str | None, network: Network) -> None:
        if authority is None:
            return
        found = await self.authorities.get(context, authority)
        if project_ref(found) != project_ref(network):
            raise Invalid(
                "spec.sshCertificateAuthorityId",
                "sshCertificateAuthorityId must reference an SSH certificate authority in the same organization and "
                "project as the server",
            )

    async def _check_groups(self, context: Context, networking: ServerNetworkingWire | None, network: Network) -> None:
        groups: Iterable[str] = () if networking is None else networking.security_groups
        for group in groups:
            if network_of(await self.groups.get(context, group)) != network.name:
                raise Invalid(
                    "spec.networking.securityGroups",
                    "a referenced security group must belong to the same network as the server",
                )
