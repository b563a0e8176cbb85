"""What clients send and read of security groups."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.region.kinds.securitygroups import Direction, Protocol
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead

_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class RuleWire(Wire, frozen=True):
    """What may pass."""

    direction: Annotated[Direction, msgspec.Meta(description="Which way, as the server sees it.")]
    protocol: Protocol
    port: Annotated[_Port, msgspec.Meta(description="Of tcp and udp; with none, all of them.")] | None = None
    port_max: Annotated[_Port, msgspec.Meta(description="The last port, if it is more than one.")] | None = None
    prefix: Annotated[str, msgspec.Meta(description="IPv4 CIDR; with none, from or to anywhere.")] | None = None


class GroupSpecWire(Wire, frozen=True):
    """What can be changed of a security group."""

    rules: Annotated[tuple[RuleWire, ...], msgspec.Meta(max_length=256)]


class GroupCreateSpec(GroupSpecWire, frozen=True, kw_only=True):
    """What a new security group is to be."""

    network_id: Id


class GroupCreate(Wire, frozen=True):
    """A security group as it is asked for."""

    metadata: MetadataWrite
    spec: GroupCreateSpec


class GroupUpdate(Wire, frozen=True):
    """A security group as it is to be from now on."""

    metadata: MetadataWrite
    spec: GroupSpecWire


class GroupStatusRead(Wire, frozen=True):
    """Where a security group is."""

    region_id: str
    network_id: str


class GroupRead(Wire, frozen=True):
    """A security group."""

    metadata: ProjectMetadataRead
    spec: GroupSpecWire
    status: GroupStatusRead


class GroupPath(Parameters, frozen=True, rename={"group": "securityGroupID"}):
    """A security group."""

    group: Id
