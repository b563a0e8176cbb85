"""The rules of users and service accounts, as pure functions: what may be asked, what is stored of it, how it reads.

Who is in a group, as pure functions of its spec.

A user of ours is in a group twice: by the id of the membership, and as a subject, for clients that know people by what
they log in as. Either follows from the other, so they are changed together here and nowhere else.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.kinds.users import (
    KEEPS_ACCOUNT,
    Before,
    Claim,
    Group,
    GroupSpec,
    Mark,
    OrganizationUser,
    OrganizationUserSpec,
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
from remuda.identity.tokens.service import Issued
from remuda.identity.users.schema import AccountRead, AccountSpecWire, AccountStatus, UserRead, UserSpecWire, UserStatus
from remuda.kernel.errors import Malformed
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.kernel.text import folded
from remuda.resources import conventions as labels
from remuda.resources.metadata import changed_metadata, new_metadata, read_organization_metadata, stored_tags
from remuda.resources.schema import MetadataWrite
from remuda.resources.tags import own_tags, replaced_tags
from remuda.store.objects import Metadata


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user or a service account of an organization."""

    organization: str
    id: str
    """Of a user, that of the membership."""
    subject: str = ""
    """What a user logs in as; a service account has none."""

    @property
    def value(self) -> str:
        """What the index `member` of groups has of it."""
        return user_member(self.id) if self.subject else account_member(self.id)


def membership_of(organization: str, subject: str) -> str:
    """Return the id of the membership that this subject of ours has in an organization, if it has one."""
    return membership_id(organization, user_id(subject))


def local_subject(subject: str) -> Subject:
    """Return a user of ours as groups have it."""
    return Subject(id=subject, email=subject)


def is_in(group: Group, member: Member) -> bool:
    """Tell whether a group has a member."""
    return member.id in (group.spec.user_ids if member.subject else group.spec.service_account_ids)


def placed(spec: GroupSpec, member: Member, *, inside: bool) -> GroupSpec:
    """Return a group with or without a member."""
    spec = without(spec, member.organization, lambda value: value == member.value)
    if not inside:
        return spec
    if not member.subject:
        return replace(spec, service_account_ids=(*spec.service_account_ids, member.id))
    subjects = (*spec.subjects, local_subject(member.subject))
    return replace(spec, user_ids=(*spec.user_ids, member.id), subjects=subjects)


def without(spec: GroupSpec, organization: str, is_gone: Callable[[str], bool]) -> GroupSpec:
    """Return a group without those members of ours of whom this is said, by their values of the index `member`."""

    def stays(subject: Subject) -> bool:
        return bool(subject.issuer) or not is_gone(user_member(membership_of(organization, subject.id)))

    return replace(
        spec,
        user_ids=tuple(each for each in spec.user_ids if not is_gone(user_member(each))),
        service_account_ids=tuple(each for each in spec.service_account_ids if not is_gone(account_member(each))),
        subjects=tuple(filter(stays, spec.subjects)),
    )


def marked(group: Group, member: Member, operation: str, *, inside: bool, others: Iterable[Mark]) -> Group:
    """Return a group with or without a member, and with the mark by which the operation can take that back."""
    own = [mark for mark in group.spec.marks if (mark.member, mark.operation) == (member.value, operation)]
    mark = own[0] if own else Mark(member=member.value, operation=operation, was_in=is_in(group, member))
    spec = group.spec if is_in(group, member) == inside else placed(group.spec, member, inside=inside)
    return replace(group, spec=replace(spec, marks=(*others, mark)))


def reverted(group: Group, member: Member, operation: str) -> Group:
    """Return a group with what an operation did to a member taken back, if nobody has decided otherwise since."""
    own = [mark for mark in group.spec.marks if (mark.member, mark.operation) == (member.value, operation)]
    others: Collection[Mark] = [mark for mark in group.spec.marks if mark not in own]
    spec = group.spec
    if own and is_in(group, member) != own[0].was_in:
        spec = placed(spec, member, inside=own[0].was_in)
    return replace(group, spec=replace(spec, marks=tuple(others)))


ClaimedT = TypeVar("ClaimedT", OrganizationUser, ServiceAccount)

_ATOM = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_ADDRESS = re.compile(rf"(?=.{{3,254}}$)(?=[^@]{{1,64}}@){_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})*")
_NAMELESS = MetadataWrite(name=labels.UNNAMED)


def address(subject: str, pointer: str = "/spec/subject") -> str:
    """Return an e-mail address, sent at this place, as it is stored: in lower case, so that one person is one user."""
    plain = folded(subject.strip())
    if not _ADDRESS.fullmatch(plain):
        raise Malformed("subject address invalid", [(pointer, "is not an e-mail address")])
    return plain


def new_user(subject: str, tags: Sequence[Tag], by: Principal, *, makers: Sequence[str] = ()) -> User:
    """Return a user of the whole system as it is stored."""
    metadata = new_metadata(user_id(subject), _NAMELESS, by, labels={})
    return User(metadata=metadata, spec=UserSpec(subject=subject, tags=tuple(tags), makers=tuple(makers)))


def new_membership(
    organization: Organization, subject: str, state: UserState, by: Principal, *, claim: Claim | None = None
) -> OrganizationUser:
    """Return a user's membership in an organization as it is stored."""
    where = {labels.ORGANIZATION: organization.name, labels.USER: user_id(subject)}
    metadata = new_metadata(membership_of(organization.name, subject), _NAMELESS, by, labels=where)
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    return OrganizationUser(metadata=metadata, spec=OrganizationUserSpec(state=state, claim=claim))


def changed_membership(membership: OrganizationUser, state: UserState, by: str, now: datetime) -> OrganizationUser:
    metadata = changed_metadata(membership.metadata, _NAMELESS, by, now)
    return replace(membership, metadata=metadata, spec=replace(membership.spec, state=state))


def new_account(
    name: str, organization: Organization, wanted: MetadataWrite, issued: Issued, by: Principal, *, claim: Claim | None
) -> ServiceAccount:
    """Return a service account as it is stored; of its token, nothing by which it could be used."""
    where = {labels.ORGANIZATION: organization.name}
    metadata = new_metadata(name, wanted, by, labels=where, finalizers=(KEEPS_ACCOUNT,))
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    spec = ServiceAccountSpec(
        access_token=issued.hash,
        token_id=issued.id,
        expiry=issued.expires,
        tags=own_tags(stored_tags(wanted), by),
        claim=claim,
    )
    return ServiceAccount(metadata=metadata, spec=spec)


def changed_account(account: ServiceAccount, wanted: MetadataWrite, by: Principal, now: datetime) -> ServiceAccount:
    """Return a service account with everything replaced that a client may change; its token stays."""
    metadata = changed_metadata(account.metadata, wanted, by.subject, now)
    tags = replaced_tags(account.spec.tags, stored_tags(wanted), by)
    return replace(account, metadata=metadata, spec=replace(account.spec, tags=tags))


def rotated(account: ServiceAccount, issued: Issued, by: str, now: datetime) -> ServiceAccount:
    """Return a service account with a new token; the old one is remembered until it is revoked everywhere."""
    spec, replaced = account.spec, account.spec.replaced
    if spec.token_id and spec.expiry is not None:
        replaced = (*replaced, ReplacedToken(id=spec.token_id, expires=spec.expiry))
    wanted = MetadataWrite(
        name=_name(account.metadata), description=account.metadata.annotations.get(labels.DESCRIPTION, "")
    )
    return replace(
        account,
        metadata=changed_metadata(account.metadata, wanted, by, now),
        spec=replace(spec, access_token=issued.hash, token_id=issued.id, expiry=issued.expires, replaced=replaced),
    )


def claimed(found: ClaimedT, operation: str) -> ClaimedT:
    """Return an object in the hands of an operation, which can put it back."""
    before = Before(
        name=_name(found.metadata),
        annotations=dict(found.metadata.annotations),
        tags=found.spec.tags,
        state=found.spec.state if isinstance(found, OrganizationUser) else "active",
    )
    return replace(found, spec=replace(found.spec, claim=Claim(operation=operation, before=before)))


def restored(found: ClaimedT, before: Before) -> ClaimedT:
    """Return an object as it was before an operation had it in hand; a token that is newer than that stays."""
    named = dict(found.metadata.labels) | {labels.NAME: before.name}
    metadata = replace(found.metadata, labels=named, annotations=before.annotations)
    spec = replace(found.spec, tags=before.tags, claim=None)
    if isinstance(spec, OrganizationUserSpec):
        spec = replace(spec, state=before.state)
    return replace(found, metadata=metadata, spec=spec)


def last_active(user: User) -> datetime | None:
    """Return when somebody last logged in, through whichever client."""
    return max((each.last_authentication for each in user.spec.sessions if each.last_authentication), default=None)


def read_user(membership: OrganizationUser, user: User, groups: Sequence[str]) -> UserRead:
    """Return a user of an organization as clients read it. It has no name; its tags are not shown."""
    named = replace(membership.metadata, labels={labels.NAME: labels.UNNAMED} | dict(membership.metadata.labels))
    return UserRead(
        metadata=read_organization_metadata(named),
        spec=UserSpecWire(subject=user.spec.subject, state=membership.spec.state, group_ids=tuple(groups)),
        # Anybody can be entered into an organization, and only who takes part there is its business.
        status=UserStatus(last_active=last_active(user) if membership.spec.state == "active" else None),
    )


def read_account(account: ServiceAccount, groups: Sequence[str], token: Secret | None = None) -> AccountRead:
    """Return a service account as clients read it, with its token only where that is new."""
    assert account.spec.expiry is not None, "a service account has a token, which ends"
    return AccountRead(
        metadata=read_organization_metadata(account.metadata, account.spec.tags),
        spec=AccountSpecWire(group_ids=tuple(groups)),
        status=AccountStatus(expiry=account.spec.expiry, access_token=token),
    )


def _name(metadata: Metadata) -> str:
    return metadata.labels.get(labels.NAME, labels.UNNAMED)
