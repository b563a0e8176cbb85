"""Controller of security groups. A group is created after its network, and removed before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.providers.contract.common import InUse
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import RECHECK_S, Blocked, Done, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, labelled
from remuda.reconcile.status import is_provisioned
from remuda.region.catalogue.provider_registry import ProviderRegistry, require
from remuda.region.kinds.common import is_abandoned
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.securitygroups import rules
from remuda.resources.conventions import CONTROLLER_FINALIZER, IDENTITY, NETWORK, identity_of, network_of, region_of
from remuda.resources.crud import find
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroupController:
    """Provisions and deprovisions a security group."""

    store: Store
    providers: ProviderRegistry

    async def provision(self, group: SecurityGroup, context: ReconcileContext) -> Result:
        """Create the group, or update its rules."""
        identity = await self.store.get(Identity, identity_of(group))
        network = await self.store.get(Network, network_of(group))
        if not (is_provisioned(identity) and is_provisioned(network)):
            return Blocked("DependencyNotReady", "its network is being created")
        cloud = await self.providers.get(region_of(group))
        groups, desired = require(cloud.provider.security_groups), rules.cloud_group(group, identity)
        found = await groups.find_group(desired.handle)
        if found is None or set(found.rules) != set(desired.rules):
            context.acted = True
            await groups.converge_group(desired)
        return Done()

    async def deprovision(self, group: SecurityGroup, context: ReconcileContext) -> Result:
        """Remove the group, when no port uses it."""
        identity = await find(self.store, Identity, identity_of(group))
        if identity is None or is_abandoned(group):
            return Done()  # nothing of a tenancy outlives its identity
        cloud = await self.providers.get(region_of(group))
        groups, handle = require(cloud.provider.security_groups), rules.group_handle(group, identity)
        try:
            waiting = await cloud.delete(handle, groups.find_group, groups.remove_group)
        except InUse:
            return Requeue(RECHECK_S, "Deprovisioning", "a server at the provider still uses it")
        if waiting is not None:
            context.acted = True
            return waiting
        return Done()


def controllers(
    ports: ReconcilePorts, providers: ProviderRegistry, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    store = ports.store
    groups = SecurityGroupController(store=store, providers=providers)
    return (
        lifecycle_controller(
            "securitygroups",
            SecurityGroup,
            provision=groups.provision,
            deprovision=groups.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            sources=(
                Source(Network, when=is_provisioned, keys=labelled(store, SecurityGroup, NETWORK)),
                Source(Identity, when=is_provisioned, keys=labelled(store, SecurityGroup, IDENTITY)),
            ),
            settings=settings,
        ),
    )
