"""What a load balancer cannot be, and what it cannot become."""

from collections.abc import Hashable, Iterable, Sequence
from ipaddress import IPv4Address

from remuda.kernel.errors import Invalid
from remuda.region.kinds.addresses import Address, address_name
from remuda.region.kinds.loadbalancers import Listener, LoadBalancer
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.region.loadbalancers.schema import ListenerWire
from remuda.resources.crud import find, is_there
from remuda.resources.ipv4 import address_or_refuse, prefix_or_refuse
from remuda.store.contract import Store


async def refuse_held(store: Store, network: Network, ip: IPv4Address, *, but_for: str) -> None:
    """Refuse an address that is already something else's, unless that is about to give it back.

    It is judged here so that whoever asks hears of it. Who gets an address is settled by the one who writes it first.
    """
    held = await find(store, Address, address_name(network.name, ip))
    if held is None or held.spec.holder == but_for:
        return
    for kind in (LoadBalancer, Server):
        if await is_there(store, kind, held.spec.holder, marked=False):
            raise Invalid(
                "spec.vipAddress",
                "is the address of something else on the network",
                remedy="choose another, or leave it out to get a free one",
            )


def check_listeners(listeners: Sequence[ListenerWire]) -> None:
    """Refuse listeners that are the same, or that are not possible."""
    _check_unique((each.name for each in listeners), "listener names must be unique")
    _check_unique(
        ((each.protocol, each.port) for each in listeners),
        "listener protocol and port combinations must be unique",
    )
    for listener in listeners:
        _check_listener(listener)


def check_same_listeners(balancer: LoadBalancer, listeners: Sequence[ListenerWire]) -> None:
    """Refuse a listener that has become another under its old name."""
    before = {listener.name: listener for listener in balancer.spec.listeners}
    for listener in listeners:
        if listener.name in before:
            _check_same(before[listener.name], listener)


def _check_same(before: Listener, listener: ListenerWire) -> None:
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
        prefix_or_refuse(prefix, "allowedCidrs must contain valid IPv4 CIDR prefixes")
    _check_members(listener)
    check = listener.pool.health_check
    if check is not None and check.timeout_seconds >= check.interval_seconds:
        raise Invalid("spec.listeners", "timeoutSeconds must be less than intervalSeconds")


def _check_members(listener: ListenerWire) -> None:
    for member in listener.pool.members:
        address_or_refuse(member.address, "member address must be a valid IPv4 address")
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
