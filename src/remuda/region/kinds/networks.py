"""Networks as they are stored. A network belongs to its hidden identity, and owns what is on it.

What keeps a network: servers and file storage name it (references of the store), other services say so through
the API (finalizers).

Addresses: who has which one of a network.

There is one object for each address that is taken, and its name says which, so that two can never have the same; it is
made before the cloud hears of the address, and the holder's controller removes it after the cloud has let go of it.

The network owns it, not the holder: what is owned goes before its owner, and the next server would get an address that
the cloud still has in use. On a network that goes there is no next server.

Which VLANs of a region are taken. One object for each region has all of them, so that none is given twice.

Who we are at a cloud: hidden service principals, one for each network, and what the cloud has given them.

An identity owns its network, and everything of the network lives in the identity's project at the cloud. The record
has the identity's name. It is written before anything is asked of the cloud, so that a key or a password that the cloud
knows is never lost; whatever is in it is made only once.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address

import msgspec

from remuda.kernel.conditions import find_condition
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.region.kinds.common import REMUDA_GROUP, UNIKORN_GROUP, VERSION, IpRange, ProviderType
from remuda.resources.conventions import ORGANIZATION, PROJECT, REGION, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct

VLANS_EXHAUSTED = "VLANsExhausted"
"""Why a network is not made whose region has no free VLAN."""


class PrefixReservations(StoredStruct, frozen=True):
    """How much of a network's beginning is not for servers, as lengths of prefixes."""

    prefix_length: int
    provider_reserved_prefix_length: int | None = None


class NetworkRoute(StoredStruct, frozen=True):
    """Which way to other networks; servers are told by DHCP."""

    prefix: str
    next_hop: str


class NetworkSpec(StoredStruct, frozen=True):
    """What is wanted of a network."""

    prefix: str
    """CIDR, without bits of a host."""
    dns_nameservers: tuple[str, ...] = ()
    routes: tuple[NetworkRoute, ...] = ()
    reservations: PrefixReservations | None = None
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
        yield from nonempty(network.metadata.labels.get(REGION, ""))


NETWORK = Kind(
    type=Network,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="networks",
    indexes=(
        Index(name="operation", values=lambda network: nonempty(network.spec.operation)),
        Index(name="without VLAN", values=_without_vlan),
    ),
    columns={"Prefix": ".spec.prefix", "Status": '.status.conditions[?(@.type=="Available")].reason'},
)
"""Networks, found by their labels, by the operation that made them, and those that wait for a VLAN by their region."""


def address_name(network: str, ip: IPv4Address) -> str:
    """Return the name of the object that stands for an address of a network."""
    return f"{network}.{str(ip).replace('.', '-')}"


class AddressSpec(StoredStruct, frozen=True):
    """Which address it is, and whose."""

    ip: str
    mac: str
    holder: str
    """The id of the server or load balancer that has it."""
    holder_uid: str
    """The uid that its names at the cloud carry: one that was made again has not got the addresses of the old one."""


class Address(Resource, frozen=True):
    """An address that is taken. Labels say on which network, and where that is."""

    spec: AddressSpec


ADDRESS = Kind(
    type=Address,
    group=REMUDA_GROUP,
    version=VERSION,
    plural="addresses",
    indexes=(Index(name="holder", values=lambda address: [address.spec.holder]),),
    unindexed=frozenset({ORGANIZATION, PROJECT}),
    columns={"IP": ".spec.ip", "MAC": ".spec.mac", "Holder": ".spec.holder"},
)
"""Addresses, found by the label of their network, and by who has them."""


def vlans_name(provider: ProviderType, region: str) -> str:
    """Return the name of the object that has a region's VLANs."""
    return f"{provider}.{region}"


class TakenVlan(StoredStruct, frozen=True):
    """A VLAN, and the network that has it."""

    id: int
    physical_network_id: str = msgspec.field(name="physicalNetworkID")


class VLANAllocationSpec(StoredStruct, frozen=True):
    """What is taken."""

    allocations: tuple[TakenVlan, ...] = ()


class VLANAllocation(Resource, frozen=True):
    """The VLANs of one region."""

    spec: VLANAllocationSpec = VLANAllocationSpec()


def region_of_vlans(held: VLANAllocation) -> str:
    """Return the region whose VLANs they are."""
    return held.name.partition(".")[2]


VLAN_ALLOCATION = Kind(type=VLANAllocation, group=UNIKORN_GROUP, version=VERSION, plural="vlanallocations")
"""Taken VLANs, named by `vlans_name`."""


class IdentitySpec(StoredStruct, frozen=True):
    """Which sort of cloud it is for."""

    provider: ProviderType
    operation: str = ""
    """The operation that made it: nothing is asked of the cloud before that is done."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class Identity(Resource, frozen=True):
    """A service principal. A label says of which region."""

    spec: IdentitySpec
    status: LifecycleStatus = LifecycleStatus()


class OpenstackIdentitySpec(StoredStruct, frozen=True):
    """What an identity has at its cloud, whichever cloud that is; the name is that of existing clusters."""

    cloud: str = ""
    """What its cloud is called in `cloud_config`."""
    cloud_config: Secret | None = None
    """A `clouds.yaml`, which has a credential in it."""
    user_id: str = msgspec.field(default="", name="userID")
    password: Secret | None = None
    project_id: str = msgspec.field(default="", name="projectID")
    application_credential_id: str = msgspec.field(default="", name="applicationCredentialID")
    application_credential_secret: Secret | None = None
    server_group_id: str = msgspec.field(default="", name="serverGroupID")
    ssh_key_name: str = ""
    ssh_private_key: Secret | None = None
    """PEM."""
    ssh_public_key: str = ""
    """The other half of it, as in `authorized_keys`."""


class OpenstackIdentity(Resource, frozen=True):
    """The record of an identity at its cloud. It stays until the cloud has let go of all of it."""

    spec: OpenstackIdentitySpec = OpenstackIdentitySpec()


IDENTITY = Kind(
    type=Identity,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="identities",
    indexes=(Index(name="operation", values=lambda identity: nonempty(identity.spec.operation)),),
    columns={"Provider": ".spec.provider", "Status": '.status.conditions[?(@.type=="Available")].reason'},
)
"""Identities, found by the labels of project and region, and by the operation that made them."""

OPENSTACK_IDENTITY = Kind(
    type=OpenstackIdentity,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="openstackidentities",
    columns={"User": ".spec.userID", "Project": ".spec.projectID"},
)
"""Records of identities, named after them."""
