"""Catalogue: regions of instances, with their flavors and images, as region offers them to the caller."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context
from remuda.compute.names import REGION, REGIONS, permission
from remuda.compute.ports import RegionClient
from remuda.compute.settings import ComputeSettings
from remuda.http.routes import AnyRoute, Route
from remuda.resources.schema import (
    FlavorRead,
    ImageRead,
    OrganizationPath,
    OrganizationRegionPath,
    RegionRead,
    VersionRead,
)
from remuda.resources.service_info import (
    OpenIdProtectedResource,
    protected_resource,
    protected_resource_route,
    version_route,
)

_KUBERNETES = "kubernetes"


def regions_for_instances(regions: Iterable[RegionRead]) -> list[RegionRead]:
    """Return the regions that have servers; a Kubernetes region has none."""
    return [region for region in regions if region.spec.type != _KUBERNETES]


def usable_flavors(flavors: Iterable[FlavorRead]) -> list[FlavorRead]:
    """Return the flavors that are not pinned to a host."""
    return [flavor for flavor in flavors if not flavor.spec.pinned_only]


def is_for_instances(image: ImageRead) -> bool:
    """Return whether an image is meant for instances; one with Kubernetes is for cluster nodes."""
    return _KUBERNETES not in image.spec.software_versions


def usable_images(images: Iterable[ImageRead]) -> list[ImageRead]:
    """Return the images that an instance can be created from now."""
    return [image for image in images if is_for_instances(image) and image.status.state == "ready"]


SERVICE_NAME = "unikorn-compute-server"
"""Clients compare the name up to its second dash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The offers of all regions."""

    region: RegionClient
    settings: ComputeSettings
    version: str
    """The release that runs."""

    async def regions(self, context: Context, organization: str) -> list[RegionRead]:
        """Return the regions that the caller may see and that instances can be in."""
        allow_in_organization(context.principal, permission("regions", "read"), organization)
        caller = await self.region.caller.impersonating(context, organization)
        return regions_for_instances(await self.region.api.list_regions(caller))

    async def flavors(self, context: Context, organization: str, region: str) -> list[FlavorRead]:
        allow_in_organization(context.principal, permission("flavors", "read"), organization)
        caller = await self.region.caller.impersonating(context, organization)
        return usable_flavors(await self.region.api.list_flavors(caller, region))

    async def images(self, context: Context, organization: str, region: str) -> list[ImageRead]:
        """Return the images that instances can be created from in a region."""
        allow_in_organization(context.principal, permission("images", "read"), organization)
        return usable_images(await self.region.list_images(context, organization, region))

    def describe(self) -> VersionRead:
        """Return the name and release of the service."""
        return VersionRead(name=SERVICE_NAME, version=self.version)

    def protection(self) -> OpenIdProtectedResource:
        """Return the identity provider whose tokens the service accepts."""
        return protected_resource(self.settings.url.rstrip("/"), self.settings.identity_url)


_route: Callable[..., AnyRoute] = partial(Route, method="GET", scope="organization", service=Catalogue)

ROUTES: list[AnyRoute] = [
    _route(
        path=REGIONS,
        name="list_regions",
        summary="List the regions that instances can be in",
        permission=permission("regions", "read"),
        path_type=OrganizationPath,
        response_type=list[RegionRead],
        calls=Catalogue.regions,
    ),
    _route(
        path=f"{REGION}/flavors",
        name="list_flavors",
        summary="List the flavors that instances can have in a region, and how many of each are free",
        permission=permission("flavors", "read"),
        path_type=OrganizationRegionPath,
        response_type=list[FlavorRead],
        calls=Catalogue.flavors,
    ),
    _route(
        path=f"{REGION}/images",
        name="list_images",
        summary="List the images that instances can be created from in a region",
        description="Only images that are ready, and no Kubernetes images.",
        permission=permission("images", "read"),
        path_type=OrganizationRegionPath,
        response_type=list[ImageRead],
        calls=Catalogue.images,
    ),
    version_route(service=Catalogue, calls=Catalogue.describe),
    protected_resource_route(service=Catalogue, calls=Catalogue.protection),
]
"""The routes of `Catalogue`."""
