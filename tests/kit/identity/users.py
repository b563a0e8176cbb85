"""User, group and service account APIs for tests, with real permissions, two organizations and the built-in roles."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from remuda.access.principal import AccessList, OrganizationAccess, Principal
from remuda.identity.app import user_services
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization, Project, ProjectSpec
from remuda.identity.kinds.users import Group, GroupSpec, Role
from remuda.identity.rbac.roles import permissions_of, role_id, seed_roles
from remuda.identity.rbac.service import Permissions
from remuda.identity.references import OrganizationReferences
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.identity.users.controller import controllers
from remuda.identity.users.groups import Groups
from remuda.identity.users.memberships import Memberships
from remuda.identity.users.routes import ROUTES
from remuda.identity.users.sagas import SAGAS, UserPorts
from remuda.identity.users.service import Accounts, Users
from remuda.operations.saga import BoundSaga
from remuda.operations.service import Operations
from remuda.reconcile.ports import ReconcilePorts
from remuda.resources.conventions import NAME
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.kit.asgi.contract import Reply
from tests.kit.identity.resource_api import ORG, OTHER_ORG, PROJECT, IdentityApi, everywhere, member, run_identity_api
from tests.kit.simulation.runner import World

SETTINGS = IdentitySettings(issuer="https://identity.example.com")
BASE = f"/api/v1/organizations/{ORG}"
USERS, ACCOUNTS, GROUPS = f"{BASE}/users", f"{BASE}/serviceaccounts", f"{BASE}/groups"
NOWHERE = "f0000000-0000-4000-8000-00000000000f"
ADMINISTRATOR, READER = role_id("administrator"), role_id("reader")

_USER_ENDPOINTS = "identity:users CRUD, identity:serviceaccounts CRUD, identity:groups CRUD"
CLERK = member("clerk@example.com", text=_USER_ENDPOINTS)
"""May change users, and give no role."""
GLOBAL = everywhere("root@example.com", _USER_ENDPOINTS)


@dataclass(frozen=True)
class UserServices:
    """The services of users, service accounts and groups."""

    users: Users
    accounts: Accounts
    groups: Groups


def tokens_of(world: World, store: Store) -> Tokens:
    """Return the real thing."""
    keys = SigningKeys(store=store, clock=world.clock, randomness=world.randomness, settings=SETTINGS)
    return Tokens(store=store, clock=world.clock, randomness=world.randomness, settings=SETTINGS, keys=keys)


def ports_of(world: World, store: Store) -> UserPorts:
    """Return what the sagas work on."""
    return UserPorts(
        store=store,
        clock=world.clock,
        tokens=tokens_of(world, store),
        memberships=Memberships(OrganizationReferences(store)),
    )


def service(world: World, store: Store) -> UserServices:
    """Return the services over their ports."""
    ports = ports_of(world, store)
    operations = Operations(
        store, [BoundSaga(saga, ports) for saga in SAGAS], clock=world.clock, randomness=world.randomness
    )
    grants = Permissions(store=store, settings=SETTINGS)
    return UserServices(*user_services(ports, operations=operations, grants=grants, settings=SETTINGS))


async def administrator(store: Store) -> Principal:
    """Return somebody who has everything in the organization that the role of that name gives."""
    role = await store.get(Role, ADMINISTRATOR)
    inside = OrganizationAccess(permissions=permissions_of(role.spec).organization)
    return replace(member("admin@example.com"), access=AccessList(organizations={ORG: inside}))


def account(name: str, organization: str = ORG) -> Principal:
    """Return a service account without permissions."""
    return Principal(subject=name, type="service", organizations=(organization,))


async def furnish(store: Store) -> None:
    """Make two organizations, a project and the roles."""
    await seed_roles(store)
    for name in (ORG, OTHER_ORG):
        await store.create(Organization(metadata=Metadata(name=name, labels={NAME: "acme"})))
    await store.create(
        Project(
            metadata=Metadata(
                name=PROJECT,
                labels={NAME: "project", ORGANIZATION_LABEL: ORG},
                owner_references=(ORGANIZATION.owner(await store.get(Organization, ORG)),),
            ),
            spec=ProjectSpec(),
        )
    )


async def make_group(store: Store, name: str, *roles: str, organization: str = ORG) -> str:
    """Make a group behind everybody's back, and return its id."""
    owner = ORGANIZATION.owner(await store.get(Organization, organization))
    where = {NAME: name, ORGANIZATION_LABEL: organization}
    ids = [each.name for each in (await store.list(Group)).items]
    metadata = Metadata(name=f"c0000000-0000-4000-8000-{len(ids):012d}", labels=where, owner_references=(owner,))
    return (await store.create(Group(metadata=metadata, spec=GroupSpec(role_ids=roles)))).name


def user(subject: str, *groups: str, state: str = "active") -> dict[str, Any]:
    """Return a request about a user."""
    return {"spec": {"subject": subject, "state": state, "groupIDs": groups}}


def robot(*groups: str, name: str = "robot") -> dict[str, Any]:
    """Return a request about a service account."""
    return {"metadata": {"name": name}, "spec": {"groupIDs": groups}}


def crew(*roles: str, accounts: tuple[str, ...] = (), **members: Any) -> dict[str, Any]:
    """Return a request about a group."""
    return {"metadata": {"name": "crew"}, "spec": {"roleIDs": roles, "serviceAccountIDs": accounts, **members}}


def told(reply: Reply, status: int) -> Any:
    """Return what an answer says, if it is this one."""
    assert reply.status == status, (reply.status, reply.body)
    return reply.json if reply.body else None


def rejection(reply: Reply, status: int) -> str:
    """Return why something was refused."""
    text = told(reply, status)["error_description"]
    assert isinstance(text, str)
    return text


def run_users(
    scenario: Callable[[IdentityApi[UserServices]], Coroutine[Any, Any, None]],
    make: Callable[[World, Store], UserServices] = service,
    *,
    seeds: int = 1,
) -> None:
    """Run a scenario over two organizations with the built-in roles, under several seeds if it is concurrent."""

    async def run(api: IdentityApi[UserServices]) -> None:
        await furnish(api.store)
        await scenario(api)

    run_identity_api(make, ROUTES, run, seeds=seeds)


@asynccontextmanager
async def tidying(api: IdentityApi[UserServices]) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Have the controllers at work, and return what waits for them."""
    world = api.world
    ports = ReconcilePorts(store=api.store, clock=world.clock, randomness=world.randomness, log=api.store)
    started = controllers(ports, api.service.accounts.tokens)
    for driver in started:
        await driver.start()

    async def tidied() -> None:
        for _ in range(200):
            await world.clock.sleep(0.05)
            if all(driver.is_idle for driver in started):
                return
        raise AssertionError("there is no end to it")

    try:
        yield tidied
    finally:
        for driver in started:
            await driver.stop()
