"""Kinds of existing clusters that are only read and deleted: records of OpenStack resources, and volumes.

Nothing here writes the records, since names at the provider have the same information. No API creates volumes yet.
"""

from typing import Literal

import msgspec

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct


class OpenstackNetworkSpec(StoredStruct, frozen=True):
    """OpenStack ids of a network."""

    network_id: str = msgspec.field(default="", name="networkID")
    subnet_id: str = msgspec.field(default="", name="subnetID")
    router_id: str = msgspec.field(default="", name="routerID")
    router_subnet_interface_added: bool = False
    vlan_id: int | None = msgspec.field(default=None, name="vlanID")


class OpenstackNetwork(Resource, frozen=True):
    """Record of a network."""

    spec: OpenstackNetworkSpec = OpenstackNetworkSpec()


class OpenstackSecurityGroupSpec(StoredStruct, frozen=True):
    """OpenStack id of a security group."""

    security_group_id: str = msgspec.field(default="", name="securityGroupID")


class OpenstackSecurityGroup(Resource, frozen=True):
    """Record of a security group."""

    spec: OpenstackSecurityGroupSpec = OpenstackSecurityGroupSpec()


class OpenstackServerSpec(StoredStruct, frozen=True):
    """OpenStack ids of a server."""

    server_id: str = msgspec.field(default="", name="serverID")
    port_ids: tuple[str, ...] = msgspec.field(default=(), name="portIDs")
    public_ip_allocation_id: str = msgspec.field(default="", name="publicIPAllocationId")


class OpenstackServer(Resource, frozen=True):
    """Record of a server."""

    spec: OpenstackServerSpec = OpenstackServerSpec()


OPENSTACK_NETWORK = Kind(
    type=OpenstackNetwork,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="openstacknetworks",
    uncounted="read from existing clusters, never created",
)

OPENSTACK_SECURITY_GROUP = Kind(
    type=OpenstackSecurityGroup,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="openstacksecuritygroups",
    uncounted="read from existing clusters, never created",
)

OPENSTACK_SERVER = Kind(
    type=OpenstackServer,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="openstackservers",
    uncounted="read from existing clusters, never created",
)


class VolumeClaim(StoredStruct, frozen=True):
    """Server that uses a volume exclusively."""

    kind: Literal["Server"]
    id: str


class VolumeSpec(StoredStruct, frozen=True):
    """Desired state of a volume. Sizes are bytes."""

    network_id: str = msgspec.field(name="networkID")
    volume_class_id: str = msgspec.field(name="volumeClassID")
    size: int
    claim_ref: VolumeClaim | None = None
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class VolumeStatus(LifecycleStatus, frozen=True):
    """Observed state of a volume."""

    size: int | None = None


class Volume(Resource, frozen=True):
    """Volume of a network."""

    spec: VolumeSpec
    status: VolumeStatus = VolumeStatus()


VOLUME = Kind(
    type=Volume,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="volumes",
    uncounted="read from existing clusters, never created",
    columns={"Network": ".spec.networkID", "Size": ".spec.size"},
)
