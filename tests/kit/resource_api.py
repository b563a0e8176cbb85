"""API of one resource package for tests: its routes over a real store, on the simulated machine, with any principal.

Each service has a module that configures it (`tests.kit.identity.resource_api`, `tests.kit.region.resource_api`).
Every response is checked against the routes' own document and against the reference contract.
"""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from remuda.access.principal import AccessList, OrganizationAccess, Permission, Principal
from remuda.http.api import Api
from remuda.http.authentication import RequestCredentials
from remuda.http.routes import AnyRoute, Table
from remuda.kernel.errors import Unauthenticated
from remuda.operations.kinds import OPERATION
from remuda.reconcile.kinds import DELETION_GUARD, LEASE
from remuda.store.kinds import Kind, Registry
from remuda.store.sqlite.store import SqliteStore
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

ServiceT = TypeVar("ServiceT")
ResourceApiT = TypeVar("ResourceApiT", bound="ResourceApi[Any]")

ORG = "a0000000-0000-4000-8000-000000000001"
PROJECT = "a0000000-0000-4000-8000-00000000000a"
OTHER_ORG = "b0000000-0000-4000-8000-000000000002"


def with_machinery(kinds: Iterable[Kind[Any]]) -> Registry:
    """Return a service's kinds, and those that every service needs."""
    return Registry([*kinds, OPERATION, LEASE, DELETION_GUARD])


def permission_set(text: str) -> frozenset[Permission]:
    """Return permissions from text such as `identity:groups CRUD, identity:quotas R`."""
    verbs = {"C": "create", "R": "read", "U": "update", "D": "delete"}
    entries = [entry.split() for entry in text.split(",") if entry.strip()]
    return frozenset(Permission(name, verbs[letter]) for name, letters in entries for letter in letters)  # type: ignore[arg-type]  # the letters stand for verbs


def member(subject: str, organization: str = ORG, text: str = "", **projects: str) -> Principal:
    """Return a user with permissions in an organization, and in projects by their ids (with `_` for `-`)."""
    inside = {name.replace("_", "-"): permission_set(each) for name, each in projects.items()}
    access = AccessList(
        organizations={organization: OrganizationAccess(permissions=permission_set(text), projects=inside)}
    )
    return Principal(subject=subject, type="user", access=access, organizations=(organization,))


def everywhere(subject: str, text: str) -> Principal:
    """Return a user with permissions everywhere."""
    return Principal(subject=subject, type="user", access=AccessList(everywhere=permission_set(text)))


def rejection(reply: Reply) -> tuple[int, str]:
    """Return how a request was refused."""
    assert reply.status >= 400, reply
    return reply.status, reply.json["error_description"]


@dataclass
class ByName:
    """Knows whom it was told of, by a token that is the subject."""

    known: dict[str, Principal] = field(default_factory=dict)

    def access_version(self) -> int:
        return 0

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        return credentials.token in self.known

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        if credentials.token not in self.known:
            raise Unauthenticated("token is not valid")
        return self.known[credentials.token]


class ResourceApi(Generic[ServiceT]):
    """Routes of a resource package, mounted over its service."""

    of: ClassVar[str]
    """The service behind the routes."""

    def __init__(self, world: World, store: SqliteStore, service: ServiceT, routes: Iterable[AnyRoute]) -> None:
        self.world, self.store, self.service = world, store, service
        self._asgi = ByName()
        table = _table(self.of, tuple(routes))
        ports = api_ports(store, self._asgi, clock=world.clock, randomness=world.randomness)
        self.app = Validated(Api(table, service, ports), response_contract(table))

    def ask(self, principal: Principal | None) -> Client:
        """Return the client of somebody."""
        if principal is None:
            return Client(app=self.app)
        token = principal.caller.replace("@", ".").replace(" ", "-")
        self._asgi.known[token] = principal
        return Client(app=self.app, token=token)


def _table(service: str, routes: tuple[AnyRoute, ...]) -> Table:
    """Return the table of these routes. It is made once: to write down what is held against its answers takes long."""
    made = _tables(service)
    found = next((table for table in made if table.routes == routes), None)
    if found is None:
        found = Table(service, title=service.title(), description="One resource package.", routes=routes)
        made.append(found)
    return found


@cache
def _tables(_service: str) -> list[Table]:
    """Return those that were made so far."""
    return []


def run_resource_api(
    registry: Registry,
    mounted: Callable[[World, SqliteStore], ResourceApiT],
    scenario: Callable[[ResourceApiT], Coroutine[Any, Any, None]],
    *,
    seeds: int = 1,
) -> None:
    """Run a scenario in simulated time on a store of its own."""

    async def run(world: World) -> None:
        store = open_simulated(world, registry)
        try:
            entered = mounted(world, store)
            await scenario(entered)
            entered.app.assert_documented()
        finally:
            await store.close()

    simulate(run, seeds)
