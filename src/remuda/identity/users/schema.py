"""Schemas of users, service accounts and groups."""

from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.schema import Id, Wire
from remuda.identity.kinds.common import UserState
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataWrite, OrganizationMetadataRead, OrganizationPath

_Text = Annotated[str, msgspec.Meta(max_length=253)]
_Groups = Annotated[tuple[_Text, ...], msgspec.Meta(max_length=500, description="All groups of the member.")]


class UserPath(OrganizationPath, frozen=True, rename={"user": "userID"}):
    """Path of a user of an organization."""

    user: Id


class AccountPath(OrganizationPath, frozen=True, rename={"account": "serviceAccountID"}):
    """Path of a service account."""

    account: Id


class GroupPath(OrganizationPath, frozen=True, rename={"group": "groupid"}):
    """Path of a group."""

    group: Id


class UserSpecWire(Wire, frozen=True):
    """Desired user of an organization."""

    subject: Annotated[str, msgspec.Meta(max_length=254, description="E-mail address. It cannot be changed.")]
    state: UserState
    group_ids: _Groups = msgspec.field(name="groupIDs")


class UserWrite(Wire, frozen=True):
    """Request for a user. Of the metadata only the tags are used, and only if the user is new to the system."""

    spec: UserSpecWire
    metadata: MetadataWrite | None = None


class UserStatus(Wire, frozen=True):
    """Observed state of a user."""

    last_active: Annotated[datetime, msgspec.Meta(description="Time of the last login.")] | None = None


class UserRead(Wire, frozen=True, omit_defaults=False):
    """User of an organization."""

    metadata: OrganizationMetadataRead
    spec: UserSpecWire
    status: UserStatus


class AccountSpecWire(Wire, frozen=True):
    """Desired service account."""

    group_ids: _Groups = msgspec.field(name="groupIDs")


class AccountWrite(Wire, frozen=True):
    """Request for a service account."""

    metadata: MetadataWrite
    spec: AccountSpecWire


class AccountStatus(Wire, frozen=True):
    """Expiry of the token of a service account."""

    expiry: datetime
    access_token: Annotated[Secret, msgspec.Meta(description="New token, shown only once.")] | None = None


class AccountRead(Wire, frozen=True):
    """Service account."""

    metadata: OrganizationMetadataRead
    spec: AccountSpecWire
    status: AccountStatus


class SubjectWire(Wire, frozen=True):
    """User of an issuer."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=254)]
    issuer: Annotated[
        str, msgspec.Meta(max_length=1024, description="Empty, or the URL of this service, for local users.")
    ]
    email: Annotated[str, msgspec.Meta(max_length=254)] = ""


class GroupSpecWire(Wire, frozen=True, omit_defaults=False):
    """Members and roles of a group. Name users by ids or by subjects; if by both, they must be the same."""

    role_ids: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=100)] = msgspec.field(name="roleIDs")
    service_account_ids: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=5_000)] = msgspec.field(
        name="serviceAccountIDs"
    )
    user_ids: Annotated[
        tuple[_Text, ...], msgspec.Meta(max_length=5_000, description="Users of the organization, by id.")
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
