"""Schema of security groups."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.region.kinds.securitygroups import Direction, Protocol
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead

_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class RuleWire(Wire, frozen=True):
    """Traffic that is allowed."""

    direction: Annotated[Direction, msgspec.Meta(description="From the perspective of the server.")]
    protocol: Protocol
    port: Annotated[_Port, msgspec.Meta(description="For tcp and udp; by default all ports.")] | None = None
    port_max: Annotated[_Port, msgspec.Meta(description="The last port of a range.")] | None = None
    prefix: Annotated[str, msgspec.Meta(description="IPv4 CIDR of the peer; by default any.")] | None = None


class SecurityGroupSpecWire(Wire, frozen=True):
    """The writable spec of a security group."""

    rules: Annotated[tuple[RuleWire, ...], msgspec.Meta(max_length=256)]


class GroupCreateSpec(SecurityGroupSpecWire, frozen=True, kw_only=True):
    """The spec of a new security group."""

    network_id: Id


class GroupCreate(Wire, frozen=True):
    """The request to create a security group."""

    metadata: MetadataWrite
    spec: GroupCreateSpec


class GroupUpdate(Wire, frozen=True):
    """The request to update a security group."""

    metadata: MetadataWrite
    spec: SecurityGroupSpecWire


class GroupStatusRead(Wire, frozen=True):
    """The region and network of a security group."""

    region_id: str
    network_id: str


class SecurityGroupRead(Wire, frozen=True):
    """A security group."""

    metadata: ProjectMetadataRead
    spec: SecurityGroupSpecWire
    status: GroupStatusRead


class SecurityGroupPath(Parameters, frozen=True, rename={"group": "securityGroupID"}):
    """The path of a security group."""

    group: Id
