"""Who is in a group, as pure functions of its spec.

A user of ours is in a group twice: by the id of the membership, and as a subject, for clients that know people by what
they log in as. Either follows from the other, so they are changed together here and nowhere else.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec
from msgspec.structs import replace

from remuda.identity.kinds.claims import Mark
from remuda.identity.kinds.users import Group, GroupSpec, Subject, account_member, membership_id, user_id, user_member


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
