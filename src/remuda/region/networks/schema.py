"""What clients send and read of networks."""

from typing import Annotated

import msgspec

from remuda.http.schema import ENCODED_TWICE, Id, Parameters, Wire
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead

_Length = Annotated[int, msgspec.Meta(ge=0, le=30)]
_Some = msgspec.Meta(max_length=64)


class RouteWire(Wire, frozen=True):
    """Which way to another network; servers are told by DHCP."""

    prefix: Annotated[str, msgspec.Meta(description="IPv4 CIDR.")]
    nexthop: Annotated[str, msgspec.Meta(description="IPv4 address.")]


class ReservationsWire(Wire, frozen=True):
    """How much of a network's beginning is not for servers."""

    prefix_length: Annotated[_Length, msgspec.Meta(description="All of it, as the length of a prefix.")]
    provider_reserved_prefix_length: (
        Annotated[_Length, msgspec.Meta(description="The part that is the provider's own; the rest is for storage.")]
        | None
    ) = None


class NetworkSpecWire(Wire, frozen=True):
    """What can be changed of a network."""

    dns_nameservers: Annotated[
        tuple[str, ...], _Some, msgspec.Meta(description="IPv4 addresses; with none, the provider's own.")
    ]
    routes: Annotated[tuple[RouteWire, ...], _Some] = ()


class NetworkCreateSpec(NetworkSpecWire, frozen=True, kw_only=True):
    """What a new network is to be."""

    organization_id: Id
    project_id: Id
    region_id: Id
    prefix: Annotated[str, msgspec.Meta(description="IPv4 CIDR, /24 or larger.")]
    reservations: ReservationsWire | None = None


class NetworkCreate(Wire, frozen=True):
    """A network as it is asked for."""

    metadata: MetadataWrite
    spec: NetworkCreateSpec


class NetworkUpdate(Wire, frozen=True):
    """A network as it is to be from now on."""

    metadata: MetadataWrite
    spec: NetworkSpecWire


class NetworkStatusRead(Wire, frozen=True):
    """What was settled when a network was made."""

    region_id: str
    prefix: str
    reservations: ReservationsWire


class NetworkRead(Wire, frozen=True):
    """A network."""

    metadata: ProjectMetadataRead
    spec: NetworkSpecWire
    status: NetworkStatusRead


class NetworkPath(Parameters, frozen=True, rename={"network": "networkID"}):
    """A network."""

    network: Id


class ReferencePath(NetworkPath, frozen=True, rename={"network": "networkID"}):
    """Something that keeps a network."""

    reference: Annotated[str, msgspec.Meta(min_length=1, max_length=253, description=ENCODED_TWICE)]
