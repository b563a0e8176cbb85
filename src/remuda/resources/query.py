"""Which objects of projects a query asks for, and who may ask for them.

Several values of one filter mean any of them. What can be found by a label is found by its index; the rest is looked at
one by one, with the caller's right to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from remuda.access.checks import (
    ProjectExists,
    allow_for_object,
    allow_naming_organization,
    allow_naming_project,
    is_allowed_in_project,
)
from remuda.access.principal import Permission, Principal
from remuda.kernel.tags import Tag, TagSelector
from remuda.resources.conventions import ORGANIZATION, PROJECT, organization_of, project_of
from remuda.resources.regional import is_second
from remuda.store.objects import Resource, ResourceT


def allow_for(principal: Principal, permission: Permission, found: Resource) -> None:
    """Demand a right to an object that was found by its id."""
    where = organization_of(found), project_of(found)
    allow_for_object(principal, permission, *where, kind=type(found).__name__, name=found.name)


@dataclass(frozen=True, slots=True)
class Filters:
    """What a query asks for."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By label; a label without values lets everything through."""
    tags: Sequence[TagSelector] = ()
    is_versioned: bool = False
    """Only what our generation of the API made. Almost everything is, so no index would help."""

    def labels(self) -> dict[str, str]:
        """Return what an index can find: the filters with one value."""
        return {label: values[0] for label, values in self.values.items() if len(values) == 1}

    def visible(
        self, principal: Principal, permission: Permission, tags_of: Callable[[ResourceT], Sequence[Tag]]
    ) -> Callable[[ResourceT], bool]:
        """Return what tells whether the caller asked for an object and may see it."""
        several = {label: frozenset(values) for label, values in self.values.items() if len(values) > 1}

        def is_visible(resource: ResourceT) -> bool:
            labels = resource.metadata.labels
            return (
                is_allowed_in_project(principal, permission, organization_of(resource), project_of(resource))
                and all(labels.get(label) in values for label, values in several.items())
                and (not self.is_versioned or is_second(resource))
                and all(selector.matches(tags_of(resource)) for selector in self.tags)
            )

        return is_visible


async def allow_naming(
    principal: Principal, permission: Permission, filters: Filters, *, exists: ProjectExists
) -> None:
    """Refuse a query that names an organization or project outside the caller's rights, existing or not."""
    for organization in filters.values.get(ORGANIZATION, ()):
        allow_naming_organization(principal, permission, organization)
    for project in filters.values.get(PROJECT, ()):
        await allow_naming_project(principal, permission, project, exists=exists)
