"""Servers: the service that the API's routes call.

Every method takes the context of the call, checks the caller's permissions itself, and has at most one effect. Only
services have permission to call them, on behalf of users.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from remuda.access.principal import Context, Permission
from remuda.cloudinit.user_data import check_user_data, read_user_data
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Forbidden, Invalid, Malformed, NotFound, ResponseNotStored
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider
from remuda.region.images.service import find_image
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import SERVER, Server
from remuda.region.names import permission
from remuda.region.ports import IdentityPort
from remuda.region.servers import rules
from remuda.region.servers.capacity import check_capacity, check_fit, find_flavor
from remuda.region.servers.rules import last_applied_spec, replaced_server
from remuda.region.servers.schema import NetworkingWire, ReplaceWrite, ServerCreate, ServerRead, ServerUpdate
from remuda.resources.conventions import is_api_v2, network_of, organization_of, project_of, region_of
from remuda.resources.crud import audit_records, check_state, request_deletion, retry_on_conflict
from remuda.resources.query import NetworkedQuery, allow_for, allow_naming, filters_of
from remuda.store.contract import Store
from remuda.store.objects import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Servers of all projects."""

    store: Store
    clock: Clock
    identity: IdentityPort
    providers: ProviderRegistry

    async def list(self, context: Context, query: NetworkedQuery) -> Collection[Server, list[ServerRead]]:
        """Return the servers that the caller may see."""
        right, filters = permission("servers", "read"), filters_of(query, is_labelled=True)
        await allow_naming(context.principal, right, filters, exists=self.identity.has_project)
        return Collection(
            store=self.store,
            kind=Server,
            view=rules.SERVER_VIEW,
            labels=filters.labels(),
            visible=filters.visible(context.principal, right, lambda server: server.spec.tags),
        )

    async def create(self, context: Context, body: ServerCreate) -> Server:
        """Create a server on a network that has none of that name."""
        network = await self._network(context, body.spec.network_id)
        allow_for(context.principal, permission("servers", "create"), network)
        if network.is_deleting:
            raise Malformed("network is being deleted")
        await self._check_new(context, body, network)
        principal = context.principal
        payer = payer_principal(principal, ProjectRef(organization_of(network), project_of(network)))
        server = rules.new_server(body, network, payer, operation=context.operation)
        try:
            return await self.store.create(server, log=audit_records(context, SERVER.plural, server))
        except AlreadyExists:
            found = await self.store.get(Server, server.name)
            if found.spec.operation != context.operation:
                raise
            return found  # the same request, whose response was lost

    async def get_created(self, context: Context, body: ServerCreate) -> Server:
        """Return the server that the same request created before.

        Raise ResponseNotStored if it was deleted, or another one has its name.
        """
        name = rules.server_id(body.spec.network_id, body.metadata.name)
        try:
            found = await self.get(context, name)
        except NotFound:
            raise ResponseNotStored from None
        if found.spec.operation != context.operation:
            raise ResponseNotStored
        return found

    async def get(self, context: Context, server: str) -> Server:
        return await self.find(context, permission("servers", "read"), server)

    async def update(self, context: Context, server: str, body: ServerUpdate, *, revision: str | None = None) -> Server:
        """Replace what a client may change of a server, if it has this revision. Another image rebuilds it."""

        async def change() -> Server:
            found = await self.find(context, permission("servers", "update"), server)
            check_state(context, found, rules.writable_server(found))
            rules.check_revision(found, revision)
            network = await self._network(context, network_of(found))
            await self._check_update(context, found, body, network)
            changed = rules.updated_server(found, body, context.principal, self.clock.now())
            return await self.store.update(changed, log=audit_records(context, SERVER.plural, found))

        return await retry_on_conflict(change)

    async def replace(
        self, context: Context, server: str, body: ReplaceWrite, *, revision: str | None = None
    ) -> Server:
        """Replace a server of this revision by a new one with its port and addresses. Only services may do this."""
        if context.principal.type != "system":
            raise Forbidden("only a service may replace a server: update the instance that it belongs to")

        async def change() -> Server:
            found = await self.find(context, permission("servers", "update"), server)
            check_state(context, found, rules.writable_server(found))
            rules.check_revision(found, revision)
            if found.spec.replacing_operation == context.operation:
                return found  # the same request, whose response was lost
            network = await self._network(context, network_of(found))
            await self._check_replacement(context, found, body, network)
            replaced = replaced_server(
                found, body, context.principal, operation=context.operation, now=self.clock.now()
            )
            return await self.store.update(replaced, log=audit_records(context, SERVER.plural, found))

        return await retry_on_conflict(change)

    async def delete(self, context: Context, server: str) -> None:
        """Delete a server."""

        async def delete() -> None:
            found = await self.find(context, permission("servers", "delete"), server)
            log = audit_records(context, SERVER.plural, found)
            await request_deletion(self.store, context, found, rules.writable_server(found), log)

        await retry_on_conflict(delete)

    async def find(self, context: Context, right: Permission, server: str) -> Server:
        """Return a server that the caller may read and do this to. Raise NotFound for one that another API created."""
        found = await self.store.get(Server, server)
        if not is_api_v2(found):
            raise NotFound("Server", server)
        allow_for(context.principal, permission("servers", "read"), found)
        allow_for(context.principal, right, found)
        return found

    async def _network(self, context: Context, network: str) -> Network:
        found = await self.store.get(Network, network)
        if not is_api_v2(found):
            raise NotFound("Network", network)
        allow_for(context.principal, permission("networks:v2", "read"), found)
        return found

    async def _check_new(self, context: Context, wanted: ServerCreate, network: Network) -> None:
        """Validate a new server, in the order of errors that clients know."""
        spec = wanted.spec
        rules.check_injection(spec)
        authority = spec.ssh_certificate_authority_id
        check_user_data(read_user_data(spec.user_data), with_authority=authority is not None)
        await self._check_authority(context, authority, network)
        await self._check_groups(context, spec.networking, network)
        cloud = await self.providers.get(region_of(network))
        image = await find_image(cloud, organization_of(network), spec.image_id, store=self.store)
        flavor = find_flavor(await cloud.flavors(), spec.flavor_id)
        if image is not None and image.state == "ready" and flavor is None:
            raise Invalid("spec.flavorId", "flavor is no longer offered by the region")
        check_fit(image, flavor, name=spec.image_id, pinned_to=spec.infrastructure_ref)
        rules.check_sources(spec.networking)

    async def _check_update(self, context: Context, found: Server, wanted: ServerUpdate, network: Network) -> None:
        rules.check_update(found, wanted)
        if wanted.spec.user_data != rules.user_data_of(found.spec):
            has_authority = bool(found.spec.ssh_certificate_authority_id)
            check_user_data(read_user_data(wanted.spec.user_data), with_authority=has_authority)
        await self._check_groups(context, wanted.spec.networking, network)
        if wanted.spec.image_id != found.spec.image.id:
            cloud = await self.providers.get(region_of(network))
            await self._check_image(cloud, found, wanted.spec.image_id, wanted.spec.flavor_id)
        rules.check_sources(wanted.spec.networking)

    async def _check_replacement(self, context: Context, found: Server, wanted: ReplaceWrite, network: Network) -> None:
        if found.is_deleting:
            raise Invalid("server", "is being deleted", remedy="create a new server")
        authority = wanted.ssh_certificate_authority_id
        check_user_data(read_user_data(wanted.user_data), with_authority=authority is not None)
        await self._check_authority(context, authority, network)
        cloud = await self.providers.get(region_of(network))
        await self._check_image(cloud, found, wanted.image_id, wanted.flavor_id, must_be_offered=True)
        if wanted.flavor_id not in {found.spec.flavor_id, last_applied_spec(found).flavor_id}:
            check_capacity(find_flavor(await cloud.uncached_flavors(), wanted.flavor_id))

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
        found = await self.store.get(SSHCertificateAuthority, authority)
        allow_for(context.principal, permission("sshcertificateauthorities:v2", "read"), found)
        if _place(found) != _place(network):
            raise Invalid(
                "spec.sshCertificateAuthorityId",
                "sshCertificateAuthorityId must reference an SSH certificate authority in the same organization and "
                "project as the server",
            )

    async def _check_groups(self, context: Context, networking: NetworkingWire | None, network: Network) -> None:
        groups: Iterable[str] = () if networking is None else networking.security_groups
        for group in groups:
            found = await self.store.get(SecurityGroup, group)
            if not is_api_v2(found):
                raise NotFound("SecurityGroup", group)
            allow_for(context.principal, permission("securitygroups:v2", "read"), found)
            if network_of(found) != network.name:
                raise Invalid(
                    "spec.networking.securityGroups",
                    "a referenced security group must belong to the same network as the server",
                )


def _place(resource: Resource) -> tuple[str, str]:
    return organization_of(resource), project_of(resource)
