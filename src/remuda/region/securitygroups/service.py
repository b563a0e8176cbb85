"""Security groups: the service that the API's routes call.

Every method takes the context of the call, checks the caller's permissions itself, and has at most one effect. Creating
or updating a group requires read permission on its network, which says where it is.
"""

from dataclasses import dataclass

from remuda.access.principal import Context, Permission
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Malformed, NotFound
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.region.catalogue.provider_registry import ProviderRegistry, need
from remuda.region.deletion import reject_if_used
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SECURITY_GROUP, SecurityGroup
from remuda.region.names import permission
from remuda.region.ports import IdentityPort
from remuda.region.securitygroups import rules
from remuda.region.securitygroups.schema import GroupCreate, GroupRead, GroupUpdate
from remuda.resources.conventions import is_api_v2, network_of, organization_of, project_of, region_of
from remuda.resources.crud import audit_records, check_state, request_deletion, retry_on_conflict
from remuda.resources.query import NetworkedQuery, allow_for, allow_naming, filters_of
from remuda.store.contract import Store

_ENDPOINT = "securitygroups:v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroups:
    """Security groups of all projects."""

    store: Store
    clock: Clock
    identity: IdentityPort
    providers: ProviderRegistry

    async def list(self, context: Context, query: NetworkedQuery) -> Collection[SecurityGroup, list[GroupRead]]:
        """Return the security groups that the caller may see."""
        right, filters = permission(_ENDPOINT, "read"), filters_of(query)
        await allow_naming(context.principal, right, filters, exists=self.identity.has_project)
        return Collection(
            store=self.store,
            kind=SecurityGroup,
            view=rules.GROUP_VIEW,
            labels=filters.labels(),
            visible=filters.visible(context.principal, right, lambda group: group.spec.tags),
        )

    async def create(self, context: Context, body: GroupCreate) -> SecurityGroup:
        """Create a security group on a network."""
        network = await self._network(context, body.spec.network_id)
        allow_for(context.principal, permission(_ENDPOINT, "create"), network)
        if network.is_deleting:
            raise Malformed("network is being deleted")
        need((await self.providers.get(region_of(network))).provider.security_groups)
        payer = payer_principal(context.principal, ProjectRef(organization_of(network), project_of(network)))
        group = rules.new_group(context.operation, body, network, payer)
        try:
            return await self.store.create(group, log=audit_records(context, SECURITY_GROUP.plural, group))
        except AlreadyExists:
            return await self.store.get(SecurityGroup, group.name)  # the same request, whose answer was lost

    async def get(self, context: Context, group: str) -> SecurityGroup:
        return await self._group(context, permission(_ENDPOINT, "read"), group)

    async def update(self, context: Context, group: str, body: GroupUpdate) -> SecurityGroup:
        """Replace what a client may change of a security group."""

        async def change() -> SecurityGroup:
            found = await self._group(context, permission(_ENDPOINT, "update"), group)
            await self._network(context, network_of(found))
            if found.is_deleting:
                raise Malformed("security group is being deleted")
            check_state(context, found, rules.writable_group(found))
            changed = rules.changed_group(found, body, context.principal, self.clock.now())
            return await self.store.update(changed, log=audit_records(context, SECURITY_GROUP.plural, found))

        return await retry_on_conflict(change)

    async def delete(self, context: Context, group: str) -> None:
        """Delete a security group that no server is in."""

        async def delete() -> None:
            found = await self._group(context, permission(_ENDPOINT, "delete"), group)
            if not found.is_deleting:
                await reject_if_used(self.store, found, "security group is in use and cannot be deleted")
            log = audit_records(context, SECURITY_GROUP.plural, found)
            await request_deletion(self.store, context, found, rules.writable_group(found), log, unused=True)

        await retry_on_conflict(delete)

    async def _group(self, context: Context, right: Permission, group: str) -> SecurityGroup:
        """Return a group that the caller may read and do this to; one that another API made is none of ours."""
        found = await self.store.get(SecurityGroup, group)
        if not is_api_v2(found):
            raise NotFound("SecurityGroup", group)
        allow_for(context.principal, permission(_ENDPOINT, "read"), found)
        allow_for(context.principal, right, found)
        return found

    async def _network(self, context: Context, network: str) -> Network:
        found = await self.store.get(Network, network)
        if not is_api_v2(found):
            raise NotFound("Network", network)
        allow_for(context.principal, permission("networks:v2", "read"), found)
        return found
