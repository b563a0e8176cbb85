"""Schema of networks."""

from typing import Annotated

import msgspec

from remuda.http.schema import ENCODED_TWICE, Parameters, Uuid, Wire
from remuda.resources.schema import MetadataWrite, NetworkId, OrganizationId, ProjectId, ProjectMetadataRead, RegionId

_Length = Annotated[int, msgspec.Meta(ge=0, le=30)]
_Some = msgspec.Meta(max_length=64)


class RouteWire(Wire, frozen=True):
    """A static route, which DHCP announces to servers."""

    prefix: Annotated[str, msgspec.Meta(description="IPv4 CIDR.", examples=["10.8.0.0/16"])]
    nexthop: Annotated[str, msgspec.Meta(description="IPv4 address.", examples=["192.168.0.10"])]


class ReservationsWire(Wire, frozen=True):
    """The reserved ranges at the base of a network."""

    prefix_length: Annotated[_Length, msgspec.Meta(description="Prefix length of the whole reservation.")]
    provider_reserved_prefix_length: (
        Annotated[_Length, msgspec.Meta(description="Prefix length of the provider's part; the rest is for storage.")]
        | None
    ) = None


class NetworkSpecWire(Wire, frozen=True):
    """The writable spec of a network."""

    dns_nameservers: Annotated[
        tuple[str, ...],
        _Some,
        msgspec.Meta(description="IPv4 addresses; by default the provider's.", examples=[["192.0.2.53"]]),
    ]
    routes: Annotated[
        Annotated[tuple[RouteWire, ...], _Some],
        msgspec.Meta(description="Static routes.", examples=[[{"prefix": "10.8.0.0/16", "nexthop": "192.168.0.10"}]]),
    ] = ()


class NetworkCreateSpec(NetworkSpecWire, frozen=True, kw_only=True):
    """The spec of a new network."""

    organization_id: OrganizationId
    project_id: ProjectId
    region_id: RegionId
    prefix: Annotated[str, msgspec.Meta(description="IPv4 CIDR, /24 or larger.", examples=["192.168.0.0/24"])]
    reservations: ReservationsWire | None = None


class NetworkCreate(Wire, frozen=True):
    """The request to create a network."""

    metadata: MetadataWrite
    spec: NetworkCreateSpec


class NetworkUpdate(Wire, frozen=True):
    """The request to update a network."""

    metadata: MetadataWrite
    spec: NetworkSpecWire


class NetworkStatusRead(Wire, frozen=True):
    """The fields of a network that were fixed when it was created."""

    region_id: Annotated[Uuid, msgspec.Meta(description="Region of the network.")]
    prefix: Annotated[str, msgspec.Meta(description="IPv4 CIDR of the network.")]
    reservations: ReservationsWire


class NetworkRead(Wire, frozen=True):
    """A network."""

    metadata: ProjectMetadataRead
    spec: NetworkSpecWire
    status: NetworkStatusRead


class NetworkPath(Parameters, frozen=True, rename={"network": "networkID"}):
    """The path of a network."""

    network: NetworkId


class ReferencePath(NetworkPath, frozen=True, rename={"network": "networkID"}):
    """The path of a reference to a network."""

    reference: Annotated[str, msgspec.Meta(min_length=1, max_length=253, description=ENCODED_TWICE)]
