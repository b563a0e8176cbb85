"""Schemas of users, service accounts and groups."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Moment, Wire
from remuda.identity.kinds.common import UserState
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataWrite, OrganizationMetadataRead, OrganizationPath

_Text = Annotated[str, msgspec.Meta(max_length=253)]
_Groups = Annotated[tuple[_Text, ...], msgspec.Meta(max_length=500, description="All groups of the member.")]


class UserPath(OrganizationPath, frozen=True, rename={"user": "userID"}):
    """Path of a user of an organization."""

    user: Annotated[Id, msgspec.Meta(description="Id of the user in the organization.")]


class AccountPath(OrganizationPath, frozen=True, rename={"account": "serviceAccountID"}):
    """Path of a service account."""

    account: Annotated[Id, msgspec.Meta(description="Id of the service account.")]


class GroupPath(OrganizationPath, frozen=True, rename={"group": "groupid"}):
    """Path of a group."""

    group: Annotated[Id, msgspec.Meta(description="Id of the group.")]


class UserSpecWire(Wire, frozen=True):
    """Desired user of an organization."""

    subject: Annotated[
        str,
        msgspec.Meta(max_length=254, description="E-mail address. It cannot be changed.", examples=["ada@example.com"]),
    ]
    state: Annotated[
        UserState,
        msgspec.Meta(
            description="Whether the user may act in the organization (active), has not accepted the invitation yet "
            "(pending), or may not act (suspended).",
            examples=["active"],
        ),
    ]
    group_ids: Annotated[_Groups, msgspec.Meta(examples=[["d8f3a1c0-7b0e-4c8e-9a63-2f6f0e1b5a01"]])] = msgspec.field(
        name="groupIDs"
    )


class UserWrite(Wire, frozen=True):
    """Request for a user. Of the metadata only the tags are used, and only if the user is new to the system."""

    spec: UserSpecWire
    metadata: MetadataWrite | None = None


class UserStatus(Wire, frozen=True):
    """Observed state of a user."""

    last_active: Annotated[Moment, msgspec.Meta(description="Time of the last login.")] | None = None


class UserRead(Wire, frozen=True, omit_defaults=False):
    """User of an organization."""

    metadata: OrganizationMetadataRead
    spec: UserSpecWire
    status: UserStatus


class AccountSpecWire(Wire, frozen=True):
    """Desired service account."""

    group_ids: Annotated[_Groups, msgspec.Meta(examples=[["d8f3a1c0-7b0e-4c8e-9a63-2f6f0e1b5a01"]])] = msgspec.field(
        name="groupIDs"
    )


class AccountWrite(Wire, frozen=True):
    """Request for a service account."""

    metadata: MetadataWrite
    spec: AccountSpecWire


class AccountStatus(Wire, frozen=True):
    """Expiry of the token of a service account."""

    expiry: Annotated[Moment, msgspec.Meta(description="Time at which the token expires.")]
    access_token: Annotated[Secret, msgspec.Meta(description="New token, shown only once.")] | None = None


class AccountRead(Wire, frozen=True):
    """Service account."""

    metadata: OrganizationMetadataRead
    spec: AccountSpecWire
    status: AccountStatus


class SubjectWire(Wire, frozen=True):
    """User of an issuer."""

    id: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=254,
            description="Name of the user at the issuer: for a local user the e-mail address.",
            examples=["ada@example.com"],
        ),
    ]
    issuer: Annotated[
        str,
        msgspec.Meta(
            max_length=1024,
            description="The URL of this service for local users; any other text names a user of another issuer.",
            examples=["https://login.example.com"],
        ),
    ]
    email: Annotated[
        str, msgspec.Meta(max_length=254, description="E-mail address of the user.", examples=["ada@example.com"])
    ] = ""


class GroupSpecWire(Wire, frozen=True, omit_defaults=False):
    """Members and roles of a group. Name users by ids or by subjects; if by both, they must be the same."""

    role_ids: Annotated[
        tuple[_Text, ...],
        msgspec.Meta(
            max_length=100,
            description="Roles of the members, by id.",
            examples=[["c5a1e0b2-3f4d-4a6b-8c7d-9e0f1a2b3c01"]],
        ),
    ] = msgspec.field(name="roleIDs")
    service_account_ids: Annotated[
        tuple[_Text, ...],
        msgspec.Meta(
            max_length=5_000, description="Service accounts of the organization that are members, by id.", examples=[[]]
        ),
    ] = msgspec.field(name="serviceAccountIDs")
    user_ids: Annotated[
        tuple[_Text, ...],
        msgspec.Meta(
            max_length=5_000,
            description="Users of the organization, by id.",
            examples=[["e2b7c9d4-1a2b-4c3d-8e4f-5a6b7c8d9e01"]],
        ),
    ] = msgspec.field(default=(), name="userIDs")
    subjects: Annotated[tuple[SubjectWire, ...], msgspec.Meta(max_length=1_000, description="Users, by login.")] = ()


class GroupWrite(Wire, frozen=True):
    """Request for a group."""

    metadata: MetadataWrite
    spec: GroupSpecWire


class GroupRead(Wire, frozen=True):
    """Group."""

    metadata: OrganizationMetadataRead
    spec: GroupSpecWire
