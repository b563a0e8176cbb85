"""Paths of organizations and regions, and the names of region's permissions."""

from remuda.access.principal import Permission, Verb
from remuda.http.schema import Parameters
from remuda.resources.schema import RegionId

ORGANIZATION = "/api/v1/organizations/{organizationID}"
REGIONS_OF_ORGANIZATION = f"{ORGANIZATION}/regions"
REGION_OF_ORGANIZATION = f"{REGIONS_OF_ORGANIZATION}/{{regionID}}"
REGIONS = "/api/v2/regions"
REGION = f"{REGIONS}/{{regionID}}"


class RegionPath(Parameters, frozen=True, rename={"region": "regionID"}):
    """A region."""

    region: RegionId


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return the permission for an endpoint of region, such as `networks:v2` or `networks:v2/references`."""
    return Permission(f"region:{endpoint}", verb)
