"""What the queries of all lists have in common."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from remuda.http.routes import Id, ListQuery
from remuda.kernel.errors import Invalid, Malformed
from remuda.kernel.tags import TagSelector, parse_tag_selector
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.resources.query import Filters
from remuda.resources.regional import NETWORK, REGION
from remuda.resources.tags import tag_labels

_NAMES = {"continue_": "continue", "organizations": "organizationID", "projects": "projectID"}


class ProjectQuery(ListQuery, frozen=True, rename=_NAMES):
    """Which objects of projects: those with all of these tags, in any of these places."""

    tag: Annotated[tuple[str, ...], msgspec.Meta(description="Only those with all of these, as name=value.")] = ()
    organizations: Annotated[tuple[Id, ...], msgspec.Meta(description="Only of these organizations.")] = ()
    projects: Annotated[tuple[Id, ...], msgspec.Meta(description="Only of these projects.")] = ()


class RegionalQuery(ProjectQuery, frozen=True, rename={**_NAMES, "regions": "regionID"}):
    """Which objects of regions."""

    regions: Annotated[tuple[Id, ...], msgspec.Meta(description="Only in these regions.")] = ()


class NetworkedQuery(RegionalQuery, frozen=True, rename={**_NAMES, "regions": "regionID", "networks": "networkID"}):
    """Which objects of networks."""

    networks: Annotated[tuple[Id, ...], msgspec.Meta(description="Only on these networks.")] = ()


def filters_of(query: ProjectQuery, *, is_versioned: bool = True, is_labelled: bool = False) -> Filters:
    """Return what a query asks for; of what says which API made it, only what ours did.

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
    return Filters(values, tags, is_versioned=is_versioned)


def _selector(text: str) -> TagSelector:
    try:
        return parse_tag_selector(text)
    except Invalid:
        raise Malformed("tag decode failed") from None  # the words that clients know
