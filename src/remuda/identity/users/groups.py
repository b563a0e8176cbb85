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
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.kinds.users import GROUP, Group, GroupSpec, OrganizationUser, ServiceAccount, Subject, User
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
    check_tags,
    new_metadata,
    read_organization_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.service import OrganizationResourceService
from remuda.resources.tags import own_tags, replaced_tags

GROUPS = "groups"
"""Endpoint in paths and permissions."""


def check_same_users(spec: GroupSpecWire, by_subject: Collection[str]) -> None:
    """Raise Malformed if user ids and subjects name different users; `by_subject` has the memberships."""
    if spec.user_ids and spec.subjects and set(spec.user_ids) != set(by_subject):
        raise Malformed("cannot provide both subjects and userIDs", [("/spec/subjects", "are not those of userIDs")])


def group_members(requested: GroupWrite, users: Mapping[str, str], others: Sequence[SubjectWire]) -> GroupSpec:
    """Return the members of a group: `users` has subjects by membership, `others` the users of other issuers.

    Changes of operations are dropped: this request decides the members.
    """
    foreign = {(each.issuer, each.id): Subject(id=each.id, issuer=each.issuer, email=each.email) for each in others}
    return GroupSpec(
        role_ids=each_once(requested.spec.role_ids),
        service_account_ids=each_once(requested.spec.service_account_ids),
        user_ids=tuple(users),
        subjects=(*map(local_subject, users.values()), *foreign.values()),
    )


def new_group(name: str, organization: Organization, requested: GroupWrite, spec: GroupSpec, by: Principal) -> Group:
    metadata = new_metadata(name, requested.metadata, by, labels={ORGANIZATION_LABEL: organization.name})
    metadata = replace(metadata, owner_references=(ORGANIZATION.owner(organization),))
    return Group(metadata=metadata, spec=replace(spec, tags=own_tags(stored_tags(requested.metadata), by)))


def updated_group(group: Group, requested: GroupWrite, spec: GroupSpec, by: Principal, now: datetime) -> Group:
    metadata = changed_metadata(group.metadata, requested.metadata, by.subject, now)
    tags = replaced_tags(group.spec.tags, stored_tags(requested.metadata), by)
    return replace(group, metadata=metadata, spec=replace(spec, tags=tags))


def read_group(group: Group, issuer: str) -> GroupRead:
    """Return the response for a group; `issuer` is our own."""
    metadata = read_organization_metadata(group.metadata, group.spec.tags)
    return GroupRead(metadata=metadata, spec=_spec_wire(group.spec, issuer))


def writable_group(group: Group) -> GroupWrite:
    return GroupWrite(metadata=writable_metadata(group.metadata, group.spec.tags), spec=_spec_wire(group.spec, ""))


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
            SubjectWire(id=each.id, issuer=each.issuer or issuer, email=each.email) for each in spec.subjects
        ),
    )


_NO_USER = "names no user of this organization"


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(OrganizationResourceService[Group, GroupRead]):
    """Service of groups. What it returns is rendered for our own issuer, and the ETag depends on no issuer."""

    kind, endpoint, view, noun = GROUP, f"identity:{GROUPS}", group_view(""), "group"

    clock: Clock
    settings: IdentitySettings
    grants: RoleGrants

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

        await self.update_with(context, organization, group, changed)

    async def get_authorized(self, context: Context, verb: Verb, organization: str, id: str) -> Group:  # noqa: A002  as in the base
        """Return a group for which the caller has this permission. One that is being deleted does not exist."""
        self.authorize(context, verb, organization)
        await self.store.get(Organization, organization)
        return await get_in(self.store, Group, id, organization, include_deleting=False)

    async def _validated(self, context: Context, organization: str, requested: GroupWrite) -> GroupSpec:
        """Return the requested spec as it is stored, if the caller may request it."""
        check_tags(requested.metadata.tags)
        await self.grants.check_grantable(context.principal, each_once(requested.spec.role_ids), organization)
        spec = requested.spec
        for number, account in enumerate(each_once(spec.service_account_ids)):
            if number % SLICE == SLICE - 1:
                await yield_to_loop()
            await self._check_account(organization, account)
        users = await self._users(organization, spec)
        return group_members(requested, users, [each for each in spec.subjects if not self._is_ours(each)])

    async def _users(self, organization: str, spec: GroupSpecWire) -> dict[str, str]:
        """Return the local users that a request names by id or subject: their subjects, by membership."""
        local = [
            email_address(each.id, f"/spec/subjects/{number}/id")
            for number, each in enumerate(spec.subjects)
            if self._is_ours(each)
        ]
        by_subject = {membership_of(organization, subject): subject for subject in local}
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

    def _is_ours(self, subject: SubjectWire) -> bool:
        return subject.issuer in {"", self.settings.issuer}
