"""Schema of load balancers."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead

_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
_Seconds = Annotated[int, msgspec.Meta(ge=1, le=300)]
_Times = Annotated[int, msgspec.Meta(ge=1, le=10)]
_Prefix = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:{_OCTET}\.){{3}}{_OCTET}\/(?:3[0-2]|[1-2]?[0-9])$",
        description="an IPv4 prefix; IPv6 is not supported",
        examples=["10.0.0.0/8"],
    ),
]


class HealthCheckWire(Wire, frozen=True, omit_defaults=False):
    """The health check of the members of a pool."""

    interval_seconds: _Seconds = 10
    timeout_seconds: Annotated[_Seconds, msgspec.Meta(description="Less than the interval.")] = 5
    healthy_threshold: _Times = 2
    unhealthy_threshold: _Times = 2


class MemberWire(Wire, frozen=True):
    """A backend of a pool."""

    address: Annotated[str, msgspec.Meta(description="IPv4 address.")]
    port: _Port


class PoolWire(Wire, frozen=True):
    """The backends of a listener."""

    members: Annotated[tuple[MemberWire, ...], msgspec.Meta(max_length=256)]
    proxy_protocol_v2: Annotated[
        bool | None, msgspec.Meta(description="Send the address of the client to the members; only for TCP.")
    ] = msgspec.field(default=None, name="proxyProtocolV2")
    health_check: HealthCheckWire | None = None


class ListenerWire(Wire, frozen=True):
    """A listener, identified by its name. Its protocol and port cannot be changed."""

    name: Annotated[str, msgspec.Meta(max_length=63, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", examples=["web"])]
    protocol: Literal["tcp", "udp"]
    port: _Port
    pool: PoolWire
    allowed_cidrs: Annotated[
        tuple[_Prefix, ...], msgspec.Meta(max_length=256, description="Allowed clients; by default any.")
    ] = ()
    idle_timeout_seconds: (
        Annotated[int, msgspec.Meta(ge=1, le=86400, description="Only for TCP; by default 60.")] | None
    ) = None


class BalancerSpecWire(Wire, frozen=True, kw_only=True):
    """The writable spec of a load balancer."""

    public_ip: Annotated[bool | None, msgspec.Meta(description="Whether it has a public address.")] = msgspec.field(
        default=None, name="publicIP"
    )
    listeners: Annotated[tuple[ListenerWire, ...], msgspec.Meta(min_length=1, max_length=64)]


class BalancerCreateSpec(BalancerSpecWire, frozen=True, kw_only=True):
    """The spec of a new load balancer."""

    network_id: Id
    vip_address: Annotated[
        str | None, msgspec.Meta(description="The requested IPv4 address; by default a free one.")
    ] = None


class BalancerCreate(Wire, frozen=True):
    """The request to create a load balancer."""

    metadata: MetadataWrite
    spec: BalancerCreateSpec


class BalancerUpdate(Wire, frozen=True):
    """The request to update a load balancer."""

    metadata: MetadataWrite
    spec: BalancerSpecWire


class BalancerStatusRead(Wire, frozen=True):
    """The status of a load balancer."""

    region_id: str
    network_id: str
    vip_address: str = ""
    public_ip: str = msgspec.field(default="", name="publicIP")


class BalancerRead(Wire, frozen=True):
    """A load balancer."""

    metadata: ProjectMetadataRead
    spec: BalancerSpecWire
    status: BalancerStatusRead


class BalancerPath(Parameters, frozen=True, rename={"balancer": "loadBalancerID"}):
    """The path of a load balancer."""

    balancer: Id
