"""Pure functions of organizations, projects and OAuth2 providers: validation, new and updated objects, responses."""

import ipaddress
import re
from datetime import datetime

from msgspec.structs import asdict, replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import (
    CONTROLLER_FINALIZER,
    ORGANIZATION,
    GoogleOptions,
    Organization,
    OrganizationSpec,
    Project,
    ProjectSpec,
    ProviderOptions,
    TenancyStatus,
)
from remuda.identity.tenancy import schema
from remuda.kernel.conditions import Condition
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.crud import each_once
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_metadata,
    read_organization_metadata,
    updated_tags,
    writable_metadata,
)

_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_LONGEST_DOMAIN = 253
_HOSTNAME = re.compile(rf"({_LABEL}\.)+(?=[0-9-]*[a-z]){_LABEL}")
"""At least two labels, of which the last is not a number: otherwise it is an IP address."""


def check_organization(requested: schema.OrganizationSpecWire) -> None:
    """Raise Invalid for an incomplete domain. Callers check that its provider exists and that it is free."""
    if requested.organization_type == "adhoc":
        return
    needed = {
        "domain": requested.domain,
        "providerScope": requested.provider_scope,
        "providerID": requested.provider_id,
    }
    for field, value in needed.items():
        if not value:
            raise Invalid(f"spec.{field}", "is missing", remedy="give it, or choose the organizationType adhoc")
    if len(requested.domain) > _LONGEST_DOMAIN or not _HOSTNAME.fullmatch(folded(requested.domain)):
        raise Invalid("spec.domain", "is not a host name", remedy="write it as example.com")


def new_organization(name: str, requested: schema.OrganizationWrite, principal: Principal) -> Organization:
    """Return a new organization. It is its own payer, unless the caller names one."""
    payer = principal if principal.organization is not None else principal.with_payer(name, None)
    metadata = new_metadata(name, requested.metadata, payer, labels={}, finalizers=(CONTROLLER_FINALIZER,))
    tags = new_tags(requested.metadata, principal)
    return Organization(metadata=metadata, spec=_organization_spec(OrganizationSpec(), requested.spec, tags))


def updated_organization(
    organization: Organization, requested: schema.OrganizationWrite, principal: Principal, now: datetime
) -> Organization:
    metadata = changed_metadata(organization.metadata, requested.metadata, principal, now)
    tags = updated_tags(organization.spec.tags, requested.metadata, principal)
    return replace(organization, metadata=metadata, spec=_organization_spec(organization.spec, requested.spec, tags))


def _organization_spec(
    stored: OrganizationSpec, spec: schema.OrganizationSpecWire, tags: tuple[Tag, ...]
) -> OrganizationSpec:
    """Return the stored spec. Without a domain, nothing that belongs to one is kept."""
    kept = OrganizationSpec(pause=stored.pause, tags=tags, second_factor=spec.second_factor or stored.second_factor)
    if spec.organization_type == "adhoc":
        return kept
    google = GoogleOptions(customer_id=spec.google_customer_id) if spec.google_customer_id else None
    return replace(
        kept,
        domain=folded(spec.domain),
        provider_scope=spec.provider_scope or "",
        provider_id=spec.provider_id,
        provider_options=ProviderOptions(google=google) if google else None,
    )


def new_project(name: str, organization: Organization, requested: schema.ProjectWrite, principal: Principal) -> Project:
    where = {ORGANIZATION_LABEL: organization.name}
    metadata = new_metadata(name, requested.metadata, principal, labels=where, finalizers=(CONTROLLER_FINALIZER,))
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    tags = new_tags(requested.metadata, principal)
    return Project(metadata=metadata, spec=ProjectSpec(group_ids=each_once(requested.spec.group_ids), tags=tags))


def updated_project(project: Project, requested: schema.ProjectWrite, principal: Principal, now: datetime) -> Project:
    metadata = changed_metadata(project.metadata, requested.metadata, principal, now)
    tags = updated_tags(project.spec.tags, requested.metadata, principal)
    spec = replace(project.spec, group_ids=each_once(requested.spec.group_ids), tags=tags)
    return replace(project, metadata=metadata, spec=spec)


def read_organization(organization: Organization) -> schema.OrganizationRead:
    metadata = read_metadata(organization.metadata, organization.spec.tags, _current_conditions(organization.status))
    return schema.OrganizationRead(metadata=metadata, spec=_organization_spec_wire(organization.spec))


def read_project(project: Project) -> schema.ProjectRead:
    metadata = read_organization_metadata(project.metadata, project.spec.tags, _current_conditions(project.status))
    return schema.ProjectRead(metadata=metadata, spec=schema.ProjectSpecWire(group_ids=project.spec.group_ids))


def _current_conditions(status: TenancyStatus) -> tuple[Condition, ...]:
    """Return conditions without a generation: a change of the spec needs no provisioning, so clients need not wait."""
    return tuple(replace(each, observed_generation=None) for each in status.conditions)


def writable_organization(organization: Organization) -> schema.OrganizationWrite:
    metadata = writable_metadata(organization.metadata, organization.spec.tags)
    return schema.OrganizationWrite(metadata=metadata, spec=_organization_spec_wire(organization.spec))


def writable_project(project: Project) -> schema.ProjectWrite:
    metadata = writable_metadata(project.metadata, project.spec.tags)
    return schema.ProjectWrite(metadata=metadata, spec=schema.ProjectSpecWire(group_ids=project.spec.group_ids))


def _organization_spec_wire(spec: OrganizationSpec) -> schema.OrganizationSpecWire:
    # Clients that do not know the setting read nothing new of an organization without it.
    second_factor = None if spec.second_factor == "optional" else spec.second_factor
    if not spec.domain:
        return schema.OrganizationSpecWire(organization_type="adhoc", second_factor=second_factor)
    google = spec.provider_options.google if spec.provider_options else None
    return schema.OrganizationSpecWire(
        organization_type="domain",
        domain=spec.domain,
        provider_scope=spec.provider_scope or None,
        provider_id=spec.provider_id,
        google_customer_id=google.customer_id if google else "",
        second_factor=second_factor,
    )


ORGANIZATION_VIEW = etag_view(read_organization, writable_organization)
PROJECT_VIEW = etag_view(read_project, writable_project)


_HOST = r"[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?|\[[0-9A-Fa-f:.]+\]"
_MAX_ISSUER = 2048
_ISSUER = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST})(:[0-9]{{1,5}})?(/[!$-;=A-Z_a-z~]*)?")


def check_issuer(issuer: str, field: str = "spec.issuer") -> None:
    """Raise Invalid for a URL that cannot be trusted: without TLS, only on this machine."""
    found = _ISSUER.fullmatch(issuer) if len(issuer) <= _MAX_ISSUER else None
    if found is None or not (found["scheme"] == "https" or _is_loopback(found["host"].strip("[]"))):
        raise Invalid(
            field,
            "is not a URL that can be trusted",
            remedy="write it as https://host/path, without user, query and fragment; http only on this machine; "
            f"at most {_MAX_ISSUER} characters",
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def new_provider(
    name: str, organization: Organization, requested: schema.ProviderWrite, principal: Principal
) -> OAuth2Provider:
    metadata = new_metadata(name, requested.metadata, principal, labels={ORGANIZATION_LABEL: organization.name})
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    tags = new_tags(requested.metadata, principal)
    return OAuth2Provider(metadata=metadata, spec=_spec(OAuth2ProviderSpec(), requested.spec, tags))


def updated_provider(
    provider: OAuth2Provider, requested: schema.ProviderWrite, principal: Principal, now: datetime
) -> OAuth2Provider:
    metadata = changed_metadata(provider.metadata, requested.metadata, principal, now)
    tags = updated_tags(provider.spec.tags, requested.metadata, principal)
    return replace(provider, metadata=metadata, spec=_spec(provider.spec, requested.spec, tags))


def _spec(stored: OAuth2ProviderSpec, spec: schema.ProviderSpecWire, tags: tuple[Tag, ...]) -> OAuth2ProviderSpec:
    return replace(
        stored,
        issuer=spec.issuer,
        type=spec.type or "custom",
        client_id=spec.client_id,
        client_secret=_secret(stored, spec),
        tags=tags,
    )


def _secret(stored: OAuth2ProviderSpec, requested: schema.ProviderSpecWire) -> Secret | None:
    """Return the new secret. One that was left out stays, but is not sent to another issuer."""
    given = requested.client_secret
    if given is None:
        return stored.client_secret if stored.issuer == requested.issuer else None
    return given if given.reveal() else None


def read_provider(provider: OAuth2Provider) -> schema.ProviderRead:
    metadata = replace(provider.metadata, labels={ORGANIZATION_LABEL: "", **provider.metadata.labels})
    read = read_organization_metadata(metadata, provider.spec.tags)
    return schema.ProviderRead(metadata=schema.ProviderMetadataRead(**asdict(read)), spec=_spec_wire(provider.spec))


def writable_provider(provider: OAuth2Provider) -> schema.ProviderWrite:
    return schema.ProviderWrite(
        metadata=writable_metadata(provider.metadata, provider.spec.tags), spec=_spec_wire(provider.spec)
    )


def _spec_wire(spec: OAuth2ProviderSpec) -> schema.ProviderSpecWire:
    known = None if spec.type == "custom" else spec.type
    return schema.ProviderSpecWire(issuer=spec.issuer, client_id=spec.client_id, type=known)


PROVIDER_VIEW = etag_view(read_provider, writable_provider)
