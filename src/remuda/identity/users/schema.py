"""What clients send and read of users, service accounts and groups."""

from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.identity.kinds.common import UserState
from remuda.kernel.secrets import Secret
from remuda.resources.schema import MetadataWrite, OrganizationMetadataRead

_Text = Annotated[str, msgspec.Meta(max_length=253)]
_Groups = Annotated[tuple[_Text, ...], msgspec.Meta(max_length=500, description="The groups it is in, and no others.")]


class UserPath(Parameters, frozen=True, rename={"organization": "organizationID", "user": "userID"}):
    """A user in an organization."""

    organization: Id
    user: Id


class AccountPath(Parameters, frozen=True, rename={"organization": "organizationID", "account": "serviceAccountID"}):
    """A service account of an organization."""

    organization: Id
    account: Id


class GroupPath(Parameters, frozen=True, rename={"organization": "organizationID", "group": "groupid"}):
    """A group of an organization."""

    organization: Id
    group: Id


class UserSpecWire(Wire, frozen=True):
    """A user as the organization wants it."""

    subject: Annotated[str, msgspec.Meta(max_length=254, description="An e-mail address. It cannot change.")]
    state: UserState
    group_ids: _Groups = msgspec.field(name="groupIDs")


class UserWrite(Wire, frozen=True):
    """What clients say of a user. Of the metadata only the tags count, and only when the user is new to the system."""

    spec: UserSpecWire
    metadata: MetadataWrite | None = None


class UserStatus(Wire, frozen=True):
    """What was seen of a user."""

    last_active: Annotated[datetime, msgspec.Meta(description="When it last logged in.")] | None = None


class UserRead(Wire, frozen=True, omit_defaults=False):
    """What clients read of a user."""

    metadata: OrganizationMetadataRead
    spec: UserSpecWire
    status: UserStatus


class AccountSpecWire(Wire, frozen=True):
    """A service account as the organization wants it."""

    group_ids: _Groups = msgspec.field(name="groupIDs")


class AccountWrite(Wire, frozen=True):
    """What clients say of a service account."""

    metadata: MetadataWrite
    spec: AccountSpecWire


class AccountStatus(Wire, frozen=True):
    """How long the token of a service account is good."""

    expiry: datetime
    access_token: Annotated[Secret, msgspec.Meta(description="A new token: it is shown this once.")] | None = None


class AccountRead(Wire, frozen=True):
    """What clients read of a service account."""

    metadata: OrganizationMetadataRead
    spec: AccountSpecWire
    status: AccountStatus


class SubjectWire(Wire, frozen=True):
    """A user of some issuer."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=254)]
    issuer: Annotated[str, msgspec.Meta(max_length=1024, description="Empty, or this service's own URL, for our own.")]
    email: Annotated[str, msgspec.Meta(max_length=254)] = ""


class GroupSpecWire(Wire, frozen=True, omit_defaults=False):
    """Who is in a group, and what they may do. Say who the users are in one way; in both, if they are the same."""

    role_ids: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=100)] = msgspec.field(name="roleIDs")
    service_account_ids: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=5_000)] = msgspec.field(
        name="serviceAccountIDs"
    )
    user_ids: Annotated[
        tuple[_Text, ...], msgspec.Meta(max_length=5_000, description="Users of the organization, by their ids there.")
    ] = msgspec.field(default=(), name="userIDs")
    subjects: Annotated[
        tuple[SubjectWire, ...], msgspec.Meta(max_length=1_000, description="Users, by what they log in as.")
    ] = ()


class GroupWrite(Wire, frozen=True):
    """What clients say of a group."""

    metadata: MetadataWrite
    spec: GroupSpecWire


class GroupRead(Wire, frozen=True):
    """What clients read of a group."""

    metadata: OrganizationMetadataRead
    spec: GroupSpecWire
