"""The catalogue room's routes. Those below an organization are the first generation's, for services."""

from remuda.http.routes import AnyRoute, Route
from remuda.region.catalogue import handlers
from remuda.region.catalogue import schema as wire
from remuda.region.names import (
    REGION,
    REGION_OF_ORGANIZATION,
    REGIONS,
    REGIONS_OF_ORGANIZATION,
    OrganizationPath,
    OrganizationRegionPath,
    RegionPath,
)
from remuda.region.permissions import permission
from remuda.resources import schema as offers
from remuda.resources.service_info import DAY_S, protected_resource_route, version_route

_PINNED = "A flavor that can only be pinned to a piece of infrastructure is shown to those who may make servers."


def routes() -> list[AnyRoute]:
    """Return all of them, with paths below where region is mounted."""
    return [
        *_second(),
        *_first(),
        version_route(handlers.read_version),
        protected_resource_route(handlers.read_protected_resource),
    ]


def _second() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=REGIONS,
            name="list_regions",
            summary="List the regions that the caller may know of",
            scope="organization",
            permission=permission("regions", "read"),
            answer_type=list[offers.RegionRead],
            handler=handlers.list_regions,
        ),
        Route(
            method="GET",
            path=REGION,
            name="get_region",
            summary="Read a region",
            scope="organization",
            permission=permission("regions", "read"),
            path_type=RegionPath,
            answer_type=offers.RegionRead,
            handler=handlers.get_region,
        ),
        Route(
            method="GET",
            path=f"{REGION}/flavors",
            name="list_flavors",
            summary="List the flavors of a region, and how many of each are free",
            description=_PINNED,
            scope="organization",
            permission=permission("flavors", "read"),
            path_type=RegionPath,
            query_type=wire.FlavorQuery,
            answer_type=list[offers.FlavorRead],
            handler=handlers.list_flavors,
        ),
        Route(
            method="GET",
            path=f"{REGION}/externalnetworks",
            name="list_external_networks",
            summary="List the networks of a region that lead out",
            scope="organization",
            permission=permission("externalnetworks", "read"),
            path_type=RegionPath,
            answer_type=list[wire.ExternalNetworkRead],
            handler=handlers.list_external_networks,
        ),
    ]


def _first() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=REGIONS_OF_ORGANIZATION,
            name="list_regions_in",
            summary="List the regions that the caller may know of",
            scope="organization",
            permission=permission("regions", "read"),
            path_type=OrganizationPath,
            answer_type=list[offers.RegionRead],
            handler=handlers.list_regions_in,
        ),
        Route(
            method="GET",
            path=f"{REGION_OF_ORGANIZATION}/detail",
            name="get_region_detail",
            summary="Read a region with the credentials of its cluster",
            scope="organization",
            permission=permission("regions/detail", "read"),
            path_type=OrganizationRegionPath,
            answer_type=wire.RegionDetailRead,
            holds_secret=True,
            handler=handlers.get_region_detail,
        ),
        Route(
            method="GET",
            path=f"{REGION_OF_ORGANIZATION}/flavors",
            name="list_flavors_in",
            summary="List the flavors of a region",
            description=_PINNED,
            scope="organization",
            permission=permission("flavors", "read"),
            path_type=OrganizationRegionPath,
            answer_type=list[offers.FlavorRead],
            max_age_s=DAY_S,
            handler=handlers.list_flavors_in,
        ),
        Route(
            method="GET",
            path=f"{REGION_OF_ORGANIZATION}/externalnetworks",
            name="list_external_networks_in",
            summary="List the networks of a region that lead out",
            scope="organization",
            permission=permission("externalnetworks", "read"),
            path_type=OrganizationRegionPath,
            answer_type=list[wire.ExternalNetworkRead],
            max_age_s=DAY_S,
            handler=handlers.list_external_networks_in,
        ),
    ]
