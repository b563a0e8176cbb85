"""Where things live at a provider: tenancies, and in them networks and security groups."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from remuda.providers.contract.common import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """A part of the provider for one identity of ours: what is in it is apart from all others."""

    name: str
    organization: str
    project: str
    public_key: str = ""
    """The OpenSSH key that servers get whose users asked for the identity's key pair."""


class Tenancies(Protocol):
    """Keeps tenancies apart."""

    async def converge_tenancy(self, wanted: Tenancy) -> None:
        """Make a tenancy, or mend it."""
        ...

    async def find_tenancy(self, name: str) -> Tenancy | None:
        """Look for a tenancy."""
        ...

    async def remove_tenancy(self, name: str) -> None:
        """Remove a tenancy, or raise InUse while anything is in it."""
        ...

    def tenancies(self) -> AsyncIterator[Sequence[Tenancy]]:
        """Yield all tenancies of ours, in parts."""
        ...


@dataclass(frozen=True, slots=True)
class Range:
    """Addresses from the first to the last, both included."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Route:
    """Where to send what goes to a prefix."""

    prefix: str
    next_hop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """What a network is to be."""

    handle: Handle
    prefix: str
    gateway: str
    pool: Range
    """What the provider's own DHCP may hand out; addresses of ours are in it."""
    nameservers: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    vlan: int | None = None
    """The segment that we gave it, where the region has physical networks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network as the provider has it."""

    spec: NetworkSpec
    id: str
    subnet_id: str


class Networks(Protocol):
    """Keeps networks."""

    async def converge_network(self, wanted: NetworkSpec) -> Network:
        """Make a network, or bring its name servers and routes up to date; the rest stays as it was made: Refused.

        Raise NotFound if there is no such tenancy, and InUse if another network has the segment.
        """
        ...

    async def find_network(self, handle: Handle) -> Network | None:
        """Look for a network."""
        ...

    async def remove_network(self, handle: Handle) -> None:
        """Remove a network, or raise InUse while a port or a load balancer is on it."""
        ...

    def networks(self) -> AsyncIterator[Sequence[Network]]:
        """Yield all networks of ours, in parts."""
        ...


Direction = Literal["ingress", "egress"]
"""Which way traffic goes, seen from a server."""
Traffic = Literal["any", "icmp", "tcp", "udp", "vrrp"]
"""What sort of traffic it is."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Rule:
    """Lets some traffic through."""

    direction: Direction
    protocol: Traffic
    first_port: int | None = None
    last_port: int | None = None
    prefix: str = "0.0.0.0/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroup:
    """Rules for whatever is in the group. What no rule lets in stays out; everything may go out."""

    handle: Handle
    rules: tuple[Rule, ...] = ()


class SecurityGroups(Protocol):
    """Keeps security groups."""

    async def converge_group(self, wanted: SecurityGroup) -> SecurityGroup:
        """Make a group, or bring its rules up to date; NotFound if there is no such tenancy."""
        ...

    async def find_group(self, handle: Handle) -> SecurityGroup | None:
        """Look for a group."""
        ...

    async def remove_group(self, handle: Handle) -> None:
        """Remove a group, or raise InUse while a port is in it."""
        ...

    def groups(self) -> AsyncIterator[Sequence[SecurityGroup]]:
        """Yield all groups of ours, in parts."""
        ...
