"""Ports of compute: identity, region, and everything else outside it that it uses.

Objects that a caller names are read on behalf of the caller, with the permissions that both have. Controllers and
actions call region with compute's own permissions, for the project that pays.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from remuda.access.principal import Context
from remuda.clients.delegation import Delegation
from remuda.compute.names import INSTANCE_TAG
from remuda.compute.settings import ComputeSettings
from remuda.http.authentication import Authenticator
from remuda.kernel.errors import Malformed, NotFound
from remuda.quota.ports import AllocatedQuota, Charge, ProjectRef, ProjectState, QuotaLedger
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.region.api import RegionApi
from remuda.region.images.schema import ImageQuery
from remuda.region.networks.schema import NetworkRead
from remuda.region.servers.schema import ServerRead
from remuda.resources.query import NetworkedQuery
from remuda.resources.schema import ImageRead, ProjectMetadataRead
from remuda.service import ServicePorts
from remuda.version import source_digest


class IdentityPort(QuotaLedger, Protocol):
    """Identity as compute uses it: projects and the quota ledger."""

    async def find_allocation(self, charge: Charge) -> AllocatedQuota | None:
        """Return the allocation of a resource, or None if there is none."""

    def list_allocations(self, payer: ProjectRef) -> AsyncIterator[AllocatedQuota]:
        """Yield the allocations of a project, for resources of all kinds."""

    async def free_quota(self, payer: ProjectRef) -> Mapping[str, int]:
        """Return the amounts that the limits of a project and its organization leave, by the kind of quota."""

    async def release_allocation(self, allocation: AllocatedQuota) -> None:
        """Release an allocation, if it exists."""

    def projects(self) -> AsyncIterator[ProjectState]:
        """Yield all projects, then each change, without end; after an interruption all projects again."""


@dataclass(frozen=True, slots=True)
class RegionClient:
    """Region's API, and the contexts in which compute calls it. Every call can be repeated."""

    api: RegionApi
    caller: Delegation

    async def find_network(self, network: str) -> NetworkRead | None:
        try:
            return await self.api.get_network(await self.caller.reading(), network)
        except (NotFound, Malformed):  # a damaged label may hold something that is no id
            return None

    async def list_images(self, context: Context, organization: str, region: str) -> list[ImageRead]:
        """Return the images that an organization may use, in any state."""
        query = ImageQuery(organizations=(organization,))
        return await self.api.list_images(await self.caller.impersonating(context, organization), region, query)

    async def list_servers(self, instance: str, payer: ProjectRef) -> list[ServerRead]:
        """Return the servers that are tagged with an instance, by one index lookup."""
        context = await self.caller.reading(payer.organization, payer.project)
        query = NetworkedQuery(tag=(f"{INSTANCE_TAG}={instance}",))
        return [each async for each in self.api.list_servers(context, query)]

    async def delete_server(self, server: str, payer: ProjectRef) -> None:
        context = await self.caller.as_service(payer.organization, payer.project)
        try:
            await self.api.delete_server(context, server)
        except NotFound:
            return


def project_in(metadata: ProjectMetadataRead) -> ProjectRef:
    return ProjectRef(metadata.organization_id, metadata.project_id)


def is_deleting(read: NetworkRead | ServerRead) -> bool:
    """Return whether the deletion of an object of region was requested."""
    return read.metadata.deletion_time is not None


@dataclass(frozen=True, kw_only=True)
class ComputePorts(ServicePorts):
    """Everything outside compute that it uses."""

    authenticator: Authenticator
    identity: IdentityPort
    region: RegionClient
    settings: ComputeSettings = field(default_factory=ComputeSettings)
    controllers: ControllerSettings = field(
        default_factory=lambda: ControllerSettings(resync=ResyncSettings(keys_per_s=2.0))
    )
    """A full resync of 100,000 instances takes 14 hours, so that it uses little of a core."""
    source_digest: Callable[[], str] = source_digest
    """Returns a digest of the source code: what was found with another one is compared again."""
