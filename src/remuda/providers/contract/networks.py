"""Tenancies at a provider, and the networks and security groups in them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from remuda.providers.contract.common import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """An isolated part of the provider for one of our identities."""

    name: str
    organization: str
    project: str
    public_key: str = ""
    """OpenSSH key for servers whose users chose the identity's key pair."""


class CloudTenancies(Protocol):
    """Capability of managing tenancies."""

    async def converge_tenancy(self, desired: Tenancy) -> None:
        """Create or update a tenancy."""

    async def find_tenancy(self, name: str) -> Tenancy | None:
        """Return a tenancy, or None."""

    async def remove_tenancy(self, name: str) -> None:
        """Remove a tenancy, or raise InUse while it contains anything."""

    def tenancies(self) -> AsyncIterator[Sequence[Tenancy]]:
        """Yield all our tenancies, page by page."""


@dataclass(frozen=True, slots=True)
class CloudAddressRange:
    """Addresses from the first to the last, both included."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class CloudRoute:
    """Next hop of the traffic to a prefix."""

    prefix: str
    next_hop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudNetworkSpec:
    """Desired network."""

    handle: Handle
    prefix: str
    gateway: str
    pool: CloudAddressRange
    """Addresses that the provider's own DHCP may assign; ours are among them."""
    nameservers: tuple[str, ...] = ()
    routes: tuple[CloudRoute, ...] = ()
    vlan: int | None = None
    """VLAN that we assigned, where the region has physical networks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudNetwork:
    """A network as the provider reports it."""

    spec: CloudNetworkSpec
    id: str
    subnet_id: str


class CloudNetworks(Protocol):
    """Capability of managing networks."""

    async def converge_network(self, desired: CloudNetworkSpec) -> CloudNetwork:
        """Create a network, or update its name servers and routes; any other change raises Rejected.

        Raise NotFound if the tenancy does not exist, and InUse if another network has the VLAN.
        """

    async def find_network(self, handle: Handle) -> CloudNetwork | None:
        """Return a network, or None."""

    async def remove_network(self, handle: Handle) -> None:
        """Remove a network, or raise InUse while a port or a load balancer is on it."""

    def networks(self) -> AsyncIterator[Sequence[CloudNetwork]]:
        """Yield all our networks, page by page."""


Direction = Literal["ingress", "egress"]
"""Direction of traffic, seen from a server."""
Traffic = Literal["any", "icmp", "tcp", "udp", "vrrp"]
"""Protocol of traffic."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class CloudRule:
    """Rule that allows some traffic."""

    direction: Direction
    protocol: Traffic
    first_port: int | None = None
    last_port: int | None = None
    prefix: str = "0.0.0.0/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSecurityGroup:
    """Rules for the ports in the group. Ingress that no rule allows is blocked; all egress is allowed."""

    handle: Handle
    rules: tuple[CloudRule, ...] = ()


class CloudSecurityGroups(Protocol):
    """Capability of managing security groups."""

    async def converge_group(self, desired: CloudSecurityGroup) -> CloudSecurityGroup:
        """Create a group, or update its rules; NotFound if the tenancy does not exist."""

    async def find_group(self, handle: Handle) -> CloudSecurityGroup | None:
        """Return a group, or None."""

    async def remove_group(self, handle: Handle) -> None:
        """Remove a group, or raise InUse while a port is in it."""

    def groups(self) -> AsyncIterator[Sequence[CloudSecurityGroup]]:
        """Yield all our groups, page by page."""
