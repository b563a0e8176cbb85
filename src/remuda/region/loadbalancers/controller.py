"""Controller of load balancers: it allocates an address, and creates the balancer with that address at the provider.

Deletion is in the reverse order: the balancer, its address, its quota.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists
from remuda.providers.contract.common import Handle, NoCapacity, balancer_name
from remuda.providers.contract.loadbalancers import CloudHealthCheck, CloudListener, CloudMember
from remuda.providers.contract.loadbalancers import CloudLoadBalancer as CloudBalancer
from remuda.providers.contract.loadbalancers import CloudLoadBalancerSpec as CloudBalancerSpec
from remuda.quota.lifecycle import QuotaHooks
from remuda.quota.ports import QuotaLedger
from remuda.quota.sagas import operation_source
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, indexed, labelled
from remuda.reconcile.status import is_provisioned
from remuda.region.catalogue.provider_registry import ProviderRegistry, require
from remuda.region.kinds.common import is_abandoned
from remuda.region.kinds.loadbalancers import ADDRESS_TAKEN, LOAD_BALANCER, BalancerListener, HealthCheck, LoadBalancer
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.servers import ADDRESSES_EXHAUSTED
from remuda.region.loadbalancers.rules import charge_of
from remuda.region.networks.ipam import allocate_address, allocate_specific_address, find_address, release_address
from remuda.region.networks.rules import network_handle, plan_of, tenancy_of
from remuda.resources.conventions import CONTROLLER_FINALIZER, NETWORK, identity_of, network_of, region_of
from remuda.resources.crud import find
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerController:
    """Provisions and deprovisions a load balancer."""

    store: Store
    providers: ProviderRegistry

    async def provision(self, balancer: LoadBalancer, context: ReconcileContext) -> Result | Outcome[LoadBalancer]:
        """Allocate the address, then create or update the load balancer at the provider."""
        network = await self.store.get(Network, network_of(balancer))
        if not is_provisioned(network):
            return Blocked("DependencyNotReady", "its network is being created")
        address = await self._address(balancer, network, context)
        if not isinstance(address, Address):
            return address
        identity = await self.store.get(Identity, identity_of(balancer))
        return await self._converge(balancer, _desired(balancer, identity, network, address), context)

    async def deprovision(self, balancer: LoadBalancer, context: ReconcileContext) -> Result:
        """Remove the load balancer at the provider, then release its address."""
        identity = await find(self.store, Identity, identity_of(balancer))
        if identity is not None and not is_abandoned(balancer):
            cloud = await self.providers.get(region_of(balancer))
            balancers = require(cloud.provider.load_balancers)
            handle = _handle(balancer, identity)
            waiting = await cloud.delete(handle, balancers.find_balancer, balancers.remove_balancer)
            if waiting is not None:
                context.acted = True
                return waiting
        if not is_abandoned(balancer):
            await release_address(self.store, balancer)
        return Done()

    async def _address(self, balancer: LoadBalancer, network: Network, context: ReconcileContext) -> Address | Result:
        found = await find_address(self.store, balancer)
        if found is not None:
            return found
        context.acted = True
        requested = balancer.spec.requested_vip_address
        if not requested:
            taken = await allocate_address(self.store, network, balancer)
            return taken or Blocked(ADDRESSES_EXHAUSTED, "its network has no free address: delete a server")
        if IPv4Address(requested) not in plan_of(network).dhcp_pool:
            return Failed(ADDRESS_TAKEN, f"its network reserves {requested}: choose another address")
        taken = await allocate_specific_address(self.store, network, balancer, IPv4Address(requested))
        return taken or Blocked(ADDRESS_TAKEN, f"another object on its network has {requested}: choose another address")

    async def _converge(
        self, balancer: LoadBalancer, desired: CloudBalancerSpec, context: ReconcileContext
    ) -> Result | Outcome[LoadBalancer]:
        cloud = await self.providers.get(region_of(balancer))
        balancers = require(cloud.provider.load_balancers)
        found = await balancers.find_balancer(desired.handle)
        if found is None or found.spec != desired:
            context.acted = True
            try:
                found = await balancers.converge_balancer(desired)
            except NoCapacity:
                return Failed("PublicAddressesExhausted", "the provider has no public address left")
            except AlreadyExists:
                return Failed(ADDRESS_TAKEN, "the provider has assigned its address to an unknown object")
        observed = _observed(balancer, found)
        match found.state:
            case "active":
                return Outcome(Done(), observed)
            case "failed":
                return Outcome(Failed("Errored", "the provider reports a failure"), observed)
            case _:
                return Outcome(Requeue(cloud.wait_s, message="being created"), observed)


def _handle(balancer: LoadBalancer, identity: Identity) -> Handle:
    return Handle(tenancy_of(identity.metadata), balancer_name(balancer.name, balancer.uid))


def _desired(balancer: LoadBalancer, identity: Identity, network: Network, address: Address) -> CloudBalancerSpec:
    return CloudBalancerSpec(
        handle=_handle(balancer, identity),
        network=network_handle(network, identity).name,
        address=address.spec.ip,
        mac=address.spec.mac,
        is_public=balancer.spec.public_ip,
        listeners=tuple(sorted(map(_listener, balancer.spec.listeners), key=lambda each: each.name)),
    )


def _listener(listener: BalancerListener) -> CloudListener:
    check = listener.pool.health_check
    return CloudListener(
        name=listener.name,
        protocol=listener.protocol,
        port=listener.port,
        allowed_prefixes=tuple(sorted(listener.allowed_cidrs)),
        idle_timeout_s=listener.idle_timeout_seconds,
        members=tuple(sorted(CloudMember(address=each.address, port=each.port) for each in listener.pool.members)),
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


def _observed(balancer: LoadBalancer, found: CloudBalancer) -> LoadBalancer:
    status = replace(balancer.status, vip_address=found.spec.address, public_ip=found.public_address)
    return replace(balancer, status=status)


def controllers(
    ports: ReconcilePorts,
    ledger: QuotaLedger,
    providers: ProviderRegistry,
    *,
    settings: ControllerSettings | None = None,
) -> Sequence[Controller]:
    """Return the controllers of load balancers. One without an address waits until an address is released."""
    store = ports.store
    balancers = LoadBalancerController(store=store, providers=providers)
    return (
        lifecycle_controller(
            "loadbalancers",
            LoadBalancer,
            provision=balancers.provision,
            deprovision=balancers.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            hooks=QuotaHooks(store=store, clock=ports.clock, ledger=ledger, charge=charge_of),
            sources=(
                Source(Network, when=is_provisioned, keys=labelled(store, LoadBalancer, NETWORK)),
                Source(Address, keys=indexed(store, LoadBalancer, "without address", network_of), created=False),
                operation_source(LOAD_BALANCER),
            ),
            settings=settings,
        ),
    )
