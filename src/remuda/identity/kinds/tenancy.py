"""Organizations and projects as they are stored.

An organization owns everything in it. A project is kept by what refers to it: other services through references,
which are finalizers, and quota rows through the finalizer of its controller.

What an organization says about its domain is a wish. Who has the domain is told by the `Domain` object of that name, of
which there can be only one, whoever else wishes for it at the same moment.

That the first start has happened, so that it happens once in the life of a store.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.identity.kinds.common import OURS, SHARED, VERSION
from remuda.kernel.conditions import Condition
from remuda.kernel.ids import derived_id
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.store.kinds import Index, Kind, Reference, keyed
from remuda.store.objects import Resource, StoredStruct

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


_DOMAINS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c03"


def domain_id(domain: str) -> str:
    """Return the name of the object that stands for a domain."""
    return derived_id(_DOMAINS, folded(domain))


class DomainSpec(StoredStruct, frozen=True):
    """Which domain it is."""

    domain: str = ""


class Domain(Resource, frozen=True):
    """A domain that an organization has; a label says which. Whoever logs in from there logs in at its provider."""

    spec: DomainSpec = DomainSpec()


class ProjectSpec(StoredStruct, frozen=True):
    """What is wanted of a project: which groups have the rights in it that their roles give in projects."""

    group_ids: tuple[str, ...] = msgspec.field(default=(), name="groupIDs")
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class Project(Resource, frozen=True):
    """A part of an organization in which things are made."""

    spec: ProjectSpec = ProjectSpec()
    status: TenancyStatus = TenancyStatus()


def _wanted_domain(organization: Organization) -> Iterator[str]:
    if organization.spec.domain:
        yield folded(organization.spec.domain)


def _provider(organization: Organization) -> Iterator[str]:
    if organization.spec.provider_id:
        yield organization.spec.provider_id


ORGANIZATION = Kind(
    type=Organization,
    group=SHARED,
    version=VERSION,
    plural="organizations",
    references=(Reference(target=f"oauth2providers.{SHARED}", names=_provider),),
    indexes=(Index(name="domain", values=_wanted_domain),),
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Organizations, found by the domain that they wish for. The provider of a domain cannot go before the wish does."""

DOMAIN = Kind(type=Domain, group=OURS, version=VERSION, plural="domains", columns={"Domain": ".spec.domain"})
"""Domains, named by `domain_id` and owned by the organization that has them."""

PROJECT = Kind(
    type=Project,
    group=SHARED,
    version=VERSION,
    plural="projects",
    indexes=(Index(name="group", values=lambda project: project.spec.group_ids),),
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Projects, found by the groups that have rights in them."""


class BootstrapSpec(StoredStruct, frozen=True):
    """What is made at the first start, by id: whichever of it is there after a crash is not made again."""

    organization: str = ""
    project: str = ""
    administrators: str = ""
    users: str = ""
    service_account: str = ""


class BootstrapStatus(StoredStruct, frozen=True):
    """How far it has come."""

    finished: datetime | None = None
    """When everything was made and told. From then on nothing of it is ever made again, whoever removes it."""


class Bootstrap(Resource, frozen=True):
    """The first start of this store; there is one such object."""

    spec: BootstrapSpec = BootstrapSpec()
    status: BootstrapStatus = BootstrapStatus()


BOOTSTRAP = Kind(type=Bootstrap, group=OURS, version=VERSION, plural="bootstraps")
"""The record of the first start."""
