"""Organizations as real ones are: users in groups, groups in projects. All of it as the service itself would store it.

Everybody is in two groups, the one of all and one of two halves, and each half has the permissions in half of the
projects.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bench.kinds import name_of
from remuda.access.principal import Principal
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import Group, GroupSpec, OrganizationUser, User, membership_id, user_id
from remuda.identity.rbac.roles import role_id
from remuda.identity.tenancy.rules import new_organization, new_project
from remuda.identity.tenancy.schema import OrganizationSpecWire, OrganizationWrite, ProjectSpecWire, ProjectWrite
from remuda.identity.users.groups import new_group
from remuda.identity.users.rules import new_membership, new_user
from remuda.identity.users.schema import GroupSpecWire, GroupWrite
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.objects import ResourceT

__all__ = ["Tenant", "settle"]

_BY = Principal(subject="bench", type="system")
_ROLES = ("auditor", "user", "reader")
_APART = 1_000_000
_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Tenant:
    """One organization, by number. Everything in it follows from that."""

    number: int
    members: int = 100
    projects: int = 4

    @property
    def id(self) -> str:
        """The organization."""
        return name_of(self.number * _APART)

    @property
    def subjects(self) -> list[str]:
        """The addresses of all its users."""
        return [f"person-{self.number}-{each}@example.com" for each in range(self.members)]

    @property
    def groups(self) -> list[str]:
        """All, who are auditors, then the users and the readers."""
        return [name_of(self.number * _APART + 1 + each) for each in range(len(_ROLES))]

    def project(self, number: int) -> str:
        """Return the id of a project."""
        return name_of(self.number * _APART + 100 + number)

    def organization(self) -> Organization:
        """Return the organization as it is made."""
        wanted = OrganizationWrite(metadata=_named("tenant"), spec=OrganizationSpecWire(organization_type="adhoc"))
        return new_organization(self.id, wanted, _BY)

    def users(self) -> Iterator[User]:
        """Return its users."""
        return (new_user(subject, (), _BY) for subject in self.subjects)

    def memberships(self, home: Organization) -> Iterator[OrganizationUser]:
        """Return that they are members."""
        return (new_membership(home, subject, "active", _BY, invited=False) for subject in self.subjects)

    def made_groups(self, home: Organization) -> Iterator[Group]:
        """Return its groups."""
        members = [membership_id(self.id, user_id(subject)) for subject in self.subjects]
        for name, role, inside in zip(self.groups, _ROLES, (members, members[::2], members[1::2]), strict=True):
            spec = GroupSpec(role_ids=(role_id(role),), user_ids=tuple(inside))
            yield new_group(name, home, GroupWrite(metadata=_named(role), spec=_NOBODY), spec, _BY)

    def made_projects(self, home: Organization) -> Iterator[Project]:
        """Return its projects."""
        for each in range(self.projects):
            spec = ProjectSpecWire(group_ids=(self.groups[1 + each % 2],))
            yield new_project(self.project(each), home, ProjectWrite(metadata=_named("project"), spec=spec), _BY)


_NOBODY = GroupSpecWire(role_ids=(), service_account_ids=())


def _named(name: str) -> MetadataWrite:
    return MetadataWrite(name=name)


async def settle(store: Store, tenants: Sequence[Tenant]) -> None:
    """Store these organizations and everything in them."""
    homes = await _create(store, (tenant.organization() for tenant in tenants))
    await _create(store, (user for tenant in tenants for user in tenant.users()))
    await _create(store, _inside(zip(tenants, homes, strict=True)))


async def _create(store: Store, wanted: Iterable[ResourceT]) -> list[ResourceT]:
    """Create many at once, since all that wait share one commit."""
    waiting, made = iter(wanted), list[ResourceT]()
    while some := list(islice(waiting, _AT_ONCE)):
        made += await asyncio.gather(*map(store.create, some))
    return made


def _inside(homes: Iterable[tuple[Tenant, Organization]]) -> Iterator[OrganizationUser | Group | Project]:
    for tenant, home in homes:
        yield from tenant.memberships(home)
        yield from tenant.made_groups(home)
        yield from tenant.made_projects(home)
