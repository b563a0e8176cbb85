"""The catalogue room's routes."""

from remuda.compute.catalogue import handlers
from remuda.compute.names import REGION, REGIONS, OrganizationPath, OrganizationRegionPath
from remuda.compute.permissions import permission
from remuda.http.routes import AnyRoute, Route
from remuda.resources.schema import FlavorRead, ImageRead, RegionRead
from remuda.resources.service_info import protected_resource_route, version_route


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
            handler=handlers.list_regions,
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
            handler=handlers.list_flavors,
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
            handler=handlers.list_images,
        ),
        version_route(handlers.read_version),
        protected_resource_route(handlers.read_protected_resource),
    ]
