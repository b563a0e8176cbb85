"""What makes load balancers true at a provider: an address of ours, then a balancer with that address.

It goes in the other order: the balancer, its address, what it cost.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address

from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists
from remuda.providers.contract.common import Handle, NoCapacity, balancer_name
from remuda.providers.contract.loadbalancers import CloudHealthCheck, CloudListener, CloudMember
from remuda.providers.contract.loadbalancers import CloudLoadBalancer as CloudBalancer
from remuda.providers.contract.loadbalancers import CloudLoadBalancerSpec as CloudBalancerSpec
from remuda.quota.reservation import QuotaAdmission, is_provisioned
from remuda.quota.sagas import operation_source, subject_of_kind
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, labelled, through
from remuda.region.catalogue.provider_registry import Clouds, need
from remuda.region.deletion import until_gone
from remuda.region.kinds.common import is_abandoned
from remuda.region.kinds.loadbalancers import ADDRESS_TAKEN, LOAD_BALANCER, HealthCheck, Listener, LoadBalancer
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.servers import ADDRESSES_EXHAUSTED
from remuda.region.loadbalancers.sagas import charge_for
from remuda.region.networks.ipam import find_address, give_address_back, take_address, take_this_address
from remuda.region.networks.rules import plan_of, tenancy_of, to_cloud
from remuda.region.ports import IdentityPort
from remuda.resources.conventions import CONTROLLER_FINALIZER, NETWORK, identity_of, network_of, region_of
from remuda.resources.crud import find
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerController:
    """Keeps a load balancer at the provider for each load balancer."""

    store: Store
    clouds: Clouds

    async def provision(self, balancer: LoadBalancer, run: ReconcileContext) -> Result | Outcome[LoadBalancer]:
        """Bring a load balancer one step nearer to being as it is wanted."""
        network = await self.store.get(Network, network_of(balancer))
        if not is_provisioned(network):
            return Blocked("DependencyNotReady", "its network is being made")
        address = await self._address(balancer, network, run)
        if not isinstance(address, Address):
            return address
        home = await self.store.get(Identity, identity_of(balancer))
        return await self._converge(balancer, _wanted(balancer, home, network, address), run)

    async def deprovision(self, balancer: LoadBalancer, run: ReconcileContext) -> Result:
        """Bring a load balancer one step nearer to being gone."""
        home = await find(self.store, Identity, identity_of(balancer))
        if home is not None and not is_abandoned(balancer):
            cloud = await self.clouds.get(region_of(balancer))
            balancers = need(cloud.provider.load_balancers)
            handle = _handle(balancer, home)
            left = await until_gone(handle, balancers.find_balancer, balancers.remove_balancer, cloud)
            if left is not None:
                run.acted = True
                return left
        if not is_abandoned(balancer):
            await give_address_back(self.store, balancer)
        return Done()

    async def _address(self, balancer: LoadBalancer, network: Network, run: ReconcileContext) -> Address | Result:
        found = await find_address(self.store, balancer)
        if found is not None:
            return found
        run.acted = True
        asked = balancer.spec.requested_vip_address
        if not asked:
            taken = await take_address(self.store, network, balancer)
            return taken or Blocked(ADDRESSES_EXHAUSTED, "its network has no free address: remove something")
        if IPv4Address(asked) not in plan_of(network).dhcp_pool:
            return Failed(ADDRESS_TAKEN, f"its network reserves {asked} for others: make one that asks for another")
        taken = await take_this_address(self.store, network, balancer, IPv4Address(asked))
        return taken or Blocked(ADDRESS_TAKEN, f"something else on its network has {asked}: ask for another")

    async def _converge(
        self, balancer: LoadBalancer, wanted: CloudBalancerSpec, run: ReconcileContext
    ) -> Result | Outcome[LoadBalancer]:
        cloud = await self.clouds.get(region_of(balancer))
        balancers = need(cloud.provider.load_balancers)
        found = await balancers.find_balancer(wanted.handle)
        if found is None or found.spec != wanted:
            run.acted = True
            try:
                found = await balancers.converge_balancer(wanted)
            except NoCapacity:
                return Failed("PublicAddressesExhausted", "the provider has no public address left")
            except AlreadyExists:
                return Failed(ADDRESS_TAKEN, "the provider has given its address to something that is not ours")
        seen = _seen(balancer, found)
        match found.state:
            case "active":
                return Outcome(Done(), seen)
            case "failed":
                return Outcome(Failed("Errored", "the provider says that it failed"), seen)
            case _:
                return Outcome(Requeue(cloud.wait_s, message="being made"), seen)


def _handle(balancer: LoadBalancer, home: Identity) -> Handle:
    return Handle(tenancy_of(home.metadata), balancer_name(balancer.name, balancer.uid))


def _wanted(balancer: LoadBalancer, home: Identity, network: Network, address: Address) -> CloudBalancerSpec:
    return CloudBalancerSpec(
        handle=_handle(balancer, home),
        network=to_cloud(network, home).name,
        address=address.spec.ip,
        mac=address.spec.mac,
        is_public=balancer.spec.public_ip,
        listeners=tuple(map(_listener, balancer.spec.listeners)),
    )


def _listener(listener: Listener) -> CloudListener:
    check = listener.pool.health_check
    return CloudListener(
        name=listener.name,
        protocol=listener.protocol,
        port=listener.port,
        allowed_prefixes=listener.allowed_cidrs,
        idle_timeout_s=listener.idle_timeout_seconds,
        members=tuple(CloudMember(address=each.address, port=each.port) for each in listener.pool.members),
        has_proxy_protocol=listener.pool.proxy_protocol_v2,
        health_check=None if check is None else _health_check(check),
    )


def _health_check(check: HealthCheck) -> CloudHealthCheck:
    return CloudHealthCheck(
        interval_s=check.interval_seconds,
        timeout_s=check.timeout_seconds,
        healthy_threshold=check.healthy_threshold,
        unhealthy_threshold=check.unhealthy_threshold,
    )


def _seen(balancer: LoadBalancer, found: CloudBalancer) -> LoadBalancer:
    status = replace(balancer.status, vip_address=found.spec.address, public_ip=found.public_address)
    return replace(balancer, status=status)


def driver(
    ports: ReconcilePorts, identity: IdentityPort, clouds: Clouds, *, settings: ControllerSettings | None = None
) -> Controller:
    """Return the controller of load balancers. Where an address is missing, it waits for one to be given back."""
    store = ports.store
    balancers = LoadBalancerController(store=store, clouds=clouds)
    return lifecycle_controller(
        "loadbalancers",
        LoadBalancer,
        provision=balancers.provision,
        deprovision=balancers.deprovision,
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
        admission=QuotaAdmission(store=store, clock=ports.clock, identity=identity, charge=charge_for),
        sources=(
            Source(Network, when=is_provisioned, keys=labelled(store, LoadBalancer, NETWORK)),
            Source(Address, keys=through(store, LoadBalancer, "without address", network_of), arrivals=False),
            operation_source(subject_of_kind(LOAD_BALANCER)),
        ),
        settings=settings,
    )
