"""The catalogue room: which regions there are, and what their clouds offer.

Every method takes the context of the call and checks the caller's rights itself. The first generation of the API names
an organization, in which the right must be held; the second names none, and there the right counts wherever it is held.
Which regions a caller sees is decided by `clouds`, either way.
"""

from dataclasses import dataclass

from remuda.access.checks import allow_in_organization, allow_somewhere
from remuda.access.principal import Context
from remuda.providers.contract.catalogue import ExternalNetwork, Flavor
from remuda.region.catalogue.provider_registry import Clouds
from remuda.region.catalogue.rules import read_detail, read_region, usable_flavors
from remuda.region.catalogue.schema import RegionDetailRead
from remuda.region.names import permission
from remuda.region.settings import RegionSettings
from remuda.resources.schema import RegionRead, VersionRead
from remuda.resources.service_info import OpenIdProtectedResource, protected_resource

SERVICE_NAME = "unikorn-region-server"
"""What region calls itself: clients look for its beginning, up to the second dash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The room."""

    clouds: Clouds
    settings: RegionSettings
    version: str
    """The release that runs."""

    async def regions(self, context: Context, organization: str | None = None) -> list[RegionRead]:
        """Return the regions that the caller may know of."""
        _allow(context, "regions", organization)
        found = await self.clouds.all_seen(context.principal)
        return [read_region(region, self.clouds.capabilities(region)) for region in found]

    async def region(self, context: Context, region: str) -> RegionRead:
        _allow(context, "regions", None)
        found = await self.clouds.see(context.principal, region)
        return read_region(found, self.clouds.capabilities(found))

    async def detail(self, context: Context, organization: str, region: str) -> RegionDetailRead:
        """Return a region with the credentials of its cluster."""
        _allow(context, "regions/detail", organization)
        found = await self.clouds.see(context.principal, region)
        return read_detail(found, self.clouds.capabilities(found))

    async def flavors(
        self, context: Context, region: str, organization: str | None = None, *, fresh: bool = False
    ) -> list[Flavor]:
        """Return the flavors of a region that the caller can use, the smallest first.

        If they are to be fresh, the provider is asked now.
        """
        _allow(context, "flavors", organization)
        cloud = await self.clouds.seen(context.principal, region)
        found = await (cloud.flavors_now() if fresh else cloud.flavors())
        return usable_flavors(found, context.principal)

    async def external_networks(
        self, context: Context, region: str, organization: str | None = None
    ) -> list[ExternalNetwork]:
        """Return the networks of a region that lead out."""
        _allow(context, "externalnetworks", organization)
        cloud = await self.clouds.seen(context.principal, region)
        return sorted(await cloud.external_networks(), key=lambda network: (network.name, network.id))

    def describe(self) -> VersionRead:
        """Return which release answers."""
        return VersionRead(name=SERVICE_NAME, version=self.version)

    def protection(self) -> OpenIdProtectedResource:
        """Return who lets callers in."""
        return protected_resource(self.settings.url.rstrip("/"), self.settings.identity_url)


def _allow(context: Context, endpoint: str, organization: str | None) -> None:
    right = permission(endpoint, "read")
    if organization is None:
        allow_somewhere(context.principal, right)
    else:
        allow_in_organization(context.principal, right, organization)
