"""Conventions: labels, annotations, finalizers and status that objects of every service have."""

from collections.abc import Iterator
from typing import Annotated

from remuda.kernel.conditions import Condition
from remuda.store.kinds import keyed
from remuda.store.objects import NAME_LABEL, Resource, StoredStruct

_CLOUD = "unikorn-cloud.org"
_PRINCIPAL = f"principal.{_CLOUD}"

NAME = NAME_LABEL
"""Label: the display name."""
ORGANIZATION = f"{_CLOUD}/organization"
"""Label: the organization of the object."""
PROJECT = f"{_CLOUD}/project"
"""Label: the project of the object."""
USER = f"{_CLOUD}/user"
"""Label: the user of a membership."""
RESOURCE_KIND = f"{_CLOUD}/resource-kind"
"""Label: the qualified plural of the resource of an allocation."""
RESOURCE_ID = f"{_CLOUD}/resource-id"
"""Label: the id of the resource of an allocation."""

DESCRIPTION = f"{_CLOUD}/description"
"""Annotation: the description by users."""
CREATOR = f"{_CLOUD}/creator"
"""Annotation: the subject whose credentials created it."""
CREATOR_NAME = f"{_CLOUD}/creator-name"
"""Annotation: the display name of a creator that was a service account, at that time."""
MODIFIER = f"{_CLOUD}/modifier"
"""Annotation: the subject whose credentials changed it last."""
MODIFIER_NAME = f"{_CLOUD}/modifier-name"
"""Annotation: the display name of a modifier that was a service account, at that time."""
MODIFIED = f"{_CLOUD}/modifiedTimestamp"
"""Annotation: the time of the last change."""

PAYING_ORGANIZATION = f"{_PRINCIPAL}/organization"
"""Label: the organization that pays for it; set at create, never changed."""
PAYING_PROJECT = f"{_PRINCIPAL}/project"
"""Label: the project that pays for it; set at create, never changed."""
UNINDEXED = frozenset({PAYING_ORGANIZATION, PAYING_PROJECT})
"""Labels without an index: objects are never listed by them."""
PAYING_CREATOR = f"{_PRINCIPAL}/creator"
"""Annotation: the actor on whose behalf it was created."""

UNNAMED = "undefined"
"""The name in responses of an object without one, because clients expect one."""


def organization_of(resource: Resource) -> str:
    """Return the organization of an object."""
    return resource.metadata.labels[ORGANIZATION]


def project_of(resource: Resource) -> str:
    """Return the project of an object."""
    return resource.metadata.labels[PROJECT]


_REGIONS = "regions.unikorn-cloud.org"

REGION = f"{_REGIONS}/region-id"
"""Label: the region of the object."""
IDENTITY = f"{_REGIONS}/identity-id"
"""Label: the identity at the cloud to which it belongs."""
NETWORK = f"{_REGIONS}/network-id"
"""Label: the network of the object."""
API_VERSION = "resource.unikorn-cloud.org/api-version"
"""Label: the version of the API that created the object; only that one shows it."""
API_V2 = "2"
"""The supported version of the API. Objects of the first version are not shown."""


def region_of(resource: Resource) -> str:
    """Return the id of the region of an object."""
    return resource.metadata.labels[REGION]


def identity_of(resource: Resource) -> str:
    """Return the id of the identity to which an object belongs."""
    return resource.metadata.labels[IDENTITY]


def network_of(resource: Resource) -> str:
    """Return the id of the network of an object."""
    return resource.metadata.labels[NETWORK]


def is_api_v2(resource: Resource) -> bool:
    """Return whether the supported version of the API created this object."""
    return resource.metadata.labels.get(API_VERSION) == API_V2


CONTROLLER_FINALIZER = "unikorn"
"""The finalizer of our controllers, as in existing clusters, which take every other one for a reference."""

Conditions = Annotated[tuple[Condition, ...], keyed("type")]
"""Conditions of an object, one per type."""


class LifecycleStatus(StoredStruct, frozen=True):
    """The status that every controller writes."""

    conditions: Conditions = ()
    observed_generation: int = 0


def nonempty(*values: str) -> Iterator[str]:
    """Yield the values that are not empty, for an index."""
    return (value for value in values if value)
