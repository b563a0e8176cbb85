"""Paths, permission names and reserved tags of the compute service."""

from typing import Annotated

import msgspec

from remuda.access.principal import Permission, Verb
from remuda.http.schema import Id, Parameters

REGIONS = "/api/v1/organizations/{organizationID}/regions"
"""The regions that instances can be in."""
REGION = f"{REGIONS}/{{regionID}}"
INSTANCES = "/api/v2/instances"
INSTANCE = f"{INSTANCES}/{{instanceID}}"


class InstancePath(Parameters, frozen=True, rename={"instance": "instanceID"}):
    """An instance."""

    instance: Annotated[Id, msgspec.Meta(description="Id of the instance.")]


def permission(endpoint: str, verb: Verb) -> Permission:
    """Return a permission for an endpoint of compute, such as `instances`."""
    return Permission(f"compute:{endpoint}", verb)


RESERVED = ("compute.unikorn-cloud.org/", "compute.unikorn-cloud.org:")
"""Prefixes of the tags that only compute may write."""
INSTANCE_TAG = "compute.unikorn-cloud.org/instance-id"
"""On a server: the id of its instance."""
INCARNATION = "compute.unikorn-cloud.org/instance-uid"
"""On a server: the uid of its instance, which tells apart instances that have had the same id."""
PROVENANCE = "compute.unikorn-cloud.org:instance-id"
"""On an image: the instance that it is a snapshot of."""
