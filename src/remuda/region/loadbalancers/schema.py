"""Schema of load balancers."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Parameters, Uuid, Wire
from remuda.resources.schema import MetadataWrite, NetworkId, ProjectMetadataRead

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

    interval_seconds: Annotated[_Seconds, msgspec.Meta(description="Seconds between two checks.")] = 10
    timeout_seconds: Annotated[_Seconds, msgspec.Meta(description="Less than the interval.")] = 5
    healthy_threshold: Annotated[
        _Times, msgspec.Meta(description="Number of successful checks after which a member gets traffic.")
    ] = 2
    unhealthy_threshold: Annotated[
        _Times, msgspec.Meta(description="Number of failed checks after which a member gets none.")
    ] = 2


class MemberWire(Wire, frozen=True):
    """A backend of a pool."""

    address: Annotated[str, msgspec.Meta(description="IPv4 address.", examples=["192.168.0.20"])]
    port: Annotated[_Port, msgspec.Meta(description="Port of the backend.", examples=[8443])]


class PoolWire(Wire, frozen=True):
    """The backends of a listener."""

    members: Annotated[
        tuple[MemberWire, ...],
        msgspec.Meta(max_length=256, description="Backends.", examples=[[{"address": "192.168.0.20", "port": 8443}]]),
    ]
    proxy_protocol_v2: Annotated[
        bool | None, msgspec.Meta(description="Send the address of the client to the members; only for TCP.")
    ] = msgspec.field(default=None, name="proxyProtocolV2")
    health_check: HealthCheckWire | None = None


class ListenerWire(Wire, frozen=True):
    """A listener, identified by its name. Its protocol and port cannot be changed."""

    name: Annotated[
        str,
        msgspec.Meta(
            max_length=63, pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", examples=["web"], description="Name of the listener."
        ),
    ]
    protocol: Annotated[Literal["tcp", "udp"], msgspec.Meta(description="Protocol that it accepts.", examples=["tcp"])]
    port: Annotated[_Port, msgspec.Meta(description="Port that it listens on.", examples=[443])]
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
    listeners: Annotated[
        tuple[ListenerWire, ...],
        msgspec.Meta(
            min_length=1,
            max_length=64,
            description="Listeners, each name once.",
            examples=[
                [
                    {
                        "name": "web",
                        "protocol": "tcp",
                        "port": 443,
                        "pool": {"members": [{"address": "192.168.0.20", "port": 8443}]},
                    }
                ]
            ],
        ),
    ]


class BalancerCreateSpec(BalancerSpecWire, frozen=True, kw_only=True):
    """The spec of a new load balancer."""

    network_id: NetworkId
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

    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the load balancer.")]
    network_id: Annotated[Uuid, msgspec.Meta(description="Network of the load balancer.")]
    vip_address: Annotated[
        str, msgspec.Meta(description="Its IPv4 address on the network; absent before it has one.")
    ] = ""
    public_ip: Annotated[str, msgspec.Meta(description="Its public IPv4 address; absent without one.")] = msgspec.field(
        default="", name="publicIP"
    )


class BalancerRead(Wire, frozen=True):
    """A load balancer."""

    metadata: ProjectMetadataRead
    spec: BalancerSpecWire
    status: BalancerStatusRead


class BalancerPath(Parameters, frozen=True, rename={"balancer": "loadBalancerID"}):
    """The path of a load balancer."""

    balancer: Annotated[Id, msgspec.Meta(description="Id of the load balancer.")]
