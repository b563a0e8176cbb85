"""Where organizations and regions are in the API, for the rooms that have something below them.

Rights to what region has, by the names that roles give them.
"""

from remuda.access.principal import Permission, Verb
from remuda.http.routes import Id, Parameters

ORGANIZATION = "/api/v1/organizations/{organizationID}"
"""An organization, in the first generation of the API."""
REGIONS_OF_ORGANIZATION = f"{ORGANIZATION}/regions"
"""The regions that there are."""
REGION_OF_ORGANIZATION = f"{REGIONS_OF_ORGANIZATION}/{{regionID}}"
"""One of them."""
REGIONS = "/api/v2/regions"
"""The regions that there are, in the second generation."""
REGION = f"{REGIONS}/{{regionID}}"
"""One of them."""


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    """An organization."""

    organization: Id


class OrganizationRegionPath(Parameters, frozen=True, rename={"organization": "organizationID", "region": "regionID"}):
    """A region, as somebody of an organization asks for it."""

    organization: Id
    region: Id


class RegionPath(Parameters, frozen=True, rename={"region": "regionID"}):
    """A region."""

    region: Id


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a right to an endpoint of region's, such as `networks:v2` or `networks:v2/references`."""
    return Permission(f"region:{endpoint}", verb)
