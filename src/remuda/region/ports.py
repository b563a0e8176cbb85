"""Ports of the region service."""

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from remuda.http.authentication import Authenticator
from remuda.outbound.fetch import GuardedFetcher
from remuda.providers.contract.provider import Provider
from remuda.quota.ports import ProjectState, QuotaLedger
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.region.settings import RegionSettings
from remuda.service import ServicePorts


class IdentityPort(QuotaLedger, Protocol):
    """Identity as region uses it, for the payer and with its own permissions: projects and the quota ledger."""

    def projects(self) -> AsyncGenerator[ProjectState]:
        """Yield the state of every project, then of each that changes, without end; all again after a gap."""


class ProviderSource(Protocol):
    """Source of the providers of regions."""

    def find(self, region: str) -> Provider | None:
        """Return the provider of a region, or None if none is configured in this process."""

    def all(self) -> Iterable[Provider]: ...


@dataclass(frozen=True, kw_only=True)
class RegionPorts(ServicePorts):
    """Dependencies of the region service."""

    authenticator: Authenticator
    identity: IdentityPort
    providers: ProviderSource
    web: GuardedFetcher | None = None
    """HTTP client for image imports; by default one that follows the settings."""
    settings: RegionSettings = field(default_factory=RegionSettings)
    controllers: ControllerSettings = field(
        default_factory=lambda: ControllerSettings(resync=ResyncSettings(keys_per_s=2.0))
    )
    """A full resync of 100,000 servers takes hours, and so needs little CPU."""
