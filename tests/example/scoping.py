"""Which mounts a query asks for, and who may ask for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remuda.access.checks import (
    ProjectExists,
    allow_for_object,
    allow_naming_organization,
    allow_naming_project,
    is_allowed_in_project,
)
from remuda.access.principal import Permission, Principal
from remuda.kernel.tags import TagSelector
from remuda.store.objects import Resource
from tests.example.kinds import ORGANIZATION, PROJECT, YARD_LABEL, Mount, scope_of


def allow_for(principal: Principal, permission: Permission, found: Resource, kind: str) -> None:
    """Demand a right to an object that was found by its id."""
    organization, project = scope_of(found)
    allow_for_object(principal, permission, organization, project, kind=kind, name=found.name)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which mounts are asked for. Several values of one filter mean any of them."""

    organizations: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    yards: tuple[str, ...] = ()
    tags: tuple[TagSelector, ...] = ()

    def labels(self) -> Mapping[str, str]:
        """Return what an index can find: the filters with one value."""
        chosen = {ORGANIZATION: self.organizations, PROJECT: self.projects, YARD_LABEL: self.yards}
        return {label: values[0] for label, values in chosen.items() if len(values) == 1}

    def visible(self, principal: Principal, permission: Permission) -> Callable[[Mount], bool]:
        """Return what tells whether the caller asked for a mount and may see it."""
        chosen = {ORGANIZATION: self.organizations, PROJECT: self.projects, YARD_LABEL: self.yards}
        several = {label: frozenset(values) for label, values in chosen.items() if len(values) > 1}

        def is_visible(mount: Mount) -> bool:
            labels = mount.metadata.labels
            return (
                is_allowed_in_project(principal, permission, *scope_of(mount))
                and all(labels[label] in values for label, values in several.items())
                and all(selector.matches(mount.spec.tags) for selector in self.tags)
            )

        return is_visible


async def allow_naming(
    principal: Principal, permission: Permission, filters: Filters, *, exists: ProjectExists
) -> None:
    """Refuse a query that names an organization or project outside the caller's rights, existing or not."""
    for organization in filters.organizations:
        allow_naming_organization(principal, permission, organization)
    for project in filters.projects:
        await allow_naming_project(principal, permission, project, exists=exists)
