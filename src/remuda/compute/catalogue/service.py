"""The catalogue room: in which regions instances can be, and what they can be made of there.

Every method takes the context of the call and checks the caller's rights itself. What there is, region says, asked as
the caller.
"""

from dataclasses import dataclass

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context
from remuda.compute.catalogue.rules import regions_for_instances, usable_flavors, usable_images
from remuda.compute.permissions import permission
from remuda.compute.ports import RegionPort
from remuda.compute.settings import ComputeSettings
from remuda.resources.schema import FlavorRead, ImageRead, RegionRead, VersionRead
from remuda.resources.service_info import OpenIdProtectedResource, protected_resource

SERVICE_NAME = "unikorn-compute-server"
"""What compute calls itself: clients look for its beginning, up to the second dash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The room."""

    region: RegionPort
    settings: ComputeSettings
    version: str
    """The release that runs."""

    async def regions(self, context: Context, organization: str) -> list[RegionRead]:
        """Return the regions that the caller may know of and instances can be in."""
        allow_in_organization(context.principal, permission("regions", "read"), organization)
        return regions_for_instances(await self.region.regions(context, organization))

    async def flavors(self, context: Context, organization: str, region: str) -> list[FlavorRead]:
        """Return the flavors that instances can have in a region."""
        allow_in_organization(context.principal, permission("flavors", "read"), organization)
        return usable_flavors(await self.region.flavors(context, organization, region))

    async def images(self, context: Context, organization: str, region: str) -> list[ImageRead]:
        """Return the images that instances can be made of in a region."""
        allow_in_organization(context.principal, permission("images", "read"), organization)
        return usable_images(await self.region.images(context, organization, region))

    def describe(self) -> VersionRead:
        """Return which release answers."""
        return VersionRead(name=SERVICE_NAME, version=self.version)

    def protection(self) -> OpenIdProtectedResource:
        """Return who lets callers in."""
        return protected_resource(self.settings.url.rstrip("/"), self.settings.identity_url)
