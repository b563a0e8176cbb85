"""Load balancers as they are stored. A load balancer belongs to its network, and nothing keeps it."""

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
"""Why a load balancer is not made that asked for an address which something else has."""

ListenerProtocol = Literal["tcp", "udp"]
"""What a listener listens to."""


class HealthCheck(StoredStruct, frozen=True):
    """How it is found out whether a member is well."""

    interval_seconds: int
    timeout_seconds: int
    healthy_threshold: int
    unhealthy_threshold: int


class PoolMember(StoredStruct, frozen=True):
    """Somebody who answers."""

    address: str
    port: int


class Pool(StoredStruct, frozen=True):
    """Those who answer on a listener's behalf."""

    members: tuple[PoolMember, ...]
    proxy_protocol_v2: bool = False
    health_check: HealthCheck | None = None


class BalancerListener(StoredStruct, frozen=True):
    """Where a load balancer can be reached. Its name tells it from the others, and its protocol and port stay."""

    name: str
    protocol: ListenerProtocol
    port: int
    pool: Pool
    allowed_cidrs: tuple[str, ...] = msgspec.field(default=(), name="allowedCIDRs")
    """From where; none means anywhere."""
    idle_timeout_seconds: int | None = None


class LoadBalancerSpec(StoredStruct, frozen=True):
    """What is wanted of a load balancer."""

    listeners: Annotated[tuple[BalancerListener, ...], keyed("name")] = ()
    """At least one."""
    requested_vip_address: str = msgspec.field(default="", name="requestedVIPAddress")
    public_ip: bool = msgspec.field(default=False, name="publicIP")
    operation: str = ""
    """The operation that made it, under whose name it holds its quota."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class LoadBalancerStatus(LifecycleStatus, frozen=True):
    """What is known of a load balancer."""

    vip_address: str = ""
    public_ip: str = msgspec.field(default="", name="publicIP")


class LoadBalancer(Resource, frozen=True):
    """A load balancer. Labels say of which region, identity and network."""

    spec: LoadBalancerSpec
    status: LoadBalancerStatus = LoadBalancerStatus()


def _without_address(balancer: LoadBalancer) -> Iterator[str]:
    """Yield the network on which a load balancer waits for an address."""
    available = find_condition(balancer.status.conditions, "Available")
    if available is not None and available.reason in {ADDRESSES_EXHAUSTED, ADDRESS_TAKEN}:
        yield from nonempty(balancer.metadata.labels.get(NETWORK, ""))


LOAD_BALANCER = Kind(
    type=LoadBalancer,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="loadbalancers",
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
"""Load balancers, found by their labels, by the operation that made them, and those that wait for an address by their
network."""
