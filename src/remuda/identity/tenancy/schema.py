"""Schemas of organizations, projects and OAuth2 providers."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import ENCODED_TWICE, Id, Moment, NamedListQuery, Wire
from remuda.identity.kinds.factors import SecondFactorPolicy
from remuda.identity.names import ProjectPath
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataRead, MetadataWrite, OrganizationMetadataRead, OrganizationPath

OrganizationType = Literal["adhoc", "domain"]
"""Whether users with an address in a domain log in at the organization's provider, or users choose a provider."""
ProviderScope = Literal["global", "organization"]
"""Owner of a provider: the system, or the organization."""
ProviderTypeWire = Literal["google", "microsoft", "github"]
"""Dialect of a provider; without it, the standards apply."""

_Text = Annotated[str, msgspec.Meta(max_length=253)]


class OrganizationSpecWire(Wire, frozen=True):
    """Login of the users of an organization."""

    organization_type: Annotated[
        OrganizationType,
        msgspec.Meta(
            description="Whether users with an address in a domain log in at the organization's provider (domain), "
            "or users choose a provider (adhoc).",
            examples=["adhoc"],
        ),
    ]
    domain: Annotated[
        str,
        msgspec.Meta(
            max_length=253,
            description="Users with an address here log in at the provider, once the domain is proven. Required for "
            "the type domain.",
            extra_json_schema={"format": "hostname"},
        ),
    ] = ""
    provider_scope: Annotated[
        ProviderScope | None,
        msgspec.Meta(description="Owner of the provider of the domain: the system (global), or the organization."),
    ] = None
    provider_id: Annotated[_Text, msgspec.Meta(description="Provider of the domain.")] = msgspec.field(
        default="", name="providerID"
    )
    google_customer_id: Annotated[_Text, msgspec.Meta(description="For a Google provider.")] = msgspec.field(
        default="", name="googleCustomerID"
    )
    second_factor: (
        Annotated[
            SecondFactorPolicy,
            msgspec.Meta(
                description="Logins of members that give permissions here only with a second factor: none, those with "
                "a password, or all, also those at external providers. Without it, what is stored stays; what is not "
                "optional is returned."
            ),
        ]
        | None
    ) = None


class OrganizationWrite(Wire, frozen=True):
    """Request for an organization."""

    metadata: MetadataWrite
    spec: OrganizationSpecWire


class OrganizationRead(Wire, frozen=True):
    """Organization."""

    metadata: MetadataRead
    spec: OrganizationSpecWire


class TxtRecord(Wire, frozen=True):
    """DNS record that proves the claim of a domain."""

    name: Annotated[str, msgspec.Meta(description="Name of the record.")]
    type: Annotated[Literal["TXT"], msgspec.Meta(description="Type of the record.")]
    value: Annotated[str, msgspec.Meta(description="Value of the record.")]


class DomainRead(Wire, frozen=True, omit_defaults=False):
    """Domain that an organization claims. It has no effect until it is proven."""

    domain: Annotated[str, msgspec.Meta(description="Domain that the organization claims.")]
    is_proven: Annotated[bool, msgspec.Meta(description="The claim has been proven, and has effect.")]
    proof: Annotated[
        Literal["dns", "administrator"] | None,
        msgspec.Meta(description="How it was proven: by the record, or by a platform administrator."),
    ]
    proven_time: Annotated[Moment | None, msgspec.Meta(description="Time of the proof; null before it.")]
    record: Annotated[TxtRecord, msgspec.Meta(description="Record to publish.")]
    message: Annotated[str, msgspec.Meta(description="Result of the last lookup of the record.")]


class DomainApproval(Wire, frozen=True):
    """Word of a platform administrator that an organization owns the domain that it claims."""

    domain: Annotated[
        str, msgspec.Meta(min_length=1, max_length=253, description="Domain that it claims.", examples=["example.com"])
    ]


class ProjectSpecWire(Wire, frozen=True):
    """Groups with permissions in a project."""

    group_ids: Annotated[
        tuple[_Text, ...],
        msgspec.Meta(
            max_length=500,
            description="Groups whose roles apply in this project.",
            examples=[["d8f3a1c0-7b0e-4c8e-9a63-2f6f0e1b5a01"]],
        ),
    ] = msgspec.field(name="groupIDs")


class ProjectWrite(Wire, frozen=True):
    """Request for a project."""

    metadata: MetadataWrite
    spec: ProjectSpecWire


class ProjectRead(Wire, frozen=True):
    """Project."""

    metadata: OrganizationMetadataRead
    spec: ProjectSpecWire


class ProviderSpecWire(Wire, frozen=True):
    """External provider, and our client there."""

    issuer: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=1024, description="URL, with https.", examples=["https://login.example.com"]
        ),
    ]
    client_id: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=1024, description="Id of our client at the provider.", examples=["remuda"]
        ),
    ] = msgspec.field(name="clientID")
    type: Annotated[
        ProviderTypeWire | None, msgspec.Meta(description="Dialect of the provider; without it, the standards apply.")
    ] = None
    client_secret: Annotated[
        Secret | None,
        msgspec.Meta(
            description="Secret of our client at the provider, which is never returned. Without it, the stored one "
            "stays while the issuer does not change; empty, it is removed.",
            examples=["a-secret-of-the-provider"],
        ),
    ] = None


class ProviderWrite(Wire, frozen=True):
    """Request for a provider."""

    metadata: MetadataWrite
    spec: ProviderSpecWire


class ProviderMetadataRead(OrganizationMetadataRead, frozen=True, kw_only=True):
    """Metadata of a provider."""

    organization_id: Annotated[
        str, msgspec.Meta(description="Organization of the provider; empty for a provider of the system.")
    ]


class ProviderRead(Wire, frozen=True):
    """Provider without its secret. A global one has an empty organization."""

    metadata: ProviderMetadataRead
    spec: ProviderSpecWire


class ReferencePath(ProjectPath, frozen=True):
    """Path of a reference of another service to a project."""

    reference: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=317,
            description=f"Resource that needs the project, as plural.group/id. {ENCODED_TWICE}",
        ),
    ]


class ProviderPath(OrganizationPath, frozen=True, rename={"provider": "providerID"}):
    """Path of a provider of an organization."""

    provider: Annotated[Id, msgspec.Meta(description="Id of the provider.")]


class OrganizationQuery(NamedListQuery, frozen=True, rename={"continue_": "continue"}):
    """Filter of organizations."""

    email: (
        Annotated[str, msgspec.Meta(max_length=320, description="Only organizations of the user with this address.")]
        | None
    ) = None
