"""The catalogue room: in which regions instances can be, and what they can be made of there.

Every method takes the context of the call and checks the caller's rights itself. What there is, region says, asked as
the caller.

What an instance can be made of, and which release answers.

Which regions, flavors and images are for instances.

The catalogue room's handlers: each asks the service and renders what it says.

The catalogue room's routes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context
from remuda.compute.names import REGION, REGIONS, OrganizationPath, OrganizationRegionPath, permission
from remuda.compute.ports import RegionPort
from remuda.compute.settings import ComputeSettings
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.resources.schema import FlavorRead, ImageRead, RegionRead, VersionRead
from remuda.resources.service_info import (
    OpenIdProtectedResource,
    protected_resource,
    protected_resource_route,
    version_route,
)

_KUBERNETES = "kubernetes"


def regions_for_instances(regions: Iterable[RegionRead]) -> list[RegionRead]:
    """Return the regions that have servers: a cluster's region has none."""
    return [region for region in regions if region.spec.type != _KUBERNETES]


def usable_flavors(flavors: Iterable[FlavorRead]) -> list[FlavorRead]:
    """Return the flavors that an instance can have: it never says on which piece of infrastructure it goes."""
    return [flavor for flavor in flavors if not flavor.spec.pinned_only]


def is_for_instances(image: ImageRead) -> bool:
    """Tell whether an image is meant for instances: one with a Kubernetes on it is a cluster's node."""
    return _KUBERNETES not in image.spec.software_versions


def usable_images(images: Iterable[ImageRead]) -> list[ImageRead]:
    """Return the images that an instance can be made of now."""
    return [image for image in images if is_for_instances(image) and image.status.state == "ready"]


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


_InRegion = Call[OrganizationRegionPath, Nothing, Nothing]


async def list_regions(catalogue: Catalogue, call: Call[OrganizationPath, Nothing, Nothing]) -> list[RegionRead]:
    return await catalogue.regions(call.context, call.path.organization)


async def list_flavors(catalogue: Catalogue, call: _InRegion) -> list[FlavorRead]:
    return await catalogue.flavors(call.context, call.path.organization, call.path.region)


async def list_images(catalogue: Catalogue, call: _InRegion) -> list[ImageRead]:
    return await catalogue.images(call.context, call.path.organization, call.path.region)


async def read_version(catalogue: Catalogue, _call: Call[Nothing, Nothing, Nothing]) -> VersionRead:
    """Read the name and version of the service."""
    return catalogue.describe()


async def read_protected_resource(
    catalogue: Catalogue, _call: Call[Nothing, Nothing, Nothing]
) -> OpenIdProtectedResource:
    """Read who lets callers in."""
    return catalogue.protection()


def routes() -> list[AnyRoute]:
    """Return all of them, with paths below where compute is mounted."""
    return [
        Route(
            method="GET",
            path=REGIONS,
            name="list_regions",
            summary="List the regions that instances can be in",
            scope="organization",
            permission=permission("regions", "read"),
            path_type=OrganizationPath,
            answer_type=list[RegionRead],
            handler=list_regions,
        ),
        Route(
            method="GET",
            path=f"{REGION}/flavors",
            name="list_flavors",
            summary="List the flavors that instances can have in a region, and how many of each are free",
            scope="organization",
            permission=permission("flavors", "read"),
            path_type=OrganizationRegionPath,
            answer_type=list[FlavorRead],
            handler=list_flavors,
        ),
        Route(
            method="GET",
            path=f"{REGION}/images",
            name="list_images",
            summary="List the images that instances can be made of in a region",
            description="Only those that are ready, and none that has a Kubernetes on it.",
            scope="organization",
            permission=permission("images", "read"),
            path_type=OrganizationRegionPath,
            answer_type=list[ImageRead],
            handler=list_images,
        ),
        version_route(read_version),
        protected_resource_route(read_protected_resource),
    ]
