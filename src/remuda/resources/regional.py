"""The labels by which region's objects are found, besides those of every service (`remuda.resources.conventions`)."""

from remuda.store.objects import Resource

_REGIONS = "regions.unikorn-cloud.org"

REGION = f"{_REGIONS}/region-id"
"""The region that it is in."""
IDENTITY = f"{_REGIONS}/identity-id"
"""The identity that it belongs to at the cloud."""
NETWORK = f"{_REGIONS}/network-id"
"""The network that it is on."""
API_VERSION = "resource.unikorn-cloud.org/api-version"
"""The generation of the API that made it, and alone shows it."""
SECOND = "2"
"""The generation that we have. What lacks it was made by the first, and is not found."""


def region_of(resource: Resource) -> str:
    """Return the id of the region that an object is in."""
    return resource.metadata.labels[REGION]


def identity_of(resource: Resource) -> str:
    """Return the id of the identity that an object belongs to."""
    return resource.metadata.labels[IDENTITY]


def network_of(resource: Resource) -> str:
    """Return the id of the network that an object is on."""
    return resource.metadata.labels[NETWORK]


def is_second(resource: Resource) -> bool:
    """Tell whether the API that we have made this object."""
    return resource.metadata.labels.get(API_VERSION) == SECOND
