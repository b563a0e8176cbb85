"""Load balancers: the service that the API's routes call, and the validation of listeners and addresses.

Every method takes the context of the call, checks the caller's permissions itself, and has at most one effect, or runs
an operation.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from remuda.access.principal import Context, Permission, requester_of
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, NotFound
from remuda.kernel.ids import derived_id
from remuda.operations.service import Operations
from remuda.quota.lock import previous_state, require_unlocked
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.region.catalogue.provider_registry import ProviderRegistry, need
from remuda.region.kinds.loadbalancers import LOAD_BALANCER, BalancerListener, LoadBalancer
from remuda.region.kinds.networks import Address, Network, address_name
from remuda.region.kinds.servers import Server
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers.sagas import CREATE_BALANCER, UPDATE_BALANCER, ChangedBalancer, NewBalancer
from remuda.region.loadbalancers.schema import BalancerCreate, BalancerRead, BalancerUpdate, ListenerWire
from remuda.region.names import permission
from remuda.region.networks.address_plan import read_vip
from remuda.region.networks.rules import plan_of
from remuda.region.ports import IdentityPort
from remuda.resources.conventions import is_api_v2, network_of, organization_of, project_of, region_of
from remuda.resources.crud import audit_records, check_state, exists, find, request_deletion, retry_on_conflict
from remuda.resources.ipv4 import parse_address, parse_prefix
from remuda.resources.metadata import check_tags, stored_tags
from remuda.resources.query import NetworkedQuery, allow_for, allow_naming, filters_of
from remuda.resources.tags import own_tags
from remuda.store.contract import Store


async def refuse_held(store: Store, network: Network, ip: IPv4Address, *, but_for: str) -> None:
    """Raise Invalid for an address that another object holds, unless that object is being deleted.

    This check is for the caller's information only: the first write of an address decides which object gets it.
    """
    held = await find(store, Address, address_name(network.name, ip))
    if held is None or held.spec.holder == but_for:
        return
    for kind in (LoadBalancer, Server):
        if await exists(store, kind, held.spec.holder, marked=False):
            raise Invalid(
                "spec.vipAddress",
                "is the address of something else on the network",
                remedy="choose another, or leave it out to get a free one",
            )


def check_listeners(listeners: Sequence[ListenerWire]) -> None:
    """Raise Invalid for listeners that are duplicates or not possible."""
    _check_unique((each.name for each in listeners), "listener names must be unique")
    _check_unique(
        ((each.protocol, each.port) for each in listeners),
        "listener protocol and port combinations must be unique",
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
        ((each.address, each.port) for each in listener.pool.members),
        "pool members must be unique by address and port",
    )


def _check_unique(values: Iterable[Hashable], otherwise: str) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise Invalid("spec.listeners", otherwise)
        seen.add(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancers:
    """Load balancers of all projects."""

    store: Store
    clock: Clock
    identity: IdentityPort
    providers: ProviderRegistry
    operations: Operations

    async def list(self, context: Context, query: NetworkedQuery) -> Collection[LoadBalancer, list[BalancerRead]]:
        """Return the load balancers that the caller may see."""
        right, filters = permission("loadbalancers:v2", "read"), filters_of(query)
        await allow_naming(context.principal, right, filters, exists=self.identity.has_project)
        return Collection(
            store=self.store,
            kind=LoadBalancer,
            view=rules.BALANCER_VIEW,
            labels=filters.labels(),
            visible=filters.visible(context.principal, right, lambda balancer: balancer.spec.tags),
        )

    async def create(self, context: Context, body: BalancerCreate) -> LoadBalancer:
        """Create a load balancer if the quota of its project allows it."""
        network, principal = await self._network(context, body.spec.network_id), context.principal
        allow_for(principal, permission("loadbalancers:v2", "create"), network)
        need((await self.providers.get(region_of(network))).provider.load_balancers)
        if body.spec.vip_address is not None:
            asked = read_vip(body.spec.vip_address, plan_of(network))
            await refuse_held(self.store, network, asked, but_for=context.operation)
        check_listeners(body.spec.listeners)
        check_tags(body.metadata.tags)
        own_tags(stored_tags(body.metadata), principal)
        payer = payer_principal(principal, ProjectRef(organization_of(network), project_of(network)))
        done = await self.operations.run(
            CREATE_BALANCER,
            id=context.operation,
            actor=principal.actor_name,
            input=NewBalancer(balancer=context.operation, wanted=body, by=requester_of(payer)),
            trace_id=context.trace_id,
            log=context.audit(LOAD_BALANCER.plural, context.operation, organization=organization_of(network)),
        )
        return await self.store.get(LoadBalancer, done.spec.subject)

    async def get(self, context: Context, balancer: str) -> LoadBalancer:
        return await self._balancer(context, permission("loadbalancers:v2", "read"), balancer)

    async def update(self, context: Context, balancer: str, body: BalancerUpdate) -> LoadBalancer:
        """Replace what a client may change of a load balancer."""

        async def change() -> LoadBalancer:
            found = await self._balancer(context, permission("loadbalancers:v2", "update"), balancer)
            if found.is_deleting:
                raise Invalid("load balancer", "load balancer is being deleted")
            await self._network(context, network_of(found))
            await require_unlocked(self.store, found, found.spec.operation)
            check_state(context, found, rules.writable_balancer(found))
            check_listeners(body.spec.listeners)
            check_same_listeners(found, body.spec.listeners)
            changed = rules.changed_balancer(found, body, context.principal, self.clock.now())
            if changed.spec.public_ip != found.spec.public_ip:
                return await self._change_costs(context, found, body)
            return await self.store.update(changed, log=audit_records(context, LOAD_BALANCER.plural, found))

        return await retry_on_conflict(change)

    async def delete(self, context: Context, balancer: str) -> None:
        """Delete a load balancer."""

        async def delete() -> None:
            found = await self._balancer(context, permission("loadbalancers:v2", "delete"), balancer)
            log = audit_records(context, LOAD_BALANCER.plural, found)
            await request_deletion(self.store, context, found, rules.writable_balancer(found), log)

        await retry_on_conflict(delete)

    async def _change_costs(self, context: Context, found: LoadBalancer, body: BalancerUpdate) -> LoadBalancer:
        """Make an update that changes the quota used. Each attempt is an operation of its own, as validated."""
        now = self.clock.now()
        await self.operations.run(
            UPDATE_BALANCER,
            id=derived_id(context.operation, f"{found.version} {now.isoformat()}"),
            actor=context.principal.actor_name,
            input=ChangedBalancer(
                id=found.name, before=previous_state(found), wanted=body, by=requester_of(context.principal), now=now
            ),
            trace_id=context.trace_id,
            log=audit_records(context, LOAD_BALANCER.plural, found),
        )
        return await self.store.get(LoadBalancer, found.name)

    async def _network(self, context: Context, network: str) -> Network:
        found = await self.store.get(Network, network)
        if not is_api_v2(found):
            raise NotFound("Network", network)
        allow_for(context.principal, permission("networks:v2", "read"), found)
        return found

    async def _balancer(self, context: Context, right: Permission, balancer: str) -> LoadBalancer:
        found = await self.store.get(LoadBalancer, balancer)
        if not is_api_v2(found):
            raise NotFound("LoadBalancer", balancer)
        allow_for(context.principal, permission("loadbalancers:v2", "read"), found)
        allow_for(context.principal, right, found)
        return found
