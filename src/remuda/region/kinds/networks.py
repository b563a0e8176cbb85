"""Networks as they are stored, with their identities, allocated addresses and VLANs.

An identity is the hidden service principal of one network. It owns the network, whose resources are in the project of
the identity at the provider. Servers and file storage reference the network, and other services add finalizers to it.

An address is an object whose name contains it, so it cannot be allocated twice. It is created before the provider is
called, and the controller of its holder deletes it after the provider has released it. The network owns it, not the
holder: an owned object is deleted before its owner, and then the next server would get an address that is still in use.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address

import msgspec

from remuda.kernel.conditions import find_condition
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.providers.contract.common import ProviderType
from remuda.region.kinds.common import REMUDA_GROUP, UNIKORN_GROUP, VERSION, IpRange
from remuda.resources.conventions import ORGANIZATION, PROJECT, REGION, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct

VLANS_EXHAUSTED = "VLANsExhausted"
"""Reason of a network whose region has no free VLAN."""


class PrefixReservations(StoredStruct, frozen=True):
    """Prefix lengths of the beginning of a network that is not for servers."""

    prefix_length: int
    provider_reserved_prefix_length: int | None = None


class NetworkRoute(StoredStruct, frozen=True):
    """Route to another network, which servers receive by DHCP."""

    prefix: str
    next_hop: str


class NetworkSpec(StoredStruct, frozen=True):
    """Desired state of a network."""

    prefix: str
    """CIDR without host bits."""
    dns_nameservers: tuple[str, ...] = ()
    routes: tuple[NetworkRoute, ...] = ()
    reservations: PrefixReservations | None = None
    """As requested; the ranges are computed when it is read."""
    provider: ProviderType | None = None
    """Only in networks of version 1 of the API."""
    operation: str = ""
    """Operation that created it, under whose name its quota is reserved."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class NetworkOpenstack(StoredStruct, frozen=True):
    """Ids of a network at any provider, under the name that existing clusters use."""

    network_id: str = msgspec.field(default="", name="networkID")
    subnet_id: str = msgspec.field(default="", name="subnetID")
    vlan_id: int | None = msgspec.field(default=None, name="vlanID")
    storage_range: IpRange | None = None


class NetworkStatus(LifecycleStatus, frozen=True):
    """Observed state of a network."""

    openstack: NetworkOpenstack | None = None


class Network(Resource, frozen=True):
    """Labels name its region and identity."""

    spec: NetworkSpec
    status: NetworkStatus = NetworkStatus()


def _without_vlan(network: Network) -> Iterator[str]:
    """Yield the region of a network that waits for a free VLAN."""
    available = find_condition(network.status.conditions, "Available")
    if available is not None and available.reason == VLANS_EXHAUSTED:
        yield from nonempty(network.metadata.labels.get(REGION, ""))


NETWORK = Kind(
    type=Network,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="networks",
    uncounted="quota networks",
    indexes=(
        Index(name="operation", values=lambda network: nonempty(network.spec.operation)),
        Index(name="without VLAN", values=_without_vlan),
    ),
    columns={"Prefix": ".spec.prefix", "Status": '.status.conditions[?(@.type=="Available")].reason'},
)
"""Indexed by labels and operation, and by region if it waits for a VLAN."""


def address_name(network: str, ip: IPv4Address) -> str:
    return f"{network}.{str(ip).replace('.', '-')}"


class AddressSpec(StoredStruct, frozen=True):
    """Address and its holder."""

    ip: str
    mac: str
    holder: str
    """Id of the server or load balancer that has it."""
    holder_uid: str
    """Uid in the holder's names at the provider: a new object of the same id has other addresses."""


class Address(Resource, frozen=True):
    """Allocated address. Labels name its network and the labels of that."""

    spec: AddressSpec


ADDRESS = Kind(
    type=Address,
    group=REMUDA_GROUP,
    version=VERSION,
    plural="addresses",
    uncounted="as many as the prefix of a network has",
    indexes=(Index(name="holder", values=lambda address: [address.spec.holder]),),
    unindexed=frozenset({ORGANIZATION, PROJECT}),
    columns={"IP": ".spec.ip", "MAC": ".spec.mac", "Holder": ".spec.holder"},
)
"""Indexed by the label of the network, and by holder."""


def vlans_name(provider: ProviderType, region: str) -> str:
    return f"{provider}.{region}"


class TakenVlan(StoredStruct, frozen=True):
    """VLAN of a network."""

    id: int
    physical_network_id: str = msgspec.field(name="physicalNetworkID")


class VLANAllocationSpec(StoredStruct, frozen=True):
    """Allocated VLANs."""

    allocations: tuple[TakenVlan, ...] = ()


class VLANAllocation(Resource, frozen=True):
    """Allocated VLANs of a region: one object, so that none is allocated twice."""

    spec: VLANAllocationSpec = VLANAllocationSpec()


def region_of_vlans(allocation: VLANAllocation) -> str:
    return allocation.name.partition(".")[2]


VLAN_ALLOCATION = Kind(
    type=VLANAllocation, group=UNIKORN_GROUP, version=VERSION, plural="vlanallocations", uncounted="one for each region"
)
"""Named by `vlans_name`."""


class IdentitySpec(StoredStruct, frozen=True):
    """Desired state of an identity."""

    provider: ProviderType
    operation: str = ""
    """Operation that created it; the provider is not called before it is done."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class Identity(Resource, frozen=True):
    """Service principal of a network at its provider. A label names its region."""

    spec: IdentitySpec
    status: LifecycleStatus = LifecycleStatus()


class OpenstackIdentitySpec(StoredStruct, frozen=True):
    """Credentials of an identity at any provider, under the name that existing clusters use.

    They are written before the provider is called, and each is generated only once, so that none that the provider
    knows is lost.
    """

    cloud: str = ""
    """Name of the cloud in `cloud_config`."""
    cloud_config: Secret | None = None
    """A `clouds.yaml` with a credential."""
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
    """Line for `authorized_keys`."""


class OpenstackIdentity(Resource, frozen=True):
    """Record of an identity at its provider, named after it. It is deleted after everything of it is gone there."""

    spec: OpenstackIdentitySpec = OpenstackIdentitySpec()


IDENTITY = Kind(
    type=Identity,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="identities",
    uncounted="one for each network",
    indexes=(Index(name="operation", values=lambda identity: nonempty(identity.spec.operation)),),
    columns={"Provider": ".spec.provider", "Status": '.status.conditions[?(@.type=="Available")].reason'},
)
"""Indexed by labels and operation."""

OPENSTACK_IDENTITY = Kind(
    type=OpenstackIdentity,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="openstackidentities",
    uncounted="one for each network",
    columns={"User": ".spec.userID", "Project": ".spec.projectID"},
)
