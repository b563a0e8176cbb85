"""Access lists: what somebody may do, and where.

A user whom the configuration binds to roles has what those allow everywhere, and nothing besides. Anybody else has, in
each organization with an active membership, what the roles of its groups allow in organizations, and in each project
that lists one of those groups what that group's roles allow in projects. A service account is the same with its one
organization. A service has what its role allows everywhere.

The cost is that of the subject's own memberships, groups and projects, however many others there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.access.principal import AccessList, OrganizationAccess, Permission
from remuda.identity.kinds.people import (
    Group,
    OrganizationUser,
    ServiceAccount,
    User,
    account_member,
    subject_member,
    user_member,
)
from remuda.identity.kinds.rights import Role
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.rights.bindings import Bindings, Bound, is_for_groups
from remuda.identity.rights.book import RoleBook
from remuda.kernel.errors import Unauthenticated
from remuda.resources.labels import ORGANIZATION, USER, organization_of
from remuda.resources.reading import is_there
from remuda.store.contract import Store
from remuda.store.objects import Resource

__all__ = ["OF_ACCOUNTS", "OF_SYSTEMS", "OF_USERS", "AccessLists", "Standing"]

OF_SYSTEMS: Sequence[type[Resource]] = (Role,)
"""The kinds that the rights of a service are made from."""
OF_ACCOUNTS: Sequence[type[Resource]] = (*OF_SYSTEMS, Group, Project, Organization)
"""The kinds that the rights of a service account are made from, beside the account itself."""
OF_USERS: Sequence[type[Resource]] = (*OF_ACCOUNTS, OrganizationUser)
"""The kinds that the rights of a user are made from, beside the user itself."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What somebody may do, and where they are a member."""

    access: AccessList
    organizations: tuple[str, ...] = ()

    def only_in(self, organization: str) -> "Standing":
        """Return how somebody stands for whom one organization alone vouches: there as ever, elsewhere as nobody."""
        inside = self.access.organizations.get(organization)
        access = AccessList(organizations={} if inside is None else {organization: inside})
        return Standing(access, tuple(each for each in self.organizations if each == organization))


class AccessLists:
    """Works access lists out from what is stored and from what the configuration binds."""

    def __init__(self, store: Store, bindings: Bindings) -> None:
        self._store, self._bindings, self._roles = store, bindings, RoleBook(store)

    async def of_user(self, user: User, issuer: str, groups: Sequence[str]) -> Standing:
        """Return how a user stands, as one of an issuer and its groups."""
        memberships = await self._memberships(user)
        organizations = tuple(map(organization_of, memberships))
        bound = self._bindings.of_user(user.spec.subject, issuer, groups)
        if bound:
            return Standing(AccessList(everywhere=await self._bound(bound)), organizations)
        inside = {
            organization_of(each): await self._inside(organization_of(each), self._members(user, each, issuer))
            for each in memberships
        }
        return Standing(AccessList(organizations={name: found for name, (_, found) in inside.items()}), organizations)

    async def of_outsider(self, subject: str, issuer: str, groups: Sequence[str]) -> Standing:
        """Return how somebody stands whom only an issuer knows."""
        bound = self._bindings.of_user(subject, issuer, groups)
        return Standing(AccessList(everywhere=await self._bound(bound)))

    async def of_account(self, account: ServiceAccount) -> Standing:
        """Return how a service account stands. One without any group has no rights at all, not even to be told so."""
        organization = organization_of(account)
        if not await is_there(self._store, Organization, organization):
            return Standing(AccessList())
        is_in_a_group, found = await self._inside(organization, [account_member(account.name)])
        access = AccessList(organizations={organization: found}) if is_in_a_group else AccessList()
        return Standing(access, (organization,))

    async def of_system(self, name: str) -> Standing:
        """Return how a service stands."""
        role = self._bindings.of_system(name)
        if role is None:
            raise Unauthenticated("service is not known")
        return Standing(AccessList(everywhere=(await self._roles.of(frozenset({role}))).everywhere))

    async def _memberships(self, user: User) -> list[OrganizationUser]:
        found = (await self._store.list(OrganizationUser, labels={USER: user.name})).items
        active = [each for each in found if each.spec.state == "active" and not each.is_marked]
        there = [each for each in active if await is_there(self._store, Organization, organization_of(each))]
        return sorted(there, key=organization_of)

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

    async def _inside(self, organization: str, members: Sequence[str]) -> tuple[bool, OrganizationAccess]:
        """Return whether a member is in any group of an organization, and what it may do there."""
        groups = await self._groups(organization, members)
        held = frozenset(role for group in groups for role in group.spec.role_ids)
        permissions = (await self._roles.of(held)).organization
        return bool(groups), OrganizationAccess(permissions, await self._projects(organization, groups))

    async def _groups(self, organization: str, members: Sequence[str]) -> list[Group]:
        found: dict[str, Group] = {}
        for member in members:
            page = await self._store.list(Group, index=("member", member))
            found |= {each.name: each for each in page.items if _is_in(each, organization) and not each.is_marked}
        return list(found.values())

    async def _projects(self, organization: str, groups: Sequence[Group]) -> dict[str, frozenset[Permission]]:
        held: dict[str, frozenset[str]] = {}
        for group in groups:
            roles = frozenset(group.spec.role_ids)
            if not (await self._roles.of(roles)).project:
                continue
            for project in (await self._store.list(Project, index=("group", group.name))).items:
                if _is_in(project, organization):
                    held[project.name] = held.get(project.name, frozenset()) | roles
        return {project: (await self._roles.of(roles)).project for project, roles in held.items()}


def _is_in(resource: Resource, organization: str) -> bool:
    return resource.metadata.labels.get(ORGANIZATION) == organization
