"""Users, memberships, service accounts and groups as they are stored.

A user is one for the whole system and is known by its subject, an e-mail address; its id is derived from the subject,
so there cannot be two. A membership is a user in one organization. Who is in a group is written in the group alone.

What operations have in hand of users, service accounts and groups.

To change a user or a service account together with its groups takes several writes, which an operation holds together.
A `Claim` on the object says which operation has it in hand, and what to put back; a `Mark` in a group says the same of
one member there.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.identity.kinds.common import SHARED, VERSION, UserState
from remuda.kernel.ids import derived_id
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.resources.conventions import USER as USER_LABEL
from remuda.store.kinds import Index, Kind, Reference, keyed
from remuda.store.objects import Resource, StoredStruct


class Before(StoredStruct, frozen=True):
    """What an operation puts back if it is undone."""

    name: str = ""
    annotations: Mapping[str, str] = {}
    tags: tuple[Tag, ...] = ()
    state: UserState = "active"


class Claim(StoredStruct, frozen=True):
    """The operation that last had an object in hand, and still has it while it is open."""

    operation: str
    before: Before | None = None
    """None if the operation made the object."""


class Mark(StoredStruct, frozen=True):
    """What an operation did to one member of a group, for as long as nobody else decides about the group's members."""

    member: str
    """The value of the index `member`."""
    operation: str
    was_in: bool = False
    """It was in the group before."""


KEEPS_ACCOUNT = f"{SHARED}/tokens"
"""Keeps a deleted service account until its tokens are revoked."""

_USERS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c01"
_MEMBERSHIPS = "b2f0c1de-6c0e-5b57-9d6e-3a1f5a1f0c02"


def user_id(subject: str) -> str:
    """Return the id of the user with this subject. Two addresses that differ only in case are one person's."""
    return derived_id(_USERS, folded(subject.strip()))


def membership_id(organization: str, user: str) -> str:
    """Return the id of a user's membership in an organization."""
    return derived_id(_MEMBERSHIPS, f"{organization}/{user}")


class LastLogin(StoredStruct, frozen=True):
    """When a user last logged in through a client. The tokens are in the session of that name, as hashes."""

    client_id: str = msgspec.field(name="clientID")
    authorization_code_id: str = msgspec.field(name="authorizationCodeID")
    access_token: str = ""
    refresh_token: str = ""
    last_authentication: datetime | None = None


class UserSpec(StoredStruct, frozen=True, omit_defaults=False):
    """A person."""

    subject: str = ""
    state: UserState = "active"
    tags: tuple[Tag, ...] = ()
    makers: tuple[str, ...] = ()
    """The operation that made it, and those that built on it before that one was done: the last of them to be undone
    removes it."""
    sessions: Annotated[tuple[LastLogin, ...], keyed("clientID")] = ()


class User(Resource, frozen=True):
    """A person, for the whole system."""

    spec: UserSpec = UserSpec()

    @property
    def is_active(self) -> bool:
        """Whether it may log in, and what it did before still counts."""
        return self.spec.state == "active" and not self.is_deleting


class OrganizationUserSpec(StoredStruct, frozen=True, omit_defaults=False):
    """How a user stands in an organization."""

    state: UserState = "active"
    tags: tuple[Tag, ...] = ()
    claim: Claim | None = None


class OrganizationUser(Resource, frozen=True):
    """A membership. Labels say of whom and where."""

    spec: OrganizationUserSpec = OrganizationUserSpec()


class ReplacedToken(StoredStruct, frozen=True):
    """A token in whose place came another one."""

    id: str
    """Its `jti`."""
    expires: datetime


class ServiceAccountSpec(StoredStruct, frozen=True, omit_defaults=False):
    """An account for automation, with the one token that is good for it."""

    access_token: str = ""
    """The SHA-256 of the token, in hex: the token itself is shown once and not kept."""
    token_id: str = ""
    """The `jti` of the token, by which it is revoked."""
    expiry: datetime | None = None
    replaced: tuple[ReplacedToken, ...] = ()
    """Earlier tokens that are yet to be revoked for processes that do not see this object."""
    tags: tuple[Tag, ...] = ()
    claim: Claim | None = None


class ServiceAccount(Resource, frozen=True):
    """An account for automation."""

    spec: ServiceAccountSpec = ServiceAccountSpec()


class Subject(StoredStruct, frozen=True, omit_defaults=False):
    """A user of some issuer; ours has the empty name."""

    id: str = msgspec.field(name="ID")
    issuer: str = ""
    email: str = ""


class GroupSpec(StoredStruct, frozen=True):
    """Who has which roles. `user_ids` are memberships; `subjects` are the same people, and those of other issuers."""

    role_ids: tuple[str, ...] = msgspec.field(default=(), name="roleIDs")
    service_account_ids: tuple[str, ...] = msgspec.field(default=(), name="serviceAccountIDs")
    user_ids: tuple[str, ...] = msgspec.field(default=(), name="userIDs")
    subjects: tuple[Subject, ...] = ()
    tags: tuple[Tag, ...] = ()
    marks: tuple[Mark, ...] = ()


class Group(Resource, frozen=True):
    """People and service accounts with the same roles."""

    spec: GroupSpec = GroupSpec()


def user_member(membership: str) -> str:
    """Return the value of the index `member` for a user of ours, by membership."""
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
    yield from (subject_member(each.issuer, each.id) for each in group.spec.subjects if each.issuer)


USER = Kind(
    type=User,
    group=SHARED,
    version=VERSION,
    plural="users",
    columns={"Subject": ".spec.subject", "State": ".spec.state"},
)
"""Users."""

ORGANIZATION_USER = Kind(
    type=OrganizationUser,
    group=SHARED,
    version=VERSION,
    plural="organizationusers",
    references=(
        Reference(target=f"users.{SHARED}", names=lambda membership: [membership.metadata.labels[USER_LABEL]]),
    ),
    columns={"State": ".spec.state"},
)
"""Memberships, found by the labels of organization and user. Nobody is left without its user record."""

SERVICE_ACCOUNT = Kind(
    type=ServiceAccount,
    group=SHARED,
    version=VERSION,
    plural="serviceaccounts",
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name", "Expiry": ".spec.expiry"},
)
"""Service accounts."""

GROUP = Kind(
    type=Group,
    group=SHARED,
    version=VERSION,
    plural="groups",
    indexes=(
        Index(name="member", values=_members),
        Index(name="operation", values=lambda group: [mark.operation for mark in group.spec.marks]),
    ),
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Groups, found by who is in them, and by the operations that changed that."""
