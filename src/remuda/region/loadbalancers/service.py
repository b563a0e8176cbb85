"""Load balancers: the service that the API's routes call, and the validation of listeners and addresses."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from remuda.access.principal import Context, requester_of
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid
from remuda.operations.service import Operations
from remuda.quota.lifecycle import payer_for
from remuda.quota.lock import require_unlocked
from remuda.quota.sagas import run_update
from remuda.region.catalogue.provider_registry import ProviderRegistry, require, require_enabled
from remuda.region.kinds.loadbalancers import LOAD_BALANCER, BalancerListener, LoadBalancer
from remuda.region.kinds.networks import Address, Network, address_name
from remuda.region.kinds.servers import Server
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers.sagas import CREATE_BALANCER, UPDATE_BALANCER, NewBalancer
from remuda.region.loadbalancers.schema import BalancerCreate, BalancerRead, BalancerUpdate, ListenerWire
from remuda.region.networks.address_plan import parse_vip
from remuda.region.networks.rules import plan_of
from remuda.region.networks.service import Networks
from remuda.resources.conventions import network_of, organization_of, region_of
from remuda.resources.crud import exists, find, retry_on_conflict
from remuda.resources.ipv4 import parse_address, parse_prefix
from remuda.resources.metadata import new_tags
from remuda.resources.service import ProjectResourceService
from remuda.store.contract import Store


async def reject_used_address(store: Store, network: Network, ip: IPv4Address, *, holder: str) -> None:
    """Raise Invalid for an address that an object other than `holder` has, unless that one is being deleted.

    This check is for the caller's information only: the first write of an address decides which object gets it.
    """
    address = await find(store, Address, address_name(network.name, ip))
    if address is None or address.spec.holder == holder:
        return
    for kind in (LoadBalancer, Server):
        if await exists(store, kind, address.spec.holder, include_deleting=False):
            raise Invalid(
                "spec.vipAddress",
                "is the address of another object on the network",
                remedy="choose another, or leave it out to get a free one",
            )


def check_listeners(listeners: Sequence[ListenerWire]) -> None:
    """Raise Invalid for listeners that are duplicates or not possible."""
    _check_unique((each.name for each in listeners), "listener names must be unique")
    _check_unique(
        ((each.protocol, each.port) for each in listeners), "listener protocol and port combinations must be unique"
    )
    for listener in listeners:
        _check_listener(listener)


def check_same_listeners(balancer: LoadBalancer, listeners: Sequence[ListenerWire]) -> None:
    """Raise Invalid for a listener whose protocol, port or proxy protocol was changed."""
    before = {listener.name: listener for listener in balancer.spec.listeners}
    for listener in listeners:
        if listener.name in before:
            _check_same(before[listener.name], listener)


def _check_same(before: BalancerListener, listener: ListenerWire) -> None:
    if listener.protocol != before.protocol:
        raise Invalid("spec.listeners", "listener protocol cannot be changed for an existing listener name")
    if listener.port != before.port:
        raise Invalid("spec.listeners", "listener port cannot be changed for an existing listener name")
    if bool(listener.pool.proxy_protocol_v2) != before.pool.proxy_protocol_v2:
        raise Invalid("spec.listeners", "listener pool proxyProtocolV2 cannot be changed for an existing listener name")


def _check_listener(listener: ListenerWire) -> None:
    if listener.protocol == "udp":
        if listener.idle_timeout_seconds is not None:
            raise Invalid("spec.listeners", "idleTimeoutSeconds is only supported for TCP listeners")
        if listener.pool.proxy_protocol_v2:
            raise Invalid("spec.listeners", "proxyProtocolV2 is only supported for TCP listeners")
    for prefix in listener.allowed_cidrs:
        parse_prefix(prefix, "allowedCidrs must contain valid IPv4 CIDR prefixes")
    _check_members(listener)
    check = listener.pool.health_check
    if check is not None and check.timeout_seconds >= check.interval_seconds:
        raise Invalid("spec.listeners", "timeoutSeconds must be less than intervalSeconds")


def _check_members(listener: ListenerWire) -> None:
    for member in listener.pool.members:
        parse_address(member.address, "member address must be a valid IPv4 address")
    _check_unique(
        ((each.address, each.port) for each in listener.pool.members), "pool members must be unique by address and port"
    )


def _check_unique(values: Iterable[Hashable], message: str) -> None:
    found = set()
    for value in values:
        if value in found:
            raise Invalid("spec.listeners", message)
        found.add(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancers(ProjectResourceService[LoadBalancer, BalancerRead]):
    """Load balancers. Creating or updating one requires read permission on its network."""

    kind, endpoint, view, noun = LOAD_BALANCER, "region:loadbalancers:v2", rules.BALANCER_VIEW, "load balancer"

    clock: Clock
    providers: ProviderRegistry
    networks: Networks
    operations: Operations

    async def create(self, context: Context, body: BalancerCreate) -> LoadBalancer:
        """Create a load balancer if the quota of its project allows it."""
        network = await self.networks.get(context, body.spec.network_id)
        self.authorize(context, "create", network)
        cloud = await self.providers.get(region_of(network))
        require(cloud.provider.load_balancers)
        require_enabled(cloud.region)
        if body.spec.vip_address is not None:
            requested = parse_vip(body.spec.vip_address, plan_of(network))
            await reject_used_address(self.store, network, requested, holder=context.operation)
        check_listeners(body.spec.listeners)
        new_tags(body.metadata, context.principal)
        new = NewBalancer(
            balancer=context.operation, requested=body, requester=requester_of(payer_for(context, network))
        )
        return await self.run_create(
            context, self.operations, CREATE_BALANCER, new, organization=organization_of(network)
        )

    async def update(self, context: Context, balancer: str, body: BalancerUpdate) -> LoadBalancer:

        async def change() -> LoadBalancer:
            found = await self.get_authorized(context, "update", balancer)
            if found.is_deleting:
                raise Invalid("load balancer", "load balancer is being deleted")
            await self.networks.get(context, network_of(found))
            await require_unlocked(self.store, found, found.spec.operation)
            self.check_if_match(context, found)
            check_listeners(body.spec.listeners)
            check_same_listeners(found, body.spec.listeners)
            now, log = self.clock.now(), self.audit(context, found)
            changed = rules.changed_balancer(found, body, context.principal, now)
            if changed.spec.public_ip == found.spec.public_ip:
                return await self.save(context, found, changed)
            await run_update(self.operations, UPDATE_BALANCER, context, found, body, now=now, log=log)
            return await self.store.get(LoadBalancer, balancer)

        return await retry_on_conflict(change)
