"""The labels and annotations that objects of every service carry. Labels are what objects are found by.

The labels by which region's objects are found, besides those of every service (`remuda.resources.conventions`).

What all kinds with a controller have in common.
"""

from collections.abc import Iterator
from typing import Annotated

from remuda.kernel.conditions import Condition
from remuda.store.kinds import keyed
from remuda.store.objects import Resource, StoredStruct

_CLOUD = "unikorn-cloud.org"
_PRINCIPAL = f"principal.{_CLOUD}"

NAME = f"{_CLOUD}/name"
"""Label: what people call it."""
ORGANIZATION = f"{_CLOUD}/organization"
"""Label: the organization it is in."""
PROJECT = f"{_CLOUD}/project"
"""Label: the project it is in."""
USER = f"{_CLOUD}/user"
"""Label: the user that a membership is of."""
RESOURCE_KIND = f"{_CLOUD}/resource-kind"
"""Label: the qualified plural of what an allocation is for."""
RESOURCE_ID = f"{_CLOUD}/resource-id"
"""Label: the id of what an allocation is for."""

DESCRIPTION = f"{_CLOUD}/description"
"""Annotation: what people say about it."""
CREATOR = f"{_CLOUD}/creator"
"""Annotation: the subject whose credentials made it."""
MODIFIER = f"{_CLOUD}/modifier"
"""Annotation: the subject whose credentials changed it last."""
MODIFIED = f"{_CLOUD}/modifiedTimestamp"
"""Annotation: when that was."""

PAYING_ORGANIZATION = f"{_PRINCIPAL}/organization"
"""Label: the organization that pays for it; set at create, never changed."""
PAYING_PROJECT = f"{_PRINCIPAL}/project"
"""Label: the project that pays for it, likewise."""
UNSOUGHT = frozenset({NAME, PAYING_ORGANIZATION, PAYING_PROJECT})
"""Labels that are read, and by which nobody lists."""
PAYING_CREATOR = f"{_PRINCIPAL}/creator"
"""Annotation: for whom it was made."""

UNNAMED = "undefined"
"""The name on the wire of what has none, because clients expect one."""


def organization_of(resource: Resource) -> str:
    """Return the organization that an object is in."""
    return resource.metadata.labels[ORGANIZATION]


def project_of(resource: Resource) -> str:
    """Return the project that an object is in."""
    return resource.metadata.labels[PROJECT]


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


IN_CARE = "unikorn"
"""The finalizer of every controller of ours: it still has work to do. (Existing clusters chose the name, and take every
other one for a reference.)"""

Conditions = Annotated[tuple[Condition, ...], keyed("type")]
"""Statements about an object, one of each type."""


class LifecycleStatus(StoredStruct, frozen=True):
    """What every controller says about its objects."""

    conditions: Conditions = ()
    observed_generation: int = 0


def given(*values: str) -> Iterator[str]:
    """Yield the values that are not empty: what is not said is not found by it."""
    return (value for value in values if value)
