"""The catalogue room's handlers: each asks the service and renders what it says."""

from remuda.compute.catalogue.service import Catalogue
from remuda.compute.names import OrganizationPath, OrganizationRegionPath
from remuda.http.routes import Call, Nothing
from remuda.resources.schema import FlavorRead, ImageRead, RegionRead, VersionRead
from remuda.resources.service_info import OpenIdProtectedResource

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
