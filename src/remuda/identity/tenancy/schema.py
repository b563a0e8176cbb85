"""What clients send and read of organizations, projects and OAuth2 providers."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import ENCODED_TWICE, Id, ListQuery, Parameters, Wire
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataRead, MetadataWrite, OrganizationMetadataRead

OrganizationType = Literal["adhoc", "domain"]
"""Whether everybody with an address at a domain logs in at the organization's own provider, or people choose one."""
ProviderScope = Literal["global", "organization"]
"""Whose a provider is: the whole system's, or the organization's."""
ProviderTypeWire = Literal["google", "microsoft", "github"]
"""Whose way of doing things a provider follows; left out, it does as the standards say."""

_Text = Annotated[str, msgspec.Meta(max_length=253)]


class OrganizationSpecWire(Wire, frozen=True):
    """How the people of an organization log in."""

    organization_type: OrganizationType
    domain: Annotated[
        str,
        msgspec.Meta(
            max_length=253,
            description="Whoever has an address here logs in at the provider. Demanded of the type domain.",
            extra_json_schema={"format": "hostname"},
        ),
    ] = ""
    provider_scope: ProviderScope | None = None
    provider_id: Annotated[_Text, msgspec.Meta(description="The provider of the domain.")] = msgspec.field(
        default="", name="providerID"
    )
    google_customer_id: Annotated[_Text, msgspec.Meta(description="For a Google provider.")] = msgspec.field(
        default="", name="googleCustomerID"
    )


class OrganizationWrite(Wire, frozen=True):
    """What clients say of an organization."""

    metadata: MetadataWrite
    spec: OrganizationSpecWire


class OrganizationRead(Wire, frozen=True):
    """What clients read of an organization."""

    metadata: MetadataRead
    spec: OrganizationSpecWire


class ProjectSpecWire(Wire, frozen=True):
    """Who has rights in a project."""

    group_ids: Annotated[
        tuple[_Text, ...],
        msgspec.Meta(max_length=500, description="The groups whose roles hold in this project."),
    ] = msgspec.field(name="groupIDs")


class ProjectWrite(Wire, frozen=True):
    """What clients say of a project."""

    metadata: MetadataWrite
    spec: ProjectSpecWire


class ProjectRead(Wire, frozen=True):
    """What clients read of a project."""

    metadata: OrganizationMetadataRead
    spec: ProjectSpecWire


class ProviderSpecWire(Wire, frozen=True):
    """Where an external provider is, and who we are there."""

    issuer: Annotated[str, msgspec.Meta(min_length=1, max_length=1024, description="Its URL, with https.")]
    client_id: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)] = msgspec.field(name="clientID")
    type: ProviderTypeWire | None = None
    client_secret: Secret | None = None
    """Is sent and never read. Left out, the stored one stays while the issuer does; empty, it is forgotten."""


class ProviderWrite(Wire, frozen=True):
    """What clients say of a provider."""

    metadata: MetadataWrite
    spec: ProviderSpecWire


class ProviderRead(Wire, frozen=True):
    """What clients read of a provider: all but its secret. One of the whole system has an empty organization."""

    metadata: OrganizationMetadataRead
    spec: ProviderSpecWire


class ReferencePath(Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID"}):
    """Something of another service that needs a project."""

    organization: Id
    project: Id
    reference: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=317, description=f"What needs the project, as plural.group/id. {ENCODED_TWICE}"
        ),
    ]


class ProviderPath(Parameters, frozen=True, rename={"organization": "organizationID", "provider": "providerID"}):
    """A provider of an organization."""

    organization: Id
    provider: Id


class OrganizationQuery(ListQuery, frozen=True, rename={"continue_": "continue"}):
    """Which organizations to list."""

    email: (
        Annotated[str, msgspec.Meta(max_length=320, description="Only those that the user with this address is in.")]
        | None
    ) = None
