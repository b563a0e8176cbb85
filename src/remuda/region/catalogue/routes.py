"""Routes of regions and their offers. Those below an organization are of API version 1, which services call."""

from collections.abc import Callable
from functools import partial

from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import NameQuery
from remuda.region.catalogue import schema
from remuda.region.catalogue.service import Catalogue
from remuda.region.names import REGION, REGION_OF_ORGANIZATION, REGIONS, REGIONS_OF_ORGANIZATION, RegionPath, permission
from remuda.resources.schema import FlavorRead, OrganizationPath, OrganizationRegionPath, RegionRead
from remuda.resources.service_info import DAY_S

_PINNED = (
    "A flavor that can only be used on a named piece of infrastructure is listed for callers that may create servers."
)

_route: Callable[..., AnyRoute] = partial(Route, method="GET", scope="organization", service=Catalogue)

_VERSION_2: list[AnyRoute] = [
    _route(
        path=REGIONS,
        name="list_regions",
        summary="List the regions that the caller may see",
        permission=permission("regions", "read"),
        query_type=NameQuery,
        response_type=list[RegionRead],
        calls=Catalogue.regions,
    ),
    _route(
        path=REGION,
        name="get_region",
        summary="Read a region",
        permission=permission("regions", "read"),
        path_type=RegionPath,
        response_type=RegionRead,
        calls=Catalogue.region,
    ),
    _route(
        path=f"{REGION}/flavors",
        name="list_flavors",
        summary="List the flavors of a region, with their free capacity",
        description=_PINNED,
        permission=permission("flavors", "read"),
        path_type=RegionPath,
        query_type=schema.FlavorQuery,
        response_type=list[FlavorRead],
        calls=Catalogue.flavors,
    ),
    _route(
        path=f"{REGION}/externalnetworks",
        name="list_external_networks",
        summary="List the external networks of a region",
        permission=permission("externalnetworks", "read"),
        path_type=RegionPath,
        query_type=NameQuery,
        response_type=list[schema.ExternalNetworkRead],
        calls=Catalogue.external_networks,
    ),
]

_VERSION_1: list[AnyRoute] = [
    _route(
        path=REGIONS_OF_ORGANIZATION,
        name="list_regions_in",
        summary="List the regions that the caller may see",
        permission=permission("regions", "read"),
        path_type=OrganizationPath,
        query_type=NameQuery,
        response_type=list[RegionRead],
        calls=Catalogue.regions,
    ),
    _route(
        path=f"{REGION_OF_ORGANIZATION}/detail",
        name="get_region_detail",
        summary="Read a region with the credentials of its cluster",
        permission=permission("regions/detail", "read"),
        path_type=OrganizationRegionPath,
        response_type=schema.RegionDetailRead,
        has_secret=True,
        calls=Catalogue.detail,
    ),
    _route(
        path=f"{REGION_OF_ORGANIZATION}/flavors",
        name="list_flavors_in",
        summary="List the flavors of a region",
        description=_PINNED,
        permission=permission("flavors", "read"),
        path_type=OrganizationRegionPath,
        query_type=NameQuery,
        response_type=list[FlavorRead],
        max_age_s=DAY_S,
        calls=Catalogue.flavors_in,
    ),
    _route(
        path=f"{REGION_OF_ORGANIZATION}/externalnetworks",
        name="list_external_networks_in",
        summary="List the external networks of a region",
        permission=permission("externalnetworks", "read"),
        path_type=OrganizationRegionPath,
        query_type=NameQuery,
        response_type=list[schema.ExternalNetworkRead],
        max_age_s=DAY_S,
        calls=Catalogue.external_networks,
    ),
]

ROUTES = [*_VERSION_2, *_VERSION_1]
