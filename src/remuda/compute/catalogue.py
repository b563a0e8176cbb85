"""Catalogue: regions of instances, with their flavors and images, as region offers them to the caller."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from remuda.access.checks import require_in_organization
from remuda.access.principal import Context
from remuda.compute.names import REGION, REGIONS, permission
from remuda.compute.ports import RegionClient
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import NameQuery
from remuda.resources.schema import FlavorRead, ImageRead, OrganizationPath, OrganizationRegionPath, RegionRead

_KUBERNETES = "kubernetes"


def regions_for_instances(regions: Iterable[RegionRead]) -> list[RegionRead]:
    """Return the regions that have servers; a Kubernetes region has none."""
    return [region for region in regions if region.spec.type != _KUBERNETES]


def usable_flavors(flavors: Iterable[FlavorRead]) -> list[FlavorRead]:
    """Return the flavors that are not pinned to a host."""
    return [flavor for flavor in flavors if not flavor.spec.pinned_only]


def offered_images(images: Iterable[ImageRead]) -> list[ImageRead]:
    """Return the images that are offered for instances: ready, and without software for another purpose.

    An instance can be created from every ready image by its id.
    """
    return [image for image in images if image.status.state == "ready" and not image.spec.software_versions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The offers of all regions."""

    region: RegionClient

    async def regions(self, context: Context, organization: str) -> list[RegionRead]:
        """Return the regions that the caller may see and that instances can be in."""
        require_in_organization(context.principal, permission("regions", "read"), organization)
        caller = await self.region.caller.impersonating(context, organization)
        return regions_for_instances(await self.region.api.list_regions(caller))

    async def flavors(self, context: Context, organization: str, region: str) -> list[FlavorRead]:
        require_in_organization(context.principal, permission("flavors", "read"), organization)
        caller = await self.region.caller.impersonating(context, organization)
        return usable_flavors(await self.region.api.list_flavors(caller, region))

    async def images(self, context: Context, organization: str, region: str) -> list[ImageRead]:
        require_in_organization(context.principal, permission("images", "read"), organization)
        return offered_images(await self.region.list_images(context, organization, region))


_route: Callable[..., AnyRoute] = partial(Route, method="GET", scope="organization", service=Catalogue)

ROUTES: list[AnyRoute] = [
    _route(
        path=REGIONS,
        name="list_regions",
        summary="List the regions that instances can be in",
        permission=permission("regions", "read"),
        path_type=OrganizationPath,
        query_type=NameQuery,
        response_type=list[RegionRead],
        calls=Catalogue.regions,
    ),
    _route(
        path=f"{REGION}/flavors",
        name="list_flavors",
        summary="List the flavors that instances can have in a region, and how many of each are free",
        permission=permission("flavors", "read"),
        path_type=OrganizationRegionPath,
        query_type=NameQuery,
        response_type=list[FlavorRead],
        calls=Catalogue.flavors,
    ),
    _route(
        path=f"{REGION}/images",
        name="list_images",
        summary="List the images that are offered for instances in a region",
        description=(
            "Only images that are ready and have no software versions. "
            "Any ready image of the region can be used by its id."
        ),
        permission=permission("images", "read"),
        path_type=OrganizationRegionPath,
        query_type=NameQuery,
        response_type=list[ImageRead],
        calls=Catalogue.images,
    ),
]
