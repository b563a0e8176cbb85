"""What makes security groups true at a provider. A group is made when its network is there, and goes before it."""

from dataclasses import dataclass

from remuda.providers.contract.common import InUse
from remuda.quota.reservation import RECHECK_S, is_provisioned
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, labelled
from remuda.region.catalogue.provider_registry import Clouds, need
from remuda.region.deletion import until_gone
from remuda.region.kinds.common import is_abandoned
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.securitygroups import rules
from remuda.resources import conventions as regional
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.resources.crud import find
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroupController:
    """Keeps a security group at the provider for each of ours."""

    store: Store
    clouds: Clouds

    async def provision(self, group: SecurityGroup, run: ReconcileContext) -> Result:
        """Make the group, or bring its rules up to date."""
        home = await self.store.get(Identity, regional.identity_of(group))
        network = await self.store.get(Network, regional.network_of(group))
        if not (is_provisioned(home) and is_provisioned(network)):
            return Blocked("DependencyNotReady", "its network is being made")
        cloud = await self.clouds.get(regional.region_of(group))
        groups, wanted = need(cloud.provider.security_groups), rules.to_cloud(group, home)
        found = await groups.find_group(wanted.handle)
        if found is None or set(found.rules) != set(wanted.rules):
            run.acted = True
            await groups.converge_group(wanted)
        return Done()

    async def deprovision(self, group: SecurityGroup, run: ReconcileContext) -> Result:
        """Remove the group, as soon as no port is in it."""
        home = await find(self.store, Identity, regional.identity_of(group))
        if home is None or is_abandoned(group):
            return Done()  # nothing of a tenancy outlives its identity
        cloud = await self.clouds.get(regional.region_of(group))
        groups, handle = need(cloud.provider.security_groups), rules.handle_of(group, home)
        try:
            left = await until_gone(handle, groups.find_group, groups.remove_group, cloud)
        except InUse:
            return Requeue(RECHECK_S, "Deprovisioning", "the provider still has a server in it")
        if left is not None:
            run.acted = True
            return left
        return Done()


def driver(ports: ReconcilePorts, clouds: Clouds, *, settings: ControllerSettings | None = None) -> Controller:
    """Return the controller of security groups."""
    store = ports.store
    groups = SecurityGroupController(store=store, clouds=clouds)
    return lifecycle_controller(
        "securitygroups",
        SecurityGroup,
        provision=groups.provision,
        deprovision=groups.deprovision,
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
        sources=(
            Source(Network, when=is_provisioned, keys=labelled(store, SecurityGroup, regional.NETWORK)),
            Source(Identity, when=is_provisioned, keys=labelled(store, SecurityGroup, regional.IDENTITY)),
        ),
        settings=settings,
    )
