"""Tenants, users and groups to order, and what identity's permissions make of them.

::

    async def test_…(permissions: PermissionEnvironment) -> None:
        acme = await permissions.organization("acme")
        ...
        assert (await permissions.standing(ann)).access == …
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.tenancy import Organization, Project, ProjectSpec
from remuda.identity.kinds.users import (
    Group,
    GroupSpec,
    OrganizationUser,
    OrganizationUserSpec,
    Role,
    RoleScopes,
    RoleSpec,
    ServiceAccount,
    Subject,
    User,
    UserSpec,
    membership_id,
    user_id,
)
from remuda.identity.rbac.acl import ResolvedAccess
from remuda.identity.rbac.roles import role_id, seed_roles
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import IdentitySettings
from remuda.kernel.ids import random_id
from remuda.resources.conventions import NAME, ORGANIZATION, USER
from remuda.store.objects import Metadata, ResourceT
from remuda.store.sqlite.store import SqliteStore
from tests.kit.identity.resource_api import registry
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated


class PermissionEnvironment:
    """A store with the built-in roles, and what can be put into it."""

    def __init__(self, world: World, store: SqliteStore, settings: IdentitySettings) -> None:
        self.world, self.store, self.settings = world, store, settings
        self.permissions = Permissions(store=store, settings=settings)

    def new_id(self) -> str:
        return random_id(self.world.randomness)

    async def organization(self, name: str = "acme") -> str:
        made = await self.store.create(Organization(metadata=Metadata(name=self.new_id(), labels={NAME: name})))
        return made.name

    async def user(self, subject: str, *organizations: str, state: UserState = "active") -> User:
        """Make a user who is an active member of these organizations."""
        made = await self.store.create(
            User(metadata=Metadata(name=user_id(subject)), spec=UserSpec(subject=subject, state=state))
        )
        for organization in organizations:
            await self.membership(made, organization)
        return made

    async def membership(self, user: User, organization: str, state: UserState = "active") -> str:
        labels = {ORGANIZATION: organization, USER: user.name}
        name = membership_id(organization, user.name)
        await self.store.create(
            OrganizationUser(metadata=Metadata(name=name, labels=labels), spec=OrganizationUserSpec(state=state))
        )
        return name

    async def account(self, organization: str, name: str = "robot") -> ServiceAccount:
        labels = {ORGANIZATION: organization, NAME: name}
        return await self.store.create(ServiceAccount(metadata=Metadata(name=self.new_id(), labels=labels)))

    async def group(
        self,
        organization: str,
        *roles: str,
        users: Sequence[User] = (),
        accounts: Sequence[ServiceAccount] = (),
        subjects: Sequence[Subject] = (),
    ) -> str:
        """Make a group with roles, by their names."""
        spec = GroupSpec(
            role_ids=tuple(map(role_id, roles)),
            user_ids=tuple(membership_id(organization, user.name) for user in users),
            service_account_ids=tuple(account.name for account in accounts),
            subjects=tuple(subjects),
        )
        labels = {ORGANIZATION: organization, NAME: "group"}
        made = await self.store.create(Group(metadata=Metadata(name=self.new_id(), labels=labels), spec=spec))
        return made.name

    async def project(self, organization: str, *groups: str) -> str:
        labels = {ORGANIZATION: organization, NAME: "project"}
        made = await self.store.create(
            Project(metadata=Metadata(name=self.new_id(), labels=labels), spec=ProjectSpec(group_ids=groups))
        )
        return made.name

    async def role(self, name: str, scopes: RoleScopes, *, protected: bool = False) -> Role:
        """Make a role of an operator's own."""
        spec = RoleSpec(protected=protected, scopes=scopes)
        return await self.store.create(Role(metadata=Metadata(name=role_id(name), labels={NAME: name}), spec=spec))

    async def remove(self, kind: type[ResourceT], name: str) -> None:
        found = await self.store.get(kind, name)
        await self.store.delete(kind, name, uid=found.uid)

    async def suspend(self, user: User) -> User:
        found = await self.store.get(User, user.name)
        return await self.store.update(replace(found, spec=replace(found.spec, state="suspended")))

    async def standing(self, user: User, **more: Any) -> ResolvedAccess:
        return await self.permissions.of_user(user, **{"proof": "password", **more})


EnvironmentT = TypeVar("EnvironmentT", bound=PermissionEnvironment)


def run_permissions(
    scenario: Callable[[PermissionEnvironment], Coroutine[Any, Any, None]], *, seed: int = 5, **settings: Any
) -> None:
    """Run a scenario in simulated time; `settings` are those of identity that it wants otherwise."""
    run_environment(PermissionEnvironment, scenario, seed=seed, **settings)


def run_environment(
    make: Callable[[World, SqliteStore, IdentitySettings], EnvironmentT],
    scenario: Callable[[EnvironmentT], Coroutine[Any, Any, None]],
    *,
    seed: int,
    **settings: Any,
) -> None:
    """Run a scenario in an environment that `make` returns."""

    async def run(world: World) -> None:
        store = open_simulated(world, registry())
        try:
            await seed_roles(store)
            await scenario(make(world, store, IdentitySettings(**settings)))
        finally:
            await store.close()

    simulate(run, [seed])
