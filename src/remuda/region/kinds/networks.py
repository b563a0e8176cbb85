"""Networks as they are stored. A network belongs to its hidden identity, and owns what is on it.

What keeps a network: servers and file storage name it (references of the store), other services say so through
the API (finalizers).
"""

from collections.abc import Iterator

import msgspec

from remuda.kernel.conditions import find_condition
from remuda.kernel.tags import Tag
from remuda.region.kinds.api_groups import SHARED, VERSION
from remuda.region.kinds.lifecycle import IpRange, ProviderType
from remuda.resources.conventions import REGION, LifecycleStatus, given
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct

VLANS_EXHAUSTED = "VLANsExhausted"
"""Why a network is not made whose region has no free VLAN."""


class Reservations(StoredStruct, frozen=True):
    """How much of a network's beginning is not for servers, as lengths of prefixes."""

    prefix_length: int
    provider_reserved_prefix_length: int | None = None


class Route(StoredStruct, frozen=True):
    """Which way to other networks; servers are told by DHCP."""

    prefix: str
    next_hop: str


class NetworkSpec(StoredStruct, frozen=True):
    """What is wanted of a network."""

    prefix: str
    """CIDR, without bits of a host."""
    dns_nameservers: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    reservations: Reservations | None = None
    """As it was asked for; what that comes to is worked out when it is read."""
    provider: ProviderType | None = None
    """Only networks of the first API have it."""
    operation: str = ""
    """The operation that made it, under whose name it holds its quota."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class NetworkOpenstack(StoredStruct, frozen=True):
    """What a network is at its cloud, whichever cloud that is; the name is that of existing clusters."""

    network_id: str = msgspec.field(default="", name="networkID")
    subnet_id: str = msgspec.field(default="", name="subnetID")
    vlan_id: int | None = msgspec.field(default=None, name="vlanID")
    storage_range: IpRange | None = None
    """The addresses that file storage can have."""


class NetworkStatus(LifecycleStatus, frozen=True):
    """What is known of a network."""

    openstack: NetworkOpenstack | None = None


class Network(Resource, frozen=True):
    """A network. Labels say of which region and identity."""

    spec: NetworkSpec
    status: NetworkStatus = NetworkStatus()


def _without_vlan(network: Network) -> Iterator[str]:
    """Yield the region in which a network waits for a free VLAN."""
    available = find_condition(network.status.conditions, "Available")
    if available is not None and available.reason == VLANS_EXHAUSTED:
        yield from given(network.metadata.labels.get(REGION, ""))


NETWORK = Kind(
    type=Network,
    group=SHARED,
    version=VERSION,
    plural="networks",
    indexes=(
        Index(name="operation", values=lambda network: given(network.spec.operation)),
        Index(name="without VLAN", values=_without_vlan),
    ),
    columns={"Prefix": ".spec.prefix", "Status": '.status.conditions[?(@.type=="Available")].reason'},
)
"""Networks, found by their labels, by the operation that made them, and those that wait for a VLAN by their region."""
