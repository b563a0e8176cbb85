"""The catalogue room's routes. Those below an organization are the first generation's, for services.

The catalogue room's handlers: each asks the service and renders what it says.
"""

from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.catalogue import schema as wire
from remuda.region.catalogue.rules import read_external_network, read_flavor
from remuda.region.catalogue.schema import ExternalNetworkRead, FlavorQuery, RegionDetailRead
from remuda.region.catalogue.service import Catalogue
from remuda.region.names import (
    REGION,
    REGION_OF_ORGANIZATION,
    REGIONS,
    REGIONS_OF_ORGANIZATION,
    OrganizationPath,
    OrganizationRegionPath,
    RegionPath,
    permission,
)
from remuda.resources import schema as offers
from remuda.resources.schema import FlavorRead, RegionRead, VersionRead
from remuda.resources.service_info import DAY_S, OpenIdProtectedResource, protected_resource_route, version_route


async def list_regions(catalogue: Catalogue, call: Call[Nothing, Nothing, Nothing]) -> list[RegionRead]:
    return await catalogue.regions(call.context)


async def list_regions_in(catalogue: Catalogue, call: Call[OrganizationPath, Nothing, Nothing]) -> list[RegionRead]:
    """List the regions, with a right in an organization."""
    return await catalogue.regions(call.context, call.path.organization)


async def get_region(catalogue: Catalogue, call: Call[RegionPath, Nothing, Nothing]) -> RegionRead:
    return await catalogue.region(call.context, call.path.region)


async def get_region_detail(
    catalogue: Catalogue, call: Call[OrganizationRegionPath, Nothing, Nothing]
) -> RegionDetailRead:
    """Read a region with the credentials of its cluster."""
    return await catalogue.detail(call.context, call.path.organization, call.path.region)


async def list_flavors(catalogue: Catalogue, call: Call[RegionPath, FlavorQuery, Nothing]) -> list[FlavorRead]:
    """List the flavors of a region, and how many of each are free."""
    flavors = await catalogue.flavors(call.context, call.path.region, fresh=call.query.fresh)
    return [read_flavor(flavor, with_free=True) for flavor in flavors]


async def list_flavors_in(
    catalogue: Catalogue, call: Call[OrganizationRegionPath, Nothing, Nothing]
) -> list[FlavorRead]:
    """List the flavors of a region, with a right in an organization."""
    flavors = await catalogue.flavors(call.context, call.path.region, call.path.organization)
    return [read_flavor(flavor, with_free=False) for flavor in flavors]


async def list_external_networks(
    catalogue: Catalogue, call: Call[RegionPath, Nothing, Nothing]
) -> list[ExternalNetworkRead]:
    """List the ways out of a region."""
    return [read_external_network(each) for each in await catalogue.external_networks(call.context, call.path.region)]


async def list_external_networks_in(
    catalogue: Catalogue, call: Call[OrganizationRegionPath, Nothing, Nothing]
) -> list[ExternalNetworkRead]:
    """List the ways out of a region, with a right in an organization."""
    found = await catalogue.external_networks(call.context, call.path.region, call.path.organization)
    return [read_external_network(each) for each in found]


async def read_version(catalogue: Catalogue, _call: Call[Nothing, Nothing, Nothing]) -> VersionRead:
    """Read the name and version of the service."""
    return catalogue.describe()


async def read_protected_resource(
    catalogue: Catalogue, _call: Call[Nothing, Nothing, Nothing]
) -> OpenIdProtectedResource:
    """Read who lets callers in."""
    return catalogue.protection()


_PINNED = "A flavor that can only be pinned to a piece of infrastructure is shown to those who may make servers."


def routes() -> list[AnyRoute]:
    """Return all of them, with paths below where region is mounted."""
    return [
        *_second(),
        *_first(),
        version_route(read_version),
        protected_resource_route(read_protected_resource),
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
            handler=list_regions,
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
            handler=get_region,
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
            handler=list_flavors,
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
            handler=list_external_networks,
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
            handler=list_regions_in,
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
            handler=get_region_detail,
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
            handler=list_flavors_in,
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
            handler=list_external_networks_in,
        ),
    ]
