"""Stored organizations, projects and domains, and the bootstrap record.

An organization owns everything in it. A project is protected by references of other services, which are finalizers, and
by allocations, through the finalizer of its controller.

The domain in an organization's spec is a claim. The owner of a domain is the organization of the `Domain` object of
that name, of which there can be only one, and which is created when the organization has proven that it owns it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.identity.kinds.common import DISPLAY_NAME, SHARED, remuda_kind, shared_kind
from remuda.identity.kinds.factors import SecondFactorPolicy
from remuda.kernel.conditions import Condition
from remuda.kernel.ids import derived_id
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.store.kinds import Index, Reference, keyed
from remuda.store.objects import Resource, StoredStruct

CONTROLLER_FINALIZER = f"{SHARED}/controller"
"""Finalizer of an organization or a project until its controller has seen that nothing uses it."""


class GoogleOptions(StoredStruct, frozen=True):
    """Options of a Google provider."""

    customer_id: str = ""


class ProviderOptions(StoredStruct, frozen=True):
    """Options of some providers."""

    google: GoogleOptions | None = None


class OrganizationSpec(StoredStruct, frozen=True):
    """Desired organization. Users with an address in its domain log in at its provider."""

    domain: str = ""
    provider_scope: Literal["", "global", "organization"] = ""
    provider_id: str = ""
    provider_options: ProviderOptions | None = None
    pause: bool = False
    tags: tuple[Tag, ...] = ()
    second_factor: SecondFactorPolicy = "optional"
    """Logins of members that need a second factor to have permissions here."""


class TenancyStatus(StoredStruct, frozen=True):
    """Status of an organization or a project."""

    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    observed_generation: int = 0
    namespace: str = ""
    """Namespace in existing clusters; always empty here."""


class Organization(Resource, frozen=True):
    """Tenant."""

    spec: OrganizationSpec = OrganizationSpec()
    status: TenancyStatus = TenancyStatus()


_DOMAINS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c03"


def domain_id(domain: str) -> str:
    return derived_id(_DOMAINS, folded(domain))


class DomainSpec(StoredStruct, frozen=True):
    """Spec of a domain."""

    domain: str = ""
    proof: Literal["", "dns", "administrator"] = ""
    """Proof that the organization owns the domain: a DNS record, or a platform administrator's word."""
    proven: datetime | None = None
    missing_since: datetime | None = None
    """Time since which the DNS record is missing."""


class Domain(Resource, frozen=True):
    """Domain of an organization, named by a label. Users with an address there log in at its provider."""

    spec: DomainSpec = DomainSpec()

    @property
    def is_proven(self) -> bool:
        """Whether the organization owns it."""
        return bool(self.spec.proof)


class ProjectSpec(StoredStruct, frozen=True):
    """Desired project, with the groups whose roles apply in it."""

    group_ids: tuple[str, ...] = msgspec.field(default=(), name="groupIDs")
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class Project(Resource, frozen=True):
    """Part of an organization in which resources are created."""

    spec: ProjectSpec = ProjectSpec()
    status: TenancyStatus = TenancyStatus()


def _desired_domain(organization: Organization) -> Iterator[str]:
    if organization.spec.domain:
        yield folded(organization.spec.domain)


def _provider(organization: Organization) -> Iterator[str]:
    if organization.spec.provider_id:
        yield organization.spec.provider_id


ORGANIZATION = shared_kind(
    Organization,
    "organizations",
    uncounted="created by platform administrators",
    references=(Reference(target=f"oauth2providers.{SHARED}", names=_provider),),
    indexes=(Index(name="domain", values=_desired_domain),),
    columns=DISPLAY_NAME,
)
"""Organizations, found by the domain that they request. A reference protects the provider of the domain."""

DOMAIN = remuda_kind(Domain, "domains", uncounted="one for each organization", columns={"Domain": ".spec.domain"})
"""Domains, named by `domain_id` and owned by their organization."""

PROJECT = shared_kind(
    Project,
    "projects",
    counted_in=ORGANIZATION_LABEL,
    indexes=(Index(name="group", values=lambda project: project.spec.group_ids),),
    columns=DISPLAY_NAME,
)
"""Projects, found by the groups that have permissions in them."""


class BootstrapSpec(StoredStruct, frozen=True):
    """Ids of the objects that the first start creates, so that a repeated start finds them."""

    organization: str = ""
    project: str = ""
    administrators: str = ""
    users: str = ""
    service_account: str = ""


class BootstrapStatus(StoredStruct, frozen=True):
    """Progress of the bootstrap."""

    finished: datetime | None = None
    """Time at which everything was created and reported. Afterwards nothing of it is created again."""


class Bootstrap(Resource, frozen=True):
    """Record of the first start; a store has one."""

    spec: BootstrapSpec = BootstrapSpec()
    status: BootstrapStatus = BootstrapStatus()


BOOTSTRAP = remuda_kind(Bootstrap, "bootstraps", uncounted="one in the whole system")
