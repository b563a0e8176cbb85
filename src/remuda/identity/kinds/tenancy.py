"""Organizations and projects as they are stored.

An organization owns everything in it. A project is kept by what refers to it: other services through references,
which are finalizers, and quota rows through the finalizer of its controller.
"""

from typing import Annotated, Literal

import msgspec

from remuda.identity.kinds.groups import SHARED, VERSION
from remuda.kernel.conditions import Condition
from remuda.kernel.tags import Tag
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct
from remuda.store.schema import keyed

__all__ = [
    "IN_CARE",
    "ORGANIZATION",
    "PROJECT",
    "GoogleOptions",
    "Organization",
    "OrganizationSpec",
    "Project",
    "ProjectSpec",
    "ProviderOptions",
    "TenancyStatus",
]

IN_CARE = f"{SHARED}/in-care"
"""Keeps an organization or a project until its controller has seen that nothing needs it any more."""


class GoogleOptions(StoredStruct, frozen=True):
    """What only a Google provider asks for."""

    customer_id: str = ""


class ProviderOptions(StoredStruct, frozen=True):
    """What some providers ask for beside what all do."""

    google: GoogleOptions | None = None


class OrganizationSpec(StoredStruct, frozen=True):
    """What is wanted of an organization. With a domain, whoever has an address there logs in at its provider."""

    domain: str = ""
    provider_scope: Literal["", "global", "organization"] = ""
    provider_id: str = ""
    provider_options: ProviderOptions | None = None
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class TenancyStatus(StoredStruct, frozen=True):
    """What controllers say about an organization or a project."""

    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    observed_generation: int = 0
    namespace: str = ""
    """Where an existing cluster keeps what belongs to it; ours is one flat space, so this stays empty."""


class Organization(Resource, frozen=True):
    """A tenant."""

    spec: OrganizationSpec = OrganizationSpec()
    status: TenancyStatus = TenancyStatus()


class ProjectSpec(StoredStruct, frozen=True):
    """What is wanted of a project: which groups have the rights in it that their roles give in projects."""

    group_ids: tuple[str, ...] = msgspec.field(default=(), name="groupIDs")
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class Project(Resource, frozen=True):
    """A part of an organization in which things are made."""

    spec: ProjectSpec = ProjectSpec()
    status: TenancyStatus = TenancyStatus()


ORGANIZATION = Kind(
    type=Organization,
    group=SHARED,
    version=VERSION,
    plural="organizations",
    indexes=(Index(name="domain", values=lambda each: [each.spec.domain.lower()] if each.spec.domain else []),),
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Organizations, found by their domain."""

PROJECT = Kind(
    type=Project,
    group=SHARED,
    version=VERSION,
    plural="projects",
    indexes=(Index(name="group", values=lambda project: project.spec.group_ids),),
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Projects, found by the groups that have rights in them."""
