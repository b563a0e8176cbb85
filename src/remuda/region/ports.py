"""Ports of the region service."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from remuda.http.authentication import Authenticator
from remuda.kernel.errors import Invalid
from remuda.outbound.fetch import GuardedFetcher
from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudImage
from remuda.providers.contract.provider import Provider
from remuda.quota.ports import ProjectState, QuotaLedger
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.region.kinds.regions import RegionSpec
from remuda.region.settings import RegionSettings
from remuda.service import ServicePorts


class IdentityPort(QuotaLedger, Protocol):
    """Identity as region uses it, for the payer and with its own permissions: projects and the quota ledger."""

    def projects(self) -> AsyncGenerator[ProjectState]:
        """Yield the state of every project, then of each that changes, without end; all again after a gap."""


class ProviderChanges:
    """Regions whose providers were opened, opened again or closed, each once until it is read."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}
        self._is_changed = asyncio.Event()

    def add(self, region: str) -> None:
        self._changed[region] = None
        self._is_changed.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        await self._is_changed.wait()
        region = next(iter(self._changed))
        del self._changed[region]
        if not self._changed:
            self._is_changed.clear()
        return region


class ProviderSource(Protocol):
    """Source of the providers of regions, which come and go while the process runs."""

    def find(self, region: str) -> Provider | None:
        """Return the provider of a region, or None if it has none in this process."""

    def all(self) -> Mapping[str, Provider]:
        """Return the present providers by the ids of their regions."""

    def changes(self) -> ProviderChanges:
        """Return the changes from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountNames:
    """Names at a cloud, for ids that are not known yet."""

    domain: str = ""
    user: str = ""
    user_domain: str = ""
    """Domain of the user; empty for the one that it manages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFinding:
    """Thing that a cloud lacks, and the command with which its operator adds it."""

    capability: str
    """Name of the capability that does not work without it."""
    message: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRegion:
    """A region as its cloud is found."""

    spec: RegionSpec
    """With the ids of the names."""
    flavors: Sequence[CloudFlavor] = ()
    images: Sequence[CloudImage] = ()
    external_networks: Sequence[CloudExternalNetwork] = ()
    findings: Sequence[RegionFinding] = ()


class RegionConnector(Protocol):
    """Connector to the clouds of regions that platform administrators create."""

    async def check(self, region: str, spec: RegionSpec, names: AccountNames) -> CheckedRegion:
        """Return what a cloud offers and lacks, or raise Invalid for a spec with which no region could work.

        A failed check leaves nothing at the cloud.
        """

    async def release(self, region: str, spec: RegionSpec) -> None:
        """Remove what the region itself has at the cloud, after everything of its users is gone."""


class NoConnector:
    """The connector of a process that creates no regions."""

    async def check(self, region: str, spec: RegionSpec, names: AccountNames) -> CheckedRegion:  # noqa: ARG002  as in the protocol
        raise Invalid("spec.type", f"{spec.provider} cannot be added here", remedy="add the region in another process")

    async def release(self, region: str, spec: RegionSpec) -> None:
        """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class RegionPorts(ServicePorts):
    """Dependencies of the region service."""

    authenticator: Authenticator
    identity: IdentityPort
    providers: ProviderSource
    connector: RegionConnector = field(default_factory=NoConnector)
    web: GuardedFetcher | None = None
    """HTTP client for image imports; by default one that follows the settings."""
    settings: RegionSettings = field(default_factory=RegionSettings)
    controllers: ControllerSettings = field(
        default_factory=lambda: ControllerSettings(resync=ResyncSettings(keys_per_s=2.0))
    )
    """A full resync of 100,000 servers takes hours, and so needs little CPU."""
