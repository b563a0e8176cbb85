"""A small API that shows everything the pipeline validates, over a real store, called in the test's own process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from remuda.access.checks import require_in_organization
from remuda.access.principal import AccessList, Permission, Principal, Verb
from remuda.http.api import Api, ApiSettings
from remuda.http.asgi import ASGIApp
from remuda.http.authentication import RequestCredentials
from remuda.http.responses import Collection, Rendered
from remuda.http.routes import AnyRoute, Call, Route, Table
from remuda.http.schema import ENCODED_TWICE, Id, ListQuery, Parameters, Wire
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.randomness import SeededRandomness
from remuda.kernel.secrets import Secret
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.clocks import SkippingClock
from tests.kit.sample_kinds import REGISTRY, Horse
from tests.kit.simulation.store import SEALER

ORGANIZATION = "a0000000-0000-4000-8000-000000000001"
HORSE = "a0000000-0000-4000-8000-0000000000aa"
HORSES = f"/api/v1/organizations/{ORGANIZATION}/horses"


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    organization: Id


class HorsePath(Parameters, frozen=True, rename={"organization": "organizationID", "horse": "horseID"}):
    organization: Id
    horse: Id


class ReferencePath(Parameters, frozen=True):
    reference: Annotated[str, msgspec.Meta(description=f"Who uses it. {ENCODED_TWICE}")]


class HorseQuery(Parameters, frozen=True):
    breed: tuple[str, ...] = ()
    age: Annotated[int, msgspec.Meta(ge=0, le=60)] | None = None
    weight: float | None = None
    tame: bool = False
    sort: Literal["age", "name"] = "name"


class Metadata(Wire, frozen=True):
    name: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", max_length=8)]
    tags: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] = ()


class Shoe(Wire, frozen=True, tag_field="kind", tag="shoe"):
    size: Annotated[int, msgspec.Meta(ge=1)]


class Boot(Wire, frozen=True, tag_field="kind", tag="boot"):
    colour: str


class HorseSpec(Wire, frozen=True):
    age: Annotated[int, msgspec.Meta(ge=0, le=60)]
    stable_id: Id | None = None
    hoof: Shoe | Boot | None = None
    password: Secret | None = None


class HorseWrite(Wire, frozen=True):
    metadata: Metadata
    spec: HorseSpec


class HorseRead(Wire, frozen=True):
    id: str
    name: str
    age: int


class BrandRead(Wire, frozen=True):
    brand: Secret


AnyCall = Call[Any, Any, Any]


@dataclass(slots=True)
class PipelineSample:
    """The service: it remembers how it was called, and does as it was told."""

    store: Store
    calls: list[AnyCall] = field(default_factory=list)
    act: Callable[[], None] = lambda: None
    is_stuck: bool = False

    async def answer(self, call: AnyCall) -> HorseRead:
        self.calls.append(call)
        self.act()
        if self.is_stuck:
            await asyncio.Event().wait()
        return HorseRead(id=HORSE, name="bella", age=7)


def permission(verb: Verb) -> Permission:
    return Permission("sample:horses", verb)


async def _get(service: PipelineSample, call: AnyCall) -> HorseRead:
    return await service.answer(call)


async def _get_rendered(service: PipelineSample, call: AnyCall) -> Rendered[HorseRead]:
    return Rendered(msgspec.json.encode(await service.answer(call)), etag='"1"', headers={"Vary": "Accept"})


async def _create(service: PipelineSample, call: AnyCall) -> HorseRead:
    require_in_organization(call.principal, permission("create"), call.path.organization)
    return await service.answer(call)


async def _list(service: PipelineSample, call: AnyCall) -> list[HorseRead]:
    return [await service.answer(call)]


async def _collect(service: PipelineSample, call: AnyCall) -> Collection[Horse, list[Any]]:
    await service.answer(call)
    return Collection(store=service.store, kind=Horse, view=render)


async def do_nothing(service: PipelineSample, call: AnyCall) -> None:
    await service.answer(call)


async def _brand(service: PipelineSample, call: AnyCall) -> BrandRead:
    await service.answer(call)
    return BrandRead(brand=Secret("sesame"))


async def _leak(service: PipelineSample, call: AnyCall) -> BrandRead:
    return await _brand(service, call)


def render(horse: Horse) -> bytes:
    return msgspec.json.encode(HorseRead(id=horse.name, name=horse.name, age=1))


def route(method: Any, path: str, name: str, handler: Any, **more: Any) -> AnyRoute:
    verbs: Mapping[str, Verb] = {"GET": "read", "POST": "create", "PUT": "update", "DELETE": "delete"}
    permissions = {"scope": "organization", "permission": permission(verbs[method])}
    return Route(
        **{
            "method": method,
            "path": path,
            "name": name,
            "summary": f"Do {name} now",
            "handler": handler,
            **permissions,
            **more,
        }
    )


def routes() -> list[AnyRoute]:
    organization = "/api/v1/organizations/{organizationID}/horses"
    one = {"path_type": HorsePath}
    read = {"response_type": HorseRead}
    return [
        route("GET", organization, "list", _list, path_type=OrganizationPath, query_type=HorseQuery,
              response_type=list[HorseRead]),
        route("POST", organization, "create", _create, path_type=OrganizationPath, body_type=HorseWrite, success=201,
              is_conditional=True, **read),
        route("GET", f"{organization}/fastest", "fastest", _get_rendered, path_type=OrganizationPath, **read),
        route("GET", f"{organization}/{{horseID}}", "get", _get, **one, **read),
        route("DELETE", f"{organization}/{{horseID}}", "delete", do_nothing, success=202, is_conditional=True, **one),
        route("PUT", "/api/v1/references/{reference}", "refer", do_nothing, path_type=ReferencePath, success=201),
        route("GET", "/api/v1/all", "collect", _collect, query_type=ListQuery, response_type=list[HorseRead]),
        route("POST", "/api/v1/brand", "brand", _brand, response_type=BrandRead, has_secret=True),
        route("POST", "/api/v1/leak", "leak", _leak, response_type=BrandRead),
        route("POST", "/notices", "publish", do_nothing, scope="public", permission=None, success=202),
        route("GET", "/public", "public", _get, scope="public", permission=None, **read),
    ]  # fmt: skip


def table() -> Table:
    return Table("sample", title="Sample", description="Horses & such.", routes=routes())


class Tokens:
    """Knows one token, and what came with it."""

    def __init__(self) -> None:
        verbs: tuple[Verb, ...] = ("create", "read")
        access = AccessList(everywhere=frozenset(permission(verb) for verb in verbs))
        self.known = {
            "good": Principal(subject="anna@example.com", type="user", access=access),
            "weak": Principal(subject="bert@example.com", type="user"),
        }
        self.verified: dict[str, Principal] = {}
        """Valid tokens that were not used lately."""
        self.seen: list[RequestCredentials] = []

    def access_version(self) -> int:
        return 0

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        return credentials.certificate is not None or credentials.token in self.known

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        self.seen.append(credentials)
        if credentials.certificate is not None:
            return Principal(subject="unikorn-compute", type="system")
        token = credentials.token or ""
        principal = self.known.get(token) or self.verified.get(token)
        if principal is None:
            raise Unauthenticated("token is invalid or has expired")
        return principal


@dataclass(frozen=True, slots=True)
class Running:
    """An API that answers."""

    api: ASGIApp
    client: Client
    service: PipelineSample
    tokens: Tokens
    store: SqliteStore
    clock: SkippingClock


@asynccontextmanager
async def running(
    directory: Path, *, settings: ApiSettings | None = None, quota: int = 1000, **more: Any
) -> AsyncIterator[Running]:
    """Run the API; `more` are ports that a test wants otherwise."""
    clock, randomness = SkippingClock(), SeededRandomness(1)
    store = open_store(directory / "sample.db", REGISTRY, SEALER)
    tokens, service = Tokens(), PipelineSample(store)
    ports = api_ports(
        store, tokens, clock=clock, randomness=randomness, quota=quota, settings=settings or ApiSettings(), **more
    )
    own = table()
    api = Validated(Api(own, service, ports), contract_of(own))
    try:
        yield Running(api, Client(app=api, token="good"), service, tokens, store, clock)
    finally:
        await store.close()
        api.assert_documented()
