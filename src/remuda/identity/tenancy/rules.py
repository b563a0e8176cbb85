"""The rules of organizations and projects, as pure functions: what may be asked, what is stored of it, how it reads.

The rules of OAuth2 providers, as pure functions: what may be asked, what is stored of it, how it reads.
"""

import ipaddress
import re
from datetime import datetime

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import (
    IN_CARE,
    ORGANIZATION,
    GoogleOptions,
    Organization,
    OrganizationSpec,
    Project,
    ProjectSpec,
    ProviderOptions,
    TenancyStatus,
)
from remuda.identity.tenancy.schema import (
    OrganizationRead,
    OrganizationSpecWire,
    OrganizationWrite,
    ProjectRead,
    ProjectSpecWire,
    ProjectWrite,
    ProviderRead,
    ProviderSpecWire,
    ProviderWrite,
)
from remuda.kernel.conditions import Condition
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.resources import conventions as labels
from remuda.resources.crud import each_once
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    read_metadata,
    read_organization_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.tags import own_tags, replaced_tags

_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOSTNAME = re.compile(rf"({_LABEL}\.)+(?=[0-9-]*[a-z]){_LABEL}")
"""Of at least two parts, the last of which is no number: else it is an address."""


def check_organization(wanted: OrganizationSpecWire) -> None:
    """Refuse a domain without what it needs; whether its provider is there, and it is free, others have to look up."""
    if wanted.organization_type == "adhoc":
        return
    needed = {"domain": wanted.domain, "providerScope": wanted.provider_scope, "providerID": wanted.provider_id}
    for field, value in needed.items():
        if not value:
            raise Invalid(f"spec.{field}", "is missing", remedy="give it, or choose the organizationType adhoc")
    if not _HOSTNAME.fullmatch(folded(wanted.domain)):
        raise Invalid("spec.domain", "is not a host name", remedy="write it as example.com")


def new_organization(name: str, wanted: OrganizationWrite, by: Principal) -> Organization:
    """Return an organization as it is stored. It pays for itself, unless somebody else does."""
    payer = by if by.organization is not None else by.with_payer(name, None)
    metadata = new_metadata(name, wanted.metadata, payer, labels={}, finalizers=(IN_CARE,))
    tags = own_tags(stored_tags(wanted.metadata), by)
    return Organization(metadata=metadata, spec=_organization_spec(OrganizationSpec(), wanted.spec, tags))


def changed_organization(
    organization: Organization, wanted: OrganizationWrite, by: Principal, now: datetime
) -> Organization:
    """Return an organization with everything replaced that a client may change."""
    metadata = changed_metadata(organization.metadata, wanted.metadata, by.subject, now)
    tags = replaced_tags(organization.spec.tags, stored_tags(wanted.metadata), by)
    return replace(organization, metadata=metadata, spec=_organization_spec(organization.spec, wanted.spec, tags))


def _organization_spec(before: OrganizationSpec, spec: OrganizationSpecWire, tags: tuple[Tag, ...]) -> OrganizationSpec:
    """Return a spec as it is wished for; without a domain, nothing of what belongs to one is left."""
    if spec.organization_type == "adhoc":
        return OrganizationSpec(pause=before.pause, tags=tags)
    google = GoogleOptions(customer_id=spec.google_customer_id) if spec.google_customer_id else None
    return OrganizationSpec(
        domain=folded(spec.domain),
        provider_scope=spec.provider_scope or "",
        provider_id=spec.provider_id,
        provider_options=ProviderOptions(google=google) if google else None,
        pause=before.pause,
        tags=tags,
    )


def new_project(name: str, organization: Organization, wanted: ProjectWrite, by: Principal) -> Project:
    """Return a project as it is stored."""
    where = {labels.ORGANIZATION: organization.name}
    metadata = new_metadata(name, wanted.metadata, by, labels=where, finalizers=(IN_CARE,))
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    tags = own_tags(stored_tags(wanted.metadata), by)
    return Project(metadata=metadata, spec=ProjectSpec(group_ids=each_once(wanted.spec.group_ids), tags=tags))


def changed_project(project: Project, wanted: ProjectWrite, by: Principal, now: datetime) -> Project:
    """Return a project with everything replaced that a client may change."""
    metadata = changed_metadata(project.metadata, wanted.metadata, by.subject, now)
    tags = replaced_tags(project.spec.tags, stored_tags(wanted.metadata), by)
    spec = replace(project.spec, group_ids=each_once(wanted.spec.group_ids), tags=tags)
    return replace(project, metadata=metadata, spec=spec)


def read_organization(organization: Organization) -> OrganizationRead:
    """Return an organization as clients read it."""
    metadata = read_metadata(organization.metadata, organization.spec.tags, _as_said(organization.status))
    return OrganizationRead(metadata=metadata, spec=_organization_spec_wire(organization.spec))


def read_project(project: Project) -> ProjectRead:
    """Return a project as clients read it."""
    metadata = read_organization_metadata(project.metadata, project.spec.tags, _as_said(project.status))
    return ProjectRead(metadata=metadata, spec=ProjectSpecWire(group_ids=project.spec.group_ids))


def _as_said(status: TenancyStatus) -> tuple[Condition, ...]:
    """Return conditions that hold until others are told: nothing is made of a change, so nobody is to wait for it."""
    return tuple(replace(each, observed_generation=None) for each in status.conditions)


def writable_organization(organization: Organization) -> OrganizationWrite:
    """Return the part of an organization that a client may change."""
    metadata = writable_metadata(organization.metadata, organization.spec.tags)
    return OrganizationWrite(metadata=metadata, spec=_organization_spec_wire(organization.spec))


def writable_project(project: Project) -> ProjectWrite:
    """Return the part of a project that a client may change."""
    metadata = writable_metadata(project.metadata, project.spec.tags)
    return ProjectWrite(metadata=metadata, spec=ProjectSpecWire(group_ids=project.spec.group_ids))


def _organization_spec_wire(spec: OrganizationSpec) -> OrganizationSpecWire:
    if not spec.domain:
        return OrganizationSpecWire(organization_type="adhoc")
    google = spec.provider_options.google if spec.provider_options else None
    return OrganizationSpecWire(
        organization_type="domain",
        domain=spec.domain,
        provider_scope=spec.provider_scope or None,
        provider_id=spec.provider_id,
        google_customer_id=google.customer_id if google else "",
    )


ORGANIZATION_VIEW = etag_view(read_organization, writable_organization)
"""An organization as JSON, with its tag."""
PROJECT_VIEW = etag_view(read_project, writable_project)
"""A project as JSON, with its tag."""


_HOST = r"[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?|\[[0-9A-Fa-f:.]+\]"
_ISSUER = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST})(:[0-9]{{1,5}})?(/[!$-;=A-Z_a-z~]*)?")


def check_issuer(issuer: str, field: str = "spec.issuer") -> None:
    """Refuse what is no place to ask for tokens: what is not encrypted is read on the way, except on this machine."""
    found = _ISSUER.fullmatch(issuer)
    if found is None or not (found["scheme"] == "https" or _is_loopback(found["host"].strip("[]"))):
        raise Invalid(
            field,
            "is not a URL that can be trusted",
            remedy="write it as https://host/path, without user, query and fragment; http is for this machine alone",
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def new_provider(name: str, organization: Organization, wanted: ProviderWrite, by: Principal) -> OAuth2Provider:
    """Return a provider of an organization as it is stored."""
    metadata = new_metadata(name, wanted.metadata, by, labels={labels.ORGANIZATION: organization.name})
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    tags = own_tags(stored_tags(wanted.metadata), by)
    return OAuth2Provider(metadata=metadata, spec=_spec(OAuth2ProviderSpec(), wanted.spec, tags))


def changed_provider(provider: OAuth2Provider, wanted: ProviderWrite, by: Principal, now: datetime) -> OAuth2Provider:
    """Return a provider with everything replaced that a client may change."""
    metadata = changed_metadata(provider.metadata, wanted.metadata, by.subject, now)
    tags = replaced_tags(provider.spec.tags, stored_tags(wanted.metadata), by)
    return replace(provider, metadata=metadata, spec=_spec(provider.spec, wanted.spec, tags))


def _spec(before: OAuth2ProviderSpec, spec: ProviderSpecWire, tags: tuple[Tag, ...]) -> OAuth2ProviderSpec:
    return replace(
        before,
        issuer=spec.issuer,
        type=spec.type or "custom",
        client_id=spec.client_id,
        client_secret=_secret(before, spec),
        tags=tags,
    )


def _secret(before: OAuth2ProviderSpec, wanted: ProviderSpecWire) -> Secret | None:
    """Return the secret that is good from now on.

    What was left out stays, but goes to nobody else: whoever may change the issuer must not get the secret sent there.
    """
    given = wanted.client_secret
    if given is None:
        return before.client_secret if before.issuer == wanted.issuer else None
    return given if given.reveal() else None


def read_provider(provider: OAuth2Provider) -> ProviderRead:
    """Return a provider as clients read it, without its secret."""
    metadata = replace(provider.metadata, labels={labels.ORGANIZATION: "", **provider.metadata.labels})
    return ProviderRead(
        metadata=read_organization_metadata(metadata, provider.spec.tags), spec=_spec_wire(provider.spec)
    )


def writable_provider(provider: OAuth2Provider) -> ProviderWrite:
    """Return the part of a provider that a client may change and read."""
    return ProviderWrite(
        metadata=writable_metadata(provider.metadata, provider.spec.tags), spec=_spec_wire(provider.spec)
    )


def _spec_wire(spec: OAuth2ProviderSpec) -> ProviderSpecWire:
    known = None if spec.type == "custom" else spec.type
    return ProviderSpecWire(issuer=spec.issuer, client_id=spec.client_id, type=known)


PROVIDER_VIEW = etag_view(read_provider, writable_provider)
"""A provider as JSON, with its tag."""
