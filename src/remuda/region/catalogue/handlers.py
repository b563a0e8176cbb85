"""The catalogue room's handlers: each asks the service and renders what it says."""

from remuda.http.routes import Call, Nothing
from remuda.region.catalogue.rules import read_external_network, read_flavor
from remuda.region.catalogue.schema import ExternalNetworkRead, FlavorQuery, RegionDetailRead
from remuda.region.catalogue.service import Catalogue
from remuda.region.names import OrganizationPath, OrganizationRegionPath, RegionPath
from remuda.resources.schema import FlavorRead, RegionRead, VersionRead
from remuda.resources.service_info import OpenIdProtectedResource


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
