"""Where organizations, regions and instances are in the API, for the rooms that have something below them."""

from remuda.http.routes import Id, Parameters

REGIONS = "/api/v1/organizations/{organizationID}/regions"
"""The regions that instances can be in."""
REGION = f"{REGIONS}/{{regionID}}"
"""One of them."""
INSTANCES = "/api/v2/instances"
"""All instances."""
INSTANCE = f"{INSTANCES}/{{instanceID}}"
"""One of them."""


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    """An organization."""

    organization: Id


class OrganizationRegionPath(Parameters, frozen=True, rename={"organization": "organizationID", "region": "regionID"}):
    """A region, as somebody of an organization asks for it."""

    organization: Id
    region: Id


class InstancePath(Parameters, frozen=True, rename={"instance": "instanceID"}):
    """An instance."""

    instance: Id
