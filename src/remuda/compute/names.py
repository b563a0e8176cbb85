"""Where organizations, regions and instances are in the API, for the rooms that have something below them.

Rights to what compute has, by the names that roles give them.

The tags by which the compute service knows its own servers and images. Nobody else may write them.
"""

from remuda.access.principal import Permission, Verb
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


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a right to an endpoint of compute's, such as `instances`."""
    return Permission(f"compute:{endpoint}", verb)


RESERVED = ("compute.unikorn-cloud.org/", "compute.unikorn-cloud.org:")
"""What begins like this is ours."""
INSTANCE_TAG = "compute.unikorn-cloud.org/instance-id"
"""On a server: the instance that it does the work of."""
INCARNATION = "compute.unikorn-cloud.org/instance-uid"
"""On a server: which of the instances that have had this id."""
PROVENANCE = "compute.unikorn-cloud.org:instance-id"
"""On an image: the instance that it is a snapshot of."""
