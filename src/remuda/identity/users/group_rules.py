"""The rules of groups, as pure functions: what may be asked, what is stored of it, how it reads."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import Tagged, tagged
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.kinds.users import Group, GroupSpec, Subject
from remuda.identity.users.rosters import local_subject
from remuda.identity.users.schema import GroupRead, GroupSpecWire, GroupWrite, SubjectWire
from remuda.kernel.errors import Malformed
from remuda.resources import conventions as labels
from remuda.resources.crud import each_once
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    read_organization_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.tags import own_tags, replaced_tags


def check_same_people(spec: GroupSpecWire, by_subject: Collection[str]) -> None:
    """Refuse user ids and subjects that are not the same people: nobody could tell which of them are meant.

    `by_subject` are the memberships that the subjects stand for. What a read shows can be sent back as it is.
    """
    if spec.user_ids and spec.subjects and set(spec.user_ids) != set(by_subject):
        raise Malformed("cannot provide both subjects and userIDs", [("/spec/subjects", "are not those of userIDs")])


def roster(wanted: GroupWrite, users: Mapping[str, str], others: Sequence[SubjectWire]) -> GroupSpec:
    """Return who is in a group: `users` are subjects by membership, `others` those whom another issuer vouches for.

    Nobody's mark stays: from here on the group's members are what this says.
    """
    foreign = {(each.issuer, each.id): Subject(id=each.id, issuer=each.issuer, email=each.email) for each in others}
    return GroupSpec(
        role_ids=each_once(wanted.spec.role_ids),
        service_account_ids=each_once(wanted.spec.service_account_ids),
        user_ids=tuple(users),
        subjects=(*map(local_subject, users.values()), *foreign.values()),
    )


def new_group(name: str, organization: Organization, wanted: GroupWrite, spec: GroupSpec, by: Principal) -> Group:
    """Return a group as it is stored."""
    metadata = new_metadata(name, wanted.metadata, by, labels={labels.ORGANIZATION: organization.name})
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    return Group(metadata=metadata, spec=replace(spec, tags=own_tags(stored_tags(wanted.metadata), by)))


def changed_group(group: Group, wanted: GroupWrite, spec: GroupSpec, by: Principal, now: datetime) -> Group:
    """Return a group with everything replaced that a client may change."""
    metadata = changed_metadata(group.metadata, wanted.metadata, by.subject, now)
    tags = replaced_tags(group.spec.tags, stored_tags(wanted.metadata), by)
    return replace(group, metadata=metadata, spec=replace(spec, tags=tags))


def read_group(group: Group, issuer: str) -> GroupRead:
    """Return a group as clients read it; `issuer` is our own name."""
    metadata = read_organization_metadata(group.metadata, group.spec.tags)
    return GroupRead(metadata=metadata, spec=_spec_wire(group.spec, issuer))


def writable_group(group: Group) -> GroupWrite:
    """Return the part of a group that a client may change."""
    return GroupWrite(metadata=writable_metadata(group.metadata, group.spec.tags), spec=_spec_wire(group.spec, ""))


def group_view(issuer: str) -> Tagged[Group, GroupRead]:
    """Return how groups are rendered where this is our own name: always the same view, as the store's cache asks."""
    return _view(issuer)


@cache
def _view(issuer: str) -> Tagged[Group, GroupRead]:
    return tagged(lambda group: read_group(group, issuer), writable_group)


def _spec_wire(spec: GroupSpec, issuer: str) -> GroupSpecWire:
    return GroupSpecWire(
        role_ids=spec.role_ids,
        service_account_ids=spec.service_account_ids,
        user_ids=spec.user_ids,
        subjects=tuple(
            SubjectWire(id=each.id, issuer=each.issuer or issuer, email=each.email) for each in spec.subjects
        ),
    )
