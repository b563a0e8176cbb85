"""Security groups: the service that the API's routes call."""

from dataclasses import dataclass

from remuda.access.principal import Context
from remuda.kernel.clock import Clock
from remuda.quota.lifecycle import payer_for
from remuda.region.catalogue.provider_registry import ProviderRegistry, require, require_enabled
from remuda.region.kinds.securitygroups import SECURITY_GROUP, SecurityGroup
from remuda.region.networks.service import Networks
from remuda.region.securitygroups import rules
from remuda.region.securitygroups.schema import SecurityGroupCreate, SecurityGroupRead, SecurityGroupUpdate
from remuda.resources.conventions import network_of, region_of
from remuda.resources.service import ProjectResourceService


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroups(ProjectResourceService[SecurityGroup, SecurityGroupRead]):
    """Security groups. Creating or updating one requires read permission on its network."""

    kind, endpoint, view = SECURITY_GROUP, "region:securitygroups:v2", rules.GROUP_VIEW
    noun, is_kept_in_use = "security group", True

    clock: Clock
    providers: ProviderRegistry
    networks: Networks

    async def create(self, context: Context, body: SecurityGroupCreate) -> SecurityGroup:
        network = await self.networks.get(context, body.spec.network_id)
        self.authorize(context, "create", network)
        self.networks.reject_if_deleting(network)
        cloud = await self.providers.get(region_of(network))
        require(cloud.provider.security_groups)
        require_enabled(cloud.region)
        return await self.insert(
            context, rules.new_group(context.operation, body, network, payer_for(context, network))
        )

    async def update(self, context: Context, group: str, body: SecurityGroupUpdate) -> SecurityGroup:

        async def changed(found: SecurityGroup) -> SecurityGroup:
            return rules.changed_group(found, body, context.principal, self.clock.now())

        return await self.update_with(
            context, group, changed, check=lambda found: self.networks.get(context, network_of(found))
        )
