"""Access lists: what somebody may do, and where.

A user whom the configuration binds to roles has what those allow everywhere, and nothing besides. Anybody else has, in
each organization with an active membership, what the roles of its groups allow in organizations, and in each project
that lists one of those groups what that group's roles allow in projects. A service account is the same with its one
organization. A service has what its role allows everywhere.

The cost is that of the subject's own memberships, groups and projects, however many others there are. What was read is
told besides, so that whoever keeps a list knows when it is good no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from remuda.access.principal import AccessList, OrganizationAccess, Permission
from remuda.identity.kinds.roles import Role
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import (
    Group,
    OrganizationUser,
    ServiceAccount,
    User,
    account_member,
    subject_member,
    user_member,
)
from remuda.identity.rbac.bindings import Bindings, Bound, is_for_groups
from remuda.identity.rbac.book import RoleBook
from remuda.kernel.errors import Unauthenticated
from remuda.resources.conventions import ORGANIZATION, USER, organization_of
from remuda.resources.crud import is_there
from remuda.store.contract import Part, Store, indexed, labelled, named
from remuda.store.objects import Resource, ResourceT


@dataclass(frozen=True, slots=True)
class Standing:
    """What somebody may do, and where they are a member."""

    access: AccessList
    made_from: tuple[Part, ...] = field(compare=False, repr=False)
    """What was read to know this, beside the subject itself."""
    organizations: tuple[str, ...] = ()

    def only_in(self, organization: str) -> "Standing":
        """Return how somebody stands for whom one organization alone vouches: there as ever, elsewhere as nobody."""
        inside = self.access.organizations.get(organization)
        access = AccessList(organizations={} if inside is None else {organization: inside})
        return replace(self, access=access, organizations=tuple(filter(organization.__eq__, self.organizations)))


class _Reads:
    """Reads, and remembers what was read. Roles are always: they are few, and seldom change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: dict[Part, None] = {Role: None}

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(self._parts)

    async def is_there(self, kind: type[ResourceT], name: str) -> bool:
        self._parts[named(kind, name)] = None
        return await is_there(self._store, kind, name)

    async def labelled(self, kind: type[ResourceT], key: str, value: str) -> Sequence[ResourceT]:
        self._parts[labelled(kind, key, value)] = None
        return (await self._store.list(kind, labels={key: value})).items

    async def indexed(self, kind: type[ResourceT], index: str, value: str) -> Sequence[ResourceT]:
        self._parts[indexed(kind, index, value)] = None
        return (await self._store.list(kind, index=(index, value))).items


class AccessLists:
    """Works access lists out from what is stored and from what the configuration binds."""

    def __init__(self, store: Store, bindings: Bindings) -> None:
        self._store, self._bindings, self._roles = store, bindings, RoleBook(store)

    async def of_user(self, user: User, issuer: str, groups: Sequence[str]) -> Standing:
        """Return how a user stands, as one of an issuer and its groups."""
        reads = _Reads(self._store)
        memberships = await _memberships(reads, user)
        organizations = tuple(map(organization_of, memberships))
        bound = self._bindings.of_user(user.spec.subject, issuer, groups)
        if bound:
            return Standing(AccessList(everywhere=await self._bound(bound)), reads.parts, organizations)
        inside = {
            organization_of(each): await self._inside(reads, organization_of(each), self._members(user, each, issuer))
            for each in memberships
        }
        access = AccessList(organizations={name: found for name, (_, found) in inside.items()})
        return Standing(access, reads.parts, organizations)

    async def of_outsider(self, subject: str, issuer: str, groups: Sequence[str]) -> Standing:
        """Return how somebody stands whom only an issuer knows."""
        bound = self._bindings.of_user(subject, issuer, groups)
        return Standing(AccessList(everywhere=await self._bound(bound)), (Role,))

    async def of_account(self, account: ServiceAccount) -> Standing:
        """Return how a service account stands. One without any group has no rights at all, not even to be told so."""
        organization, reads = organization_of(account), _Reads(self._store)
        if not await reads.is_there(Organization, organization):
            return Standing(AccessList(), reads.parts)
        is_in_a_group, found = await self._inside(reads, organization, [account_member(account.name)])
        access = AccessList(organizations={organization: found}) if is_in_a_group else AccessList()
        return Standing(access, reads.parts, (organization,))

    async def of_system(self, name: str) -> Standing:
        role = self._bindings.of_system(name)
        if role is None:
            raise Unauthenticated("service is not known")
        everywhere = (await self._roles.of(frozenset({role}))).everywhere
        return Standing(AccessList(everywhere=everywhere), (Role,))

    def _members(self, user: User, membership: OrganizationUser, issuer: str) -> list[str]:
        """Return as what a user is in groups: by membership, and as one of another issuer also by that one's word."""
        if self._bindings.is_ours(issuer):
            return [user_member(membership.name)]
        return [user_member(membership.name), subject_member(issuer, user.spec.subject)]

    async def _bound(self, bound: Bound) -> frozenset[Permission]:
        by_name, to_everybody, by_group = [
            (await self._roles.of(roles)).everywhere for roles in (bound.by_name, bound.to_everybody, bound.by_group)
        ]
        read = frozenset(each for each in to_everybody if each.verb == "read")
        return by_name | read | frozenset(filter(is_for_groups, by_group))

    async def _inside(
        self, reads: _Reads, organization: str, members: Sequence[str]
    ) -> tuple[bool, OrganizationAccess]:
        """Return whether a member is in any group of an organization, and what it may do there."""
        groups = await _groups(reads, organization, members)
        held = frozenset(role for group in groups for role in group.spec.role_ids)
        permissions = (await self._roles.of(held)).organization
        return bool(groups), OrganizationAccess(permissions, await self._projects(reads, organization, groups))

    async def _projects(
        self, reads: _Reads, organization: str, groups: Sequence[Group]
    ) -> dict[str, frozenset[Permission]]:
        held: dict[str, frozenset[str]] = {}
        for group in groups:
            roles = frozenset(group.spec.role_ids)
            if not (await self._roles.of(roles)).project:
                continue
            for project in await reads.indexed(Project, "group", group.name):
                if _is_in(project, organization):
                    held[project.name] = held.get(project.name, frozenset()) | roles
        return {project: (await self._roles.of(roles)).project for project, roles in held.items()}


async def _memberships(reads: _Reads, user: User) -> list[OrganizationUser]:
    found = await reads.labelled(OrganizationUser, USER, user.name)
    active = [each for each in found if each.spec.state == "active" and not each.is_marked]
    there = [each for each in active if await reads.is_there(Organization, organization_of(each))]
    return sorted(there, key=organization_of)


async def _groups(reads: _Reads, organization: str, members: Sequence[str]) -> list[Group]:
    found: dict[str, Group] = {}
    for member in members:
        listed = await reads.indexed(Group, "member", member)
        found |= {each.name: each for each in listed if _is_in(each, organization) and not each.is_marked}
    return list(found.values())


def _is_in(resource: Resource, organization: str) -> bool:
    return resource.metadata.labels.get(ORGANIZATION) == organization
