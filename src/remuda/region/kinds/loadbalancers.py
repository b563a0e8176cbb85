"""Load balancers as they are stored. A network owns its load balancers."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from remuda.kernel.conditions import find_condition
from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION
from remuda.region.kinds.servers import ADDRESSES_EXHAUSTED
from remuda.resources.conventions import NETWORK, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind, keyed
from remuda.store.objects import Resource, StoredStruct

ADDRESS_TAKEN = "AddressTaken"
"""Reason of a load balancer whose requested address is in use."""

ListenerProtocol = Literal["tcp", "udp"]


class HealthCheck(StoredStruct, frozen=True):
    """Check of the members of a pool."""

    interval_seconds: int
    timeout_seconds: int
    healthy_threshold: int
    unhealthy_threshold: int


class PoolMember(StoredStruct, frozen=True):
    """Server that handles requests."""

    address: str
    port: int


class Pool(StoredStruct, frozen=True):
    """Members that handle the requests of a listener."""

    members: tuple[PoolMember, ...]
    proxy_protocol_v2: bool = False
    health_check: HealthCheck | None = None


class BalancerListener(StoredStruct, frozen=True):
    """Port of a load balancer. Its name identifies it; protocol and port are immutable."""

    name: str
    protocol: ListenerProtocol
    port: int
    pool: Pool
    allowed_cidrs: tuple[str, ...] = msgspec.field(default=(), name="allowedCIDRs")
    """Permitted sources; none means all."""
    idle_timeout_seconds: int | None = None


class LoadBalancerSpec(StoredStruct, frozen=True):
    """Desired state of a load balancer."""

    listeners: Annotated[tuple[BalancerListener, ...], keyed("name")] = ()
    """At least one."""
    requested_vip_address: str = msgspec.field(default="", name="requestedVIPAddress")
    public_ip: bool = msgspec.field(default=False, name="publicIP")
    operation: str = ""
    """Operation that created it, under whose name its quota is reserved."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class LoadBalancerStatus(LifecycleStatus, frozen=True):
    """Observed state of a load balancer."""

    vip_address: str = ""
    public_ip: str = msgspec.field(default="", name="publicIP")


class LoadBalancer(Resource, frozen=True):
    """Labels name its region, identity and network."""

    spec: LoadBalancerSpec
    status: LoadBalancerStatus = LoadBalancerStatus()


def _without_address(balancer: LoadBalancer) -> Iterator[str]:
    available = find_condition(balancer.status.conditions, "Available")
    if available is not None and available.reason in {ADDRESSES_EXHAUSTED, ADDRESS_TAKEN}:
        yield from nonempty(balancer.metadata.labels.get(NETWORK, ""))


LOAD_BALANCER = Kind(
    type=LoadBalancer,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="loadbalancers",
    uncounted="quota loadbalancers",
    indexes=(
        Index(name="operation", values=lambda balancer: nonempty(balancer.spec.operation)),
        Index(name="without address", values=_without_address),
    ),
    columns={
        "Status": '.status.conditions[?(@.type=="Available")].reason',
        "VIP": ".status.vipAddress",
        "Public IP": ".status.publicIP",
    },
)
"""Indexed by labels and operation, and by network if it waits for an address."""
