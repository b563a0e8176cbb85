"""What region is given to work with.

Of identity it knows this port and nothing else. It speaks for the region service: each call is made with that service's
own right, for whoever pays.
"""

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from remuda.http.authentication import Authenticator
from remuda.outbound.fetch import GuardedFetcher
from remuda.providers.contract.provider import Provider
from remuda.quota.ports import ProjectLedger, ProjectState
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.region.settings import RegionSettings
from remuda.service import ServicePorts


class IdentityPort(ProjectLedger, Protocol):
    """What region asks of identity."""

    def projects(self) -> AsyncGenerator[ProjectState]:
        """Yield every project there is, then each that changes, without end; all again where changes do not tell."""
        ...


class Providers(Protocol):
    """Where the providers of regions come from."""

    def find(self, region: str) -> Provider | None:
        """Return what does the work in a region, or None if nothing is set up for it."""
        ...

    def all(self) -> Iterable[Provider]:
        """Return all of them."""
        ...


@dataclass(frozen=True, kw_only=True)
class RegionPorts(ServicePorts):
    """Everything outside region that it touches."""

    authenticator: Authenticator
    identity: IdentityPort
    providers: Providers
    web: GuardedFetcher | None = None
    """The way to the servers from which images are imported, where it is not the usual one."""
    settings: RegionSettings = field(default_factory=RegionSettings)
    controllers: ControllerSettings = field(
        default_factory=lambda: ControllerSettings(resync=ResyncSettings(keys_per_s=2.0))
    )
    """A full scan of 100,000 servers takes hours, and so next to nothing."""
