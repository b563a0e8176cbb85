"""Groups: users and service accounts that have the same roles in an organization and in projects that list the group.

The rules are pure functions: which requests are valid, what is stored of them, and what clients read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from msgspec.structs import replace

from remuda.access.principal import Context, Principal, Verb
from remuda.http.pagination import SLICE
from remuda.http.responses import Collection as ResponseCollection
from remuda.http.responses import EtagView, Viewed, etag_view
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.kinds.users import GROUP, Group, GroupSpec, OrganizationUser, ServiceAccount, Subject, User
from remuda.identity.references import OrganizationReferences
from remuda.identity.settings import IdentitySettings
from remuda.identity.users.rules import email_address, local_subject, membership_of
from remuda.identity.users.schema import GroupRead, GroupSpecWire, GroupWrite, SubjectWire
from remuda.identity.users.service import RoleGrants
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import Malformed
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.conventions import USER
from remuda.resources.crud import each_once, find, find_in, get_in
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_organization_metadata,
    updated_tags,
    writable_metadata,
)
from remuda.resources.service import OrganizationResourceService

GROUPS = "groups"
"""Endpoint in paths and permissions."""


def check_same_users(spec: GroupSpecWire, by_subject: Collection[str]) -> None:
    """Raise Malformed if user ids and subjects name different users; `by_subject` has the memberships."""
    if spec.user_ids and spec.subjects and set(spec.user_ids) != set(by_subject):
        raise Malformed("cannot provide both subjects and userIDs", [("/spec/subjects", "are not those of userIDs")])


def group_members(requested: GroupWrite, users: Mapping[str, str], named: Sequence[Subject]) -> GroupSpec:
    """Return the members of a group: `users` has subjects by membership, `named` the requested subjects.

    Subjects are kept in the order of the request. Changes of operations are dropped: this request decides the members.
    """
    subjects = dict[tuple[str, str], Subject]()
    for each in (*named, *map(local_subject, users.values())):
        subjects.setdefault((each.issuer, each.id), each)
    return GroupSpec(
        role_ids=each_once(requested.spec.role_ids),
        service_account_ids=each_once(requested.spec.service_account_ids),
        user_ids=tuple(users),
        subjects=tuple(subjects.values()),
    )


def new_group(name: str, organization: Organization, requested: GroupWrite, spec: GroupSpec, by: Principal) -> Group:
    metadata = new_metadata(name, requested.metadata, by, labels={ORGANIZATION_LABEL: organization.name})
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    return Group(metadata=metadata, spec=replace(spec, tags=new_tags(requested.metadata, by)))


def updated_group(group: Group, requested: GroupWrite, spec: GroupSpec, by: Principal, now: datetime) -> Group:
    metadata = changed_metadata(group.metadata, requested.metadata, by, now)
    tags = updated_tags(group.spec.tags, requested.metadata, by)
    return replace(group, metadata=metadata, spec=replace(spec, tags=tags))


def read_group(group: Group, issuer: str) -> GroupRead:
    """Return the response for a group; `issuer` is our own."""
    metadata = read_organization_metadata(group.metadata, group.spec.tags)
    return GroupRead(metadata=metadata, spec=_spec_wire(group.spec, issuer))


def writable_group(group: Group) -> GroupWrite:
    spec = _spec_wire(group.spec, LOCAL_ISSUER)
    return GroupWrite(metadata=writable_metadata(group.metadata, group.spec.tags), spec=spec)


def group_view(issuer: str) -> EtagView[Group, GroupRead]:
    """Return the view of groups for an issuer. It is always the same object, as the store's cache requires."""
    return _view(issuer)


@cache
def _view(issuer: str) -> EtagView[Group, GroupRead]:
    return etag_view(lambda group: read_group(group, issuer), writable_group)


def _spec_wire(spec: GroupSpec, issuer: str) -> GroupSpecWire:
    return GroupSpecWire(
        role_ids=spec.role_ids,
        service_account_ids=spec.service_account_ids,
        user_ids=spec.user_ids,
        subjects=tuple(
            SubjectWire(id=each.id, issuer=issuer if each.is_local else each.issuer, email=each.email)
            for each in spec.subjects
        ),
    )


_NO_USER = "names no user of this organization"


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(OrganizationResourceService[Group, GroupRead]):
    """Service of groups. What it returns is rendered for our own issuer, and the ETag depends on no issuer."""

    kind, endpoint, view, noun = GROUP, f"identity:{GROUPS}", group_view(LOCAL_ISSUER), "group"

    clock: Clock
    settings: IdentitySettings
    grants: RoleGrants
    references: OrganizationReferences

    @property
    def own_view(self) -> EtagView[Group, GroupRead]:
        return group_view(self.settings.issuer)

    async def list(self, context: Context, organization: str) -> ResponseCollection[Group, list[GroupRead]]:
        self.authorize(context, "read", organization)
        await self.store.get(Organization, organization)
        where = {ORGANIZATION_LABEL: organization}
        return ResponseCollection(store=self.store, kind=Group, view=self.own_view, labels=where)

    async def create(self, context: Context, organization: str, body: GroupWrite) -> Viewed[GroupRead]:
        """Create a group, named after the request, so that repeating the request creates no second one."""
        self.authorize(context, "create", organization)
        owner = await self.store.get(Organization, organization)
        with self.references.writing(organization):
            spec = await self._validated(context, organization, body)
            group = new_group(context.operation, owner, body, spec, context.principal)
            return Viewed(self.own_view, await self.insert(context, group))

    async def get(self, context: Context, organization: str, group: str) -> Viewed[GroupRead]:
        return Viewed(self.own_view, await self.get_authorized(context, "read", organization, group))

    async def update(self, context: Context, organization: str, group: str, body: GroupWrite) -> None:
        """Replace the metadata, the roles and the members of a group."""

        async def changed(found: Group) -> Group:
            spec = await self._validated(context, organization, body)
            return updated_group(found, body, spec, context.principal, self.clock.now())

        with self.references.writing(organization):
            await self.update_with(context, organization, group, changed)

    async def delete(self, context: Context, organization: str, id: str) -> None:  # noqa: A002  as in the base
        """Delete a group, and remove it from projects."""
        self.authorize(context, "delete", organization)
        async with self.references.group_deletion(context, organization, id):
            await self.delete_found(context, lambda: self.get_authorized(context, "delete", organization, id))

    async def get_authorized(self, context: Context, verb: Verb, organization: str, id: str) -> Group:  # noqa: A002  as in the base
        """Return a group for which the caller has this permission. One that is being deleted does not exist."""
        self.authorize(context, verb, organization)
        await self.store.get(Organization, organization)
        return await get_in(self.store, Group, id, organization, include_deleting=False)

    async def _validated(self, context: Context, organization: str, requested: GroupWrite) -> GroupSpec:
        """Return the requested spec as it is stored, if the caller may request it."""
        await self.grants.check_grantable(context.principal, each_once(requested.spec.role_ids), organization)
        spec = requested.spec
        for number, account in enumerate(each_once(spec.service_account_ids)):
            if number % SLICE == SLICE - 1:
                await yield_to_loop()
            await self._check_account(organization, account)
        named = [self._subject_of(each, number) for number, each in enumerate(spec.subjects)]
        return group_members(requested, await self._users(organization, spec, named), named)

    async def _users(self, organization: str, spec: GroupSpecWire, named: Sequence[Subject]) -> dict[str, str]:
        """Return the local users that a request names by id or subject: their subjects, by membership."""
        by_subject = {membership_of(organization, each.id): each.id for each in named if each.is_local}
        check_same_users(spec, by_subject)
        users: dict[str, str] = {}
        for number, user in enumerate(each_once([*spec.user_ids, *by_subject])):
            if number % SLICE == SLICE - 1:
                await yield_to_loop()
            subject = await self._subject(organization, user)
            if subject is None and user in by_subject:
                raise Malformed(f"subject {by_subject[user]} does not exist", [("/spec/subjects", _NO_USER)])
            if subject is None:
                raise Malformed(f"user ID {user} does not exist", [("/spec/userIDs", _NO_USER)])
            users[user] = subject
        return users

    async def _subject(self, organization: str, user: str) -> str | None:
        membership = await find_in(self.store, OrganizationUser, user, organization)
        found = None if membership is None else await find(self.store, User, membership.metadata.labels[USER])
        return None if found is None else found.spec.subject

    async def _check_account(self, organization: str, account: str) -> None:
        if await find_in(self.store, ServiceAccount, account, organization, include_deleting=False) is None:
            raise Malformed(
                f"service account ID {account} does not exist",
                [("/spec/serviceAccountIDs", "names no service account of this organization")],
            )

    def _subject_of(self, requested: SubjectWire, number: int) -> Subject:
        """Return a requested subject as it is stored: one of another issuer, also of the empty one, as it is."""
        if requested.issuer in {LOCAL_ISSUER, self.settings.issuer}:
            return local_subject(email_address(requested.id, f"/spec/subjects/{number}/id"))
        return Subject(id=requested.id, issuer=requested.issuer, email=requested.email)
