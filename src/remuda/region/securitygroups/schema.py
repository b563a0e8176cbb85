"""Schema of security groups."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Parameters, Uuid, Wire
from remuda.region.kinds.securitygroups import Direction, Protocol
from remuda.resources.schema import MetadataWrite, NetworkId, ProjectMetadataRead

_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class RuleWire(Wire, frozen=True):
    """Traffic that is allowed."""

    direction: Annotated[
        Direction, msgspec.Meta(description="From the perspective of the server.", examples=["ingress"])
    ]
    protocol: Annotated[Protocol, msgspec.Meta(description="Protocol of the traffic.", examples=["tcp"])]
    port: (
        Annotated[_Port, msgspec.Meta(description="For tcp and udp; by default all ports.", examples=[443])] | None
    ) = None
    port_max: Annotated[_Port, msgspec.Meta(description="The last port of a range.")] | None = None
    prefix: (
        Annotated[str, msgspec.Meta(description="IPv4 CIDR of the peer; by default any.", examples=["0.0.0.0/0"])]
        | None
    ) = None


class SecurityGroupSpecWire(Wire, frozen=True):
    """The writable spec of a security group."""

    rules: Annotated[
        tuple[RuleWire, ...],
        msgspec.Meta(
            max_length=256,
            description="Rules; traffic that no rule allows is dropped.",
            examples=[[{"direction": "ingress", "protocol": "tcp", "port": 443, "prefix": "0.0.0.0/0"}]],
        ),
    ]


class SecurityGroupCreateSpec(SecurityGroupSpecWire, frozen=True, kw_only=True):
    """The spec of a new security group."""

    network_id: NetworkId


class SecurityGroupCreate(Wire, frozen=True):
    """The request to create a security group."""

    metadata: MetadataWrite
    spec: SecurityGroupCreateSpec


class SecurityGroupUpdate(Wire, frozen=True):
    """The request to update a security group."""

    metadata: MetadataWrite
    spec: SecurityGroupSpecWire


class SecurityGroupStatusRead(Wire, frozen=True):
    """The region and network of a security group."""

    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the security group.")]
    network_id: Annotated[Uuid, msgspec.Meta(description="Network of the security group.")]


class SecurityGroupRead(Wire, frozen=True):
    """A security group."""

    metadata: ProjectMetadataRead
    spec: SecurityGroupSpecWire
    status: SecurityGroupStatusRead


class SecurityGroupPath(Parameters, frozen=True, rename={"group": "securityGroupID"}):
    """The path of a security group."""

    group: Annotated[Id, msgspec.Meta(description="Id of the security group.")]
