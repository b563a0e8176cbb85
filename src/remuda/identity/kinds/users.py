"""Stored users, memberships, service accounts, groups and roles.

A user is global and identified by its subject, an e-mail address, from which its id is derived. A membership is a user
in one organization. Group members are stored in the group only.

An operation that changes a user or a service account together with its groups needs several writes. An `OperationLock`
on the object names the operation that has locked it, with the state to restore; a `MemberChange` in a group does so for
one member.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.access.principal import Verb
from remuda.identity.kinds.common import DISPLAY_NAME, LOCAL_ISSUER, SHARED, UserState, shared_kind
from remuda.kernel.ids import derived_id
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.conventions import PAYING_ORGANIZATION
from remuda.resources.conventions import USER as USER_LABEL
from remuda.store.kinds import Index, Reference, keyed
from remuda.store.objects import Resource, StoredStruct


class PreviousMembership(StoredStruct, frozen=True):
    """State that a rollback restores."""

    name: str = ""
    annotations: Mapping[str, str] = {}
    tags: tuple[Tag, ...] = ()
    state: UserState = "active"
    invited: bool = False


class OperationLock(StoredStruct, frozen=True):
    """Operation that last locked an object; it is locked while the operation is open."""

    operation: str
    previous: PreviousMembership | None = None
    """None if the operation created the object."""


class MemberChange(StoredStruct, frozen=True):
    """Change of an operation to one member of a group, until another request decides about the members."""

    member: str
    """Value of the index `member`."""
    operation: str
    was_member: bool = False


TOKENS_FINALIZER = f"{SHARED}/tokens"
"""Finalizer of a service account until its tokens are revoked."""

_USERS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c01"
_MEMBERSHIPS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c02"


def user_id(subject: str) -> str:
    return derived_id(_USERS, folded(subject.strip()))


def membership_id(organization: str, user: str) -> str:
    return derived_id(_MEMBERSHIPS, f"{organization}/{user}")


class LastLogin(StoredStruct, frozen=True):
    """Last login of a user through a client. The tokens are in the session of that name, as hashes."""

    client_id: str = msgspec.field(name="clientID")
    authorization_code_id: str = msgspec.field(name="authorizationCodeID")
    access_token: str = ""
    refresh_token: str = ""
    last_authentication: datetime | None = None


class Suspension(StoredStruct, frozen=True):
    """Suspension of a person everywhere, by a platform administrator."""

    since: datetime
    by: str = ""
    """Actor who suspended the person."""
    reason: str = ""


class UserSpec(StoredStruct, frozen=True, omit_defaults=False):
    """Spec of a user."""

    subject: str = ""
    state: UserState = "active"
    tags: tuple[Tag, ...] = ()
    creators: tuple[str, ...] = ()
    """Operations that needed the user before one of them was done: the last to be rolled back removes it."""
    sessions: Annotated[tuple[LastLogin, ...], keyed("clientID")] = ()
    suspension: Suspension | None = None
    """While it is set, no credentials of this user are accepted, in any organization. Memberships keep their states."""
    resumed: datetime | None = None
    """End of the last suspension. Logins that began before it are not completed."""


class User(Resource, frozen=True):
    """Global user."""

    spec: UserSpec = UserSpec()

    @property
    def is_active(self) -> bool:
        """Whether the user may log in and its sessions are valid."""
        return self.effective_state == "active" and not self.is_deleting

    def was_suspended_since(self, time: datetime) -> bool:
        """Return whether the user is suspended, or was at some time after this one."""
        spec = self.spec
        return spec.suspension is not None or (spec.resumed is not None and time < spec.resumed)

    @property
    def effective_state(self) -> UserState:
        """The state with regard to a suspension."""
        return self.spec.state if self.spec.suspension is None else "suspended"


class OrganizationUserSpec(StoredStruct, frozen=True, omit_defaults=False):
    """State of a user in an organization."""

    state: UserState = "active"
    invited: bool = False
    """The person has not agreed: outside a proven domain of the organization the membership counts for nothing."""
    tags: tuple[Tag, ...] = ()
    lock: OperationLock | None = None


class OrganizationUser(Resource, frozen=True):
    """Membership. Labels name the user and the organization."""

    spec: OrganizationUserSpec = OrganizationUserSpec()


class ReplacedToken(StoredStruct, frozen=True):
    """Token that was replaced by another."""

    id: str
    expires: datetime


class ServiceAccountSpec(StoredStruct, frozen=True, omit_defaults=False):
    """Account for automation with one valid token."""

    access_token: str = ""
    """SHA-256 of the token, in hex. The token itself is shown once and not stored."""
    token_id: str = ""
    """The `jti` of the token, by which it is revoked."""
    expiry: datetime | None = None
    replaced: tuple[ReplacedToken, ...] = ()
    """Former tokens that have yet to be revoked for processes that do not read this object."""
    tags: tuple[Tag, ...] = ()
    lock: OperationLock | None = None


class ServiceAccount(Resource, frozen=True):
    """Account for automation."""

    spec: ServiceAccountSpec = ServiceAccountSpec()


class Subject(StoredStruct, frozen=True, omit_defaults=False):
    """User of an issuer, whose name is written as the client gave it; our own is `LOCAL_ISSUER`."""

    id: str = msgspec.field(name="ID")
    issuer: str = ""
    email: str = ""

    @property
    def is_local(self) -> bool:
        """Whether this is a user of our own, who is a member by its membership."""
        return self.issuer == LOCAL_ISSUER


class GroupSpec(StoredStruct, frozen=True):
    """Roles and members. `user_ids` are memberships; `subjects` are the same users, and those of other issuers."""

    role_ids: tuple[str, ...] = msgspec.field(default=(), name="roleIDs")
    service_account_ids: tuple[str, ...] = msgspec.field(default=(), name="serviceAccountIDs")
    user_ids: tuple[str, ...] = msgspec.field(default=(), name="userIDs")
    subjects: tuple[Subject, ...] = ()
    tags: tuple[Tag, ...] = ()
    member_changes: tuple[MemberChange, ...] = ()


class Group(Resource, frozen=True):
    """Users and service accounts with the same roles."""

    spec: GroupSpec = GroupSpec()


def user_member(membership: str) -> str:
    """Return the value of the index `member` for a local user, by membership."""
    return f"user/{membership}"


def account_member(account: str) -> str:
    """Return the value of the index `member` for a service account."""
    return f"account/{account}"


def subject_member(issuer: str, subject: str) -> str:
    """Return the value of the index `member` for a user of another issuer."""
    return f"subject/{issuer}/{subject}"


def _members(group: Group) -> Iterator[str]:
    yield from map(user_member, group.spec.user_ids)
    yield from map(account_member, group.spec.service_account_ids)
    yield from (subject_member(each.issuer, each.id) for each in group.spec.subjects if not each.is_local)


class Grant(StoredStruct, frozen=True):
    """Permitted operations of an endpoint."""

    name: str
    operations: tuple[Verb, ...] = ()


Grants = Annotated[tuple[Grant, ...], keyed("name")]


class RoleScopes(StoredStruct, frozen=True, rename={"everywhere": "global"}):
    """Permissions of a role, by scope."""

    everywhere: Grants = ()
    organization: Grants = ()
    project: Grants = ()


class RoleSpec(StoredStruct, frozen=True):
    """Spec of a role."""

    protected: bool = False
    """Only the configuration binds it: it is not listed and cannot be assigned to groups."""
    scopes: RoleScopes = RoleScopes()
    tags: tuple[Tag, ...] = ()


class Role(Resource, frozen=True):
    """Named set of permissions."""

    spec: RoleSpec = RoleSpec()


USER = shared_kind(
    User,
    "users",
    counted_in=PAYING_ORGANIZATION,
    indexes=(Index(name="suspended", values=lambda user: [] if user.spec.suspension is None else ["yes"]),),
    columns={"Subject": ".spec.subject", "State": ".spec.state"},
)
"""Users. Suspended ones are found by an index."""

ORGANIZATION_USER = shared_kind(
    OrganizationUser,
    "organizationusers",
    counted_in=ORGANIZATION_LABEL,
    references=(
        Reference(target=f"users.{SHARED}", names=lambda membership: [membership.metadata.labels[USER_LABEL]]),
    ),
    columns={"State": ".spec.state"},
)
"""Memberships, found by the labels of organization and user. A reference protects the user."""

SERVICE_ACCOUNT = shared_kind(
    ServiceAccount, "serviceaccounts", counted_in=ORGANIZATION_LABEL, columns=DISPLAY_NAME | {"Expiry": ".spec.expiry"}
)

GROUP = shared_kind(
    Group,
    "groups",
    counted_in=ORGANIZATION_LABEL,
    indexes=(
        Index(name="member", values=_members),
        Index[Group](name="operation", values=lambda group: [entry.operation for entry in group.spec.member_changes]),
    ),
    columns=DISPLAY_NAME,
)
"""Groups, found by their members, and by the operations that changed these."""

ROLE = shared_kind(Role, "roles", uncounted="built in", columns=DISPLAY_NAME)
"""Roles. Built-in ones are written at each start; an operator may add others."""
