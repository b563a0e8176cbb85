"""Pure functions of users, service accounts and group members: validation, new and updated objects, responses.

A local user is in a group twice: by the id of the membership, and as a subject for clients that know users by their
login. Both are changed together here and nowhere else.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.kinds.common import LOCAL_ISSUER, UserState
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.kinds.users import (
    TOKENS_FINALIZER,
    Group,
    GroupSpec,
    MemberChange,
    OperationLock,
    OrganizationUser,
    OrganizationUserSpec,
    PreviousMembership,
    ReplacedToken,
    ServiceAccount,
    ServiceAccountSpec,
    Subject,
    User,
    UserSpec,
    account_member,
    membership_id,
    user_id,
    user_member,
)
from remuda.identity.references import without_members
from remuda.identity.tokens.service import Issued
from remuda.identity.users.schema import AccountRead, AccountSpecWire, AccountStatus, UserRead, UserSpecWire, UserStatus
from remuda.kernel.errors import Malformed
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.resources.conventions import DESCRIPTION, NAME, UNNAMED, USER
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_organization_metadata,
    updated_tags,
)
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Metadata


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """User or service account of an organization."""

    organization: str
    id: str
    """Id of the membership or of the service account."""
    subject: str = ""
    """Login of a user; empty for a service account."""

    @property
    def value(self) -> str:
        return user_member(self.id) if self.subject else account_member(self.id)


def membership_of(organization: str, subject: str) -> str:
    return membership_id(organization, user_id(subject))


def local_subject(subject: str) -> Subject:
    return Subject(id=subject, issuer=LOCAL_ISSUER, email=subject)


def is_in(group: Group, member: Member) -> bool:
    return member.id in (group.spec.user_ids if member.subject else group.spec.service_account_ids)


def with_member(spec: GroupSpec, member: Member, *, inside: bool) -> GroupSpec:
    spec = without_members(spec, member.organization, lambda value: value == member.value)
    if not inside:
        return spec
    if not member.subject:
        return replace(spec, service_account_ids=(*spec.service_account_ids, member.id))
    subjects = (*spec.subjects, local_subject(member.subject))
    return replace(spec, user_ids=(*spec.user_ids, member.id), subjects=subjects)


def changed_by(group: Group, member: Member, operation: str, *, inside: bool, others: Iterable[MemberChange]) -> Group:
    """Return a group with or without a member, and with the record by which the operation can revert that."""
    own = [entry for entry in group.spec.member_changes if (entry.member, entry.operation) == (member.value, operation)]
    entry = own[0] if own else MemberChange(member=member.value, operation=operation, was_member=is_in(group, member))
    spec = group.spec if is_in(group, member) == inside else with_member(group.spec, member, inside=inside)
    return replace(group, spec=replace(spec, member_changes=(*others, entry)))


def reverted(group: Group, member: Member, operation: str, *, is_left: bool) -> Group:
    """Return a group without the change of an operation, unless another caller changed the members since.

    `is_left`: the member was not deleted since.
    """
    own = [entry for entry in group.spec.member_changes if (entry.member, entry.operation) == (member.value, operation)]
    others: Collection[MemberChange] = [entry for entry in group.spec.member_changes if entry not in own]
    spec = group.spec
    if own and is_in(group, member) != own[0].was_member and (is_left or not own[0].was_member):
        spec = with_member(spec, member, inside=own[0].was_member)
    return replace(group, spec=replace(spec, member_changes=tuple(others)))


LockedT = TypeVar("LockedT", OrganizationUser, ServiceAccount)

_ATOM = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_ADDRESS = re.compile(rf"(?=.{{3,254}}$)(?=[^@]{{1,64}}@){_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})*")
_MAX_UNFOLDED = 1024
_NAMELESS = MetadataWrite(name=UNNAMED)


def email_address(subject: str, pointer: str = "/spec/subject") -> str:
    """Return an e-mail address in lower case, or raise Malformed with its position in the body."""
    plain = folded(subject.strip()) if len(subject) <= _MAX_UNFOLDED else ""
    if not _ADDRESS.fullmatch(plain):
        raise Malformed("subject address invalid", [(pointer, "is not an e-mail address")])
    return plain


def new_user(subject: str, tags: Sequence[Tag], by: Principal, *, creators: Sequence[str] = ()) -> User:
    metadata = new_metadata(user_id(subject), _NAMELESS, by, labels={})
    return User(metadata=metadata, spec=UserSpec(subject=subject, tags=tuple(tags), creators=tuple(creators)))


def new_membership(
    organization: Organization,
    subject: str,
    state: UserState,
    by: Principal,
    *,
    invited: bool,
    lock: OperationLock | None = None,
) -> OrganizationUser:
    """Return a new membership, to which the person has yet to agree if it is an invitation."""
    where = {ORGANIZATION_LABEL: organization.name, USER: user_id(subject)}
    metadata = new_metadata(membership_of(organization.name, subject), _NAMELESS, by, labels=where)
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    return OrganizationUser(metadata=metadata, spec=OrganizationUserSpec(state=state, invited=invited, lock=lock))


def updated_membership(
    membership: OrganizationUser, state: UserState, by: Principal, now: datetime
) -> OrganizationUser:
    metadata = changed_metadata(membership.metadata, _NAMELESS, by, now)
    return replace(membership, metadata=metadata, spec=replace(membership.spec, state=state))


def confirmed_membership(membership: OrganizationUser) -> OrganizationUser:
    """Return a membership that counts without the person's consent, because a platform administrator wrote it."""
    return replace(membership, spec=replace(membership.spec, invited=False))


def new_account(
    name: str,
    organization: Organization,
    requested: MetadataWrite,
    issued: Issued,
    by: Principal,
    *,
    lock: OperationLock | None,
) -> ServiceAccount:
    where = {ORGANIZATION_LABEL: organization.name}
    metadata = new_metadata(name, requested, by, labels=where, finalizers=(TOKENS_FINALIZER,))
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    spec = ServiceAccountSpec(
        access_token=issued.hash,
        token_id=issued.id,
        expiry=issued.expires,
        tags=new_tags(requested, by),
        lock=lock,
    )
    return ServiceAccount(metadata=metadata, spec=spec)


def updated_account(account: ServiceAccount, requested: MetadataWrite, by: Principal, now: datetime) -> ServiceAccount:
    """Return a service account with all writable fields replaced; its token stays."""
    metadata = changed_metadata(account.metadata, requested, by, now)
    tags = updated_tags(account.spec.tags, requested, by)
    return replace(account, metadata=metadata, spec=replace(account.spec, tags=tags))


def rotated(account: ServiceAccount, issued: Issued, by: Principal, now: datetime) -> ServiceAccount:
    """Return a service account with a new token; the old one is kept until it is revoked everywhere."""
    spec, replaced = account.spec, account.spec.replaced
    if spec.token_id and spec.expiry is not None:
        replaced = (*replaced, ReplacedToken(id=spec.token_id, expires=spec.expiry))
    requested = MetadataWrite(
        name=_name(account.metadata), description=account.metadata.annotations.get(DESCRIPTION, "")
    )
    return replace(
        account,
        metadata=changed_metadata(account.metadata, requested, by, now),
        spec=replace(spec, access_token=issued.hash, token_id=issued.id, expiry=issued.expires, replaced=replaced),
    )


def locked_by(found: LockedT, operation: str) -> LockedT:
    previous = PreviousMembership(
        name=_name(found.metadata),
        annotations=dict(found.metadata.annotations),
        tags=found.spec.tags,
        state=found.spec.state if isinstance(found, OrganizationUser) else "active",
        invited=isinstance(found, OrganizationUser) and found.spec.invited,
    )
    return replace(found, spec=replace(found.spec, lock=OperationLock(operation=operation, previous=previous)))


def restored(found: LockedT, previous: PreviousMembership) -> LockedT:
    """Return an object in its state before an operation; a newer token stays."""
    labelled = dict(found.metadata.labels) | {NAME: previous.name}
    metadata = replace(found.metadata, labels=labelled, annotations=previous.annotations)
    spec = replace(found.spec, tags=previous.tags, lock=None)
    if isinstance(spec, OrganizationUserSpec):
        spec = replace(spec, state=previous.state, invited=previous.invited)
    return replace(found, metadata=metadata, spec=spec)


def last_active(user: User) -> datetime | None:
    """Return the time of the last login through any client."""
    return max((each.last_authentication for each in user.spec.sessions if each.last_authentication), default=None)


def read_user(membership: OrganizationUser, user: User, groups: Sequence[str], *, has_agreed: bool) -> UserRead:
    """Return the response for a user of an organization, named after its address. Its tags are not shown."""
    is_shown = has_agreed and membership.spec.state == "active"
    labelled = replace(
        membership.metadata, labels=dict(membership.metadata.labels) | {NAME: _user_name(user.spec.subject)}
    )
    return UserRead(
        metadata=read_organization_metadata(labelled),
        spec=UserSpecWire(subject=user.spec.subject, state=membership.spec.state, group_ids=tuple(groups)),
        # Any address can be added to an organization, which sees logins only of active members who have agreed.
        status=UserStatus(last_active=last_active(user) if is_shown else None),
    )


_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME = 63


def _user_name(subject: str) -> str:
    """Return the address of a user as a display name, which has no @: `ann-at-example.com`."""
    return _NO_LABEL.sub("-", subject.replace("@", "-at-"))[:_MAX_NAME].strip("-_.") or UNNAMED


def read_account(account: ServiceAccount, groups: Sequence[str], token: Secret | None = None) -> AccountRead:
    """Return the response for a service account, with its token only if that is new."""
    assert account.spec.expiry is not None, "a service account has a token, which expires"
    return AccountRead(
        metadata=read_organization_metadata(account.metadata, account.spec.tags),
        spec=AccountSpecWire(group_ids=tuple(groups)),
        status=AccountStatus(expiry=account.spec.expiry, access_token=token),
    )


def _name(metadata: Metadata) -> str:
    return metadata.labels.get(NAME, UNNAMED)
