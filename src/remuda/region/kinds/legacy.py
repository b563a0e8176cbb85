"""Records that old clusters keep of what there is at OpenStack. Nothing of ours writes them: names say the same.

They are here so that what is imported from such a cluster can be read, and removed.

Volumes as existing clusters store them. No API makes one yet. Sizes are bytes.
"""

from typing import Literal

import msgspec

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct


class OpenstackNetworkSpec(StoredStruct, frozen=True):
    """A network's ids."""

    network_id: str = msgspec.field(default="", name="networkID")
    subnet_id: str = msgspec.field(default="", name="subnetID")
    router_id: str = msgspec.field(default="", name="routerID")
    router_subnet_interface_added: bool = False
    vlan_id: int | None = msgspec.field(default=None, name="vlanID")


class OpenstackNetwork(Resource, frozen=True):
    """The record of a network."""

    spec: OpenstackNetworkSpec = OpenstackNetworkSpec()


class OpenstackSecurityGroupSpec(StoredStruct, frozen=True):
    """A security group's id."""

    security_group_id: str = msgspec.field(default="", name="securityGroupID")


class OpenstackSecurityGroup(Resource, frozen=True):
    """The record of a security group."""

    spec: OpenstackSecurityGroupSpec = OpenstackSecurityGroupSpec()


class OpenstackServerSpec(StoredStruct, frozen=True):
    """A server's ids."""

    server_id: str = msgspec.field(default="", name="serverID")
    port_ids: tuple[str, ...] = msgspec.field(default=(), name="portIDs")
    public_ip_allocation_id: str = msgspec.field(default="", name="publicIPAllocationId")


class OpenstackServer(Resource, frozen=True):
    """The record of a server."""

    spec: OpenstackServerSpec = OpenstackServerSpec()


OPENSTACK_NETWORK = Kind(type=OpenstackNetwork, group=UNIKORN_GROUP, version=VERSION, plural="openstacknetworks")
"""Records of networks."""

OPENSTACK_SECURITY_GROUP = Kind(
    type=OpenstackSecurityGroup, group=UNIKORN_GROUP, version=VERSION, plural="openstacksecuritygroups"
)
"""Records of security groups."""

OPENSTACK_SERVER = Kind(type=OpenstackServer, group=UNIKORN_GROUP, version=VERSION, plural="openstackservers")
"""Records of servers."""


class VolumeClaim(StoredStruct, frozen=True):
    """Who wants a volume for itself."""

    kind: Literal["Server"]
    id: str


class VolumeSpec(StoredStruct, frozen=True):
    """What is wanted of a volume."""

    network_id: str = msgspec.field(name="networkID")
    volume_class_id: str = msgspec.field(name="volumeClassID")
    size: int
    claim_ref: VolumeClaim | None = None
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class VolumeStatus(LifecycleStatus, frozen=True):
    """What is known of a volume."""

    size: int | None = None


class Volume(Resource, frozen=True):
    """A volume."""

    spec: VolumeSpec
    status: VolumeStatus = VolumeStatus()


VOLUME = Kind(
    type=Volume,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="volumes",
    columns={"Network": ".spec.networkID", "Size": ".spec.size"},
)
"""Volumes."""
