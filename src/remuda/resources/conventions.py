"""The labels and annotations that objects of every service carry. Labels are what objects are found by."""

from remuda.store.objects import Resource

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
