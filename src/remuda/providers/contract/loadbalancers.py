"""Load balancers at a provider."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from remuda.providers.contract.common import Handle


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class CloudMember:
    """A backend of a listener."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudHealthCheck:
    """Health check of the members of a listener."""

    interval_s: int = 10
    timeout_s: int = 5
    healthy_threshold: int = 2
    unhealthy_threshold: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudListener:
    """A port on which a load balancer accepts connections, and its members."""

    name: str
    protocol: Literal["tcp", "udp"]
    port: int
    allowed_prefixes: tuple[str, ...] = ()
    idle_timeout_s: int | None = None
    members: tuple[CloudMember, ...] = ()
    has_proxy_protocol: bool = False
    health_check: CloudHealthCheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudLoadBalancerSpec:
    """Desired load balancer. We choose its address. Listeners, their members and their prefixes are sorted."""

    handle: Handle
    network: str
    """Name of the network, in the same tenancy."""
    address: str
    mac: str
    is_public: bool = False
    listeners: tuple[CloudListener, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudLoadBalancer:
    """A load balancer as the provider reports it."""

    spec: CloudLoadBalancerSpec
    state: Literal["building", "active", "failed"]
    public_address: str = ""


class CloudLoadBalancers(Protocol):
    """Capability of managing load balancers."""

    async def converge_balancer(self, desired: CloudLoadBalancerSpec) -> CloudLoadBalancer:
        """Create or update a load balancer, which may still be building. Raise what `converge_port` raises.

        One change may take several calls: repeat it until `find_balancer` returns what is desired.
        """

    async def find_balancer(self, handle: Handle) -> CloudLoadBalancer | None:
        """Return a load balancer, or None."""

    async def remove_balancer(self, handle: Handle) -> None:
        """Remove a load balancer with its public address. It may take several calls: repeat it until there is none."""

    def balancers(self) -> AsyncIterator[Sequence[Handle]]:
        """Yield the handles of all our load balancers, page by page."""
