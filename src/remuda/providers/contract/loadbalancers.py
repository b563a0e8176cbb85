"""Load balancers."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from remuda.providers.contract.common import Handle


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Member:
    """One of those that a listener hands its connections to."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """How one sees that a member is well."""

    interval_s: int = 10
    timeout_s: int = 5
    healthy_threshold: int = 2
    unhealthy_threshold: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What is listened on, and who answers."""

    name: str
    protocol: Literal["tcp", "udp"]
    port: int
    allowed_prefixes: tuple[str, ...] = ()
    idle_timeout_s: int | None = None
    members: tuple[Member, ...] = ()
    has_proxy_protocol: bool = False
    health_check: HealthCheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerSpec:
    """What a load balancer is to be. Its address is ours to choose."""

    handle: Handle
    network: str
    """The network's name, in the same tenancy."""
    address: str
    mac: str
    is_public: bool = False
    listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancer:
    """A load balancer as the provider has it."""

    spec: LoadBalancerSpec
    state: Literal["building", "active", "failed"]
    public_address: str = ""


class LoadBalancers(Protocol):
    """Keeps load balancers."""

    async def converge_balancer(self, wanted: LoadBalancerSpec) -> LoadBalancer:
        """Make a load balancer, or bring it up to date; what it returns may still be building.

        It raises what `converge_port` raises: its address is one of the network, too.
        """
        ...

    async def find_balancer(self, handle: Handle) -> LoadBalancer | None:
        """Look for a load balancer."""
        ...

    async def remove_balancer(self, handle: Handle) -> None:
        """Remove a load balancer with its public address."""
        ...

    def balancers(self) -> AsyncIterator[Sequence[LoadBalancer]]:
        """Yield all load balancers of ours, in parts."""
        ...
