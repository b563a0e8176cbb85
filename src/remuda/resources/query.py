"""Queries of lists: the objects of projects that a caller asks for and may read.

Several values of one filter mean any of them. A filter by one label value uses its index; the others, and the caller's
permission, are checked for each object. An organization or project that the caller cannot see has no objects for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from remuda.access.checks import (
    is_allowed_in_project,
    require_for_object,
)
from remuda.access.principal import Permission, Principal
from remuda.http.schema import Id, NamedListQuery
from remuda.kernel.errors import Invalid, Malformed
from remuda.kernel.tags import Tag, TagSelector, parse_tag_selector
from remuda.resources.conventions import NETWORK, ORGANIZATION, PROJECT, REGION, organization_of, project_of
from remuda.resources.crud import each_once
from remuda.resources.tags import tag_labels
from remuda.store.contract import IndexEntry, label_index
from remuda.store.objects import Resource, ResourceT


def require_for(principal: Principal, permission: Permission, found: Resource) -> None:
    """Require a permission for an object that was found by its id."""
    where = organization_of(found), project_of(found)
    require_for_object(principal, permission, *where, kind=type(found).__name__, name=found.name)


def is_allowed_for(principal: Principal, permission: Permission, found: Resource) -> bool:
    """Return whether the permission is granted in the project of an object."""
    return is_allowed_in_project(principal, permission, organization_of(found), project_of(found))


_MAX_SCOPES = 100
"""Largest number of projects and organizations whose indexes are read together."""


def _entries(label: str, values: Iterable[str]) -> tuple[IndexEntry, ...]:
    return tuple((label_index(label), value) for value in values)


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a query."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The accepted values by label; a label without values accepts everything."""
    tags: Sequence[TagSelector] = ()

    def labels(self) -> dict[str, str]:
        """Return the filters that an index supports: those with one value."""
        return {label: values[0] for label, values in self.values.items() if len(values) == 1}

    def scopes(self, principal: Principal, permission: Permission) -> Sequence[IndexEntry] | None:
        """Return index entries under one of which each object is found that matches and that the caller may read.

        None if there are too many for an index to help, or none is needed. What is found there is checked by `visible`.
        """
        access = principal.access
        if permission in access.everywhere:
            several = ((label, values) for label, values in self.values.items() if 1 < len(values) <= _MAX_SCOPES)
            return _entries(*next(several, ("", ()))) or None
        organizations, projects = self.values.get(ORGANIZATION, ()), self.values.get(PROJECT, ())
        known = [each for each in access.organizations.items() if not organizations or each[0] in organizations]
        whole = [name for name, inside in known if permission in inside.permissions]
        single = {
            project: name
            for name, inside in known
            if permission not in inside.permissions
            for project, granted in inside.projects.items()
            if permission in granted and (not projects or project in projects)
        }
        if len(whole) + len(single) > _MAX_SCOPES:
            whole, single = list(each_once([*whole, *single.values()])), {}
        return _entries(ORGANIZATION, whole) + _entries(PROJECT, single) if len(whole) <= _MAX_SCOPES else None

    def visible_labels(self, principal: Principal, permission: Permission) -> Callable[[Mapping[str, str]], bool]:
        """Return a predicate: whether an object with these labels matches and the caller may read it."""
        several = {label: frozenset(values) for label, values in self.values.items() if len(values) > 1}
        allowed: dict[tuple[str, str], bool] = {}  # decided once for each project

        def is_visible(labels: Mapping[str, str]) -> bool:
            project = labels[ORGANIZATION], labels[PROJECT]
            if project not in allowed:
                allowed[project] = is_allowed_in_project(principal, permission, *project)
            return allowed[project] and all(labels.get(label) in values for label, values in several.items())

        return is_visible

    def visible(
        self, has_visible_labels: Callable[[Mapping[str, str]], bool], tags_of: Callable[[ResourceT], Sequence[Tag]]
    ) -> Callable[[ResourceT], bool]:
        """Return a predicate: whether an object with such labels has the tags."""

        def is_visible(resource: ResourceT) -> bool:
            if not has_visible_labels(resource.metadata.labels):
                return False
            return not self.tags or all(selector.matches(tags_of(resource)) for selector in self.tags)

        return is_visible


_NAMES = {"continue_": "continue", "organizations": "organizationID", "projects": "projectID"}


class ProjectQuery(NamedListQuery, frozen=True, rename=_NAMES):
    """Query for objects of projects: with all of these tags, in any of these scopes."""

    tag: Annotated[tuple[str, ...], msgspec.Meta(description="Only those with all of these, as name=value.")] = ()
    organizations: Annotated[tuple[Id, ...], msgspec.Meta(description="Only of these organizations.")] = ()
    projects: Annotated[tuple[Id, ...], msgspec.Meta(description="Only of these projects.")] = ()


class RegionalQuery(ProjectQuery, frozen=True, rename={**_NAMES, "regions": "regionID"}):
    """Query for objects of regions."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only in these regions.")] = ()


class NetworkedQuery(RegionalQuery, frozen=True, rename={**_NAMES, "regions": "regionID", "networks": "networkID"}):
    """Query for objects of networks."""

    networks: Annotated[tuple[Id, ...], msgspec.Meta(description="Only on these networks.")] = ()


def filters_of(query: ProjectQuery, *, is_labelled: bool = False) -> Filters:
    """Return the filters of a query.

    `is_labelled`: the tags of services are labels too (`tag_labels`), and so found by an index.
    """
    tags = tuple(_selector(text) for text in query.tag)
    values: dict[str, Sequence[str]] = {ORGANIZATION: query.organizations, PROJECT: query.projects}
    if is_labelled:
        values |= {label: (value,) for label, value in tag_labels(each.tag for each in tags).items()}
    if isinstance(query, RegionalQuery):
        values[REGION] = query.regions
    if isinstance(query, NetworkedQuery):
        values[NETWORK] = query.networks
    return Filters(values, tags)


def _selector(text: str) -> TagSelector:
    try:
        return parse_tag_selector(text)
    except Invalid:
        raise Malformed("tag decode failed") from None  # clients know this message
