"""A small API of the things that browsers and OAuth2 clients use: forms, pages, redirects, headers of their own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from remuda.access.principal import Principal
from remuda.http.api import Api, ApiSettings
from remuda.http.authentication import RequestCredentials
from remuda.http.buffer_shares import BufferShares
from remuda.http.responses import HtmlPage
from remuda.http.routes import AnyRoute, Call, Route, Table
from remuda.http.schema import Id, Parameters, Wire
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.randomness import SeededRandomness
from remuda.kernel.secrets import Secret
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.clocks import SkippingClock
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER

ORGANIZATION = "a0000000-0000-4000-8000-000000000001"
PROJECT = "a0000000-0000-4000-8000-00000000000a"
PLACE = f"/organizations/{ORGANIZATION}/projects/{PROJECT}"
HTML = "<!doctype html><title>Tack</title><p>Saddles.</p>"


class OrganizationPath(Parameters, frozen=True, rename={"organization": "organizationID"}):
    organization: Id


class ProjectPath(Parameters, frozen=True, rename={"organization": "organizationID", "project": "projectID"}):
    organization: Id
    project: Id


class LoginForm(Wire, frozen=True):
    user: Annotated[str, msgspec.Meta(pattern="^[a-z@.]+$", max_length=40)]
    password: Secret
    remember: Literal["yes", "no"] | None = None
    scope_name: tuple[Annotated[str, msgspec.Meta(min_length=2)], ...] = ()


class TokenForm(Wire, frozen=True, rename=None):
    grant_type: str
    code: str | None = None


class TokenRead(Wire, frozen=True, rename=None):
    access_token: Secret


class Seen(Wire, frozen=True):
    peer: str
    headers: dict[str, str]
    organization: str | None
    project: str | None
    key: str | None


AnyCall = Call[Any, Any, Any]


@dataclass(slots=True)
class BrowserSample:
    """The service: it remembers how it was called, and replies as it was told."""

    calls: list[AnyCall] = field(default_factory=list)
    reply: Callable[[], Any] = lambda: HtmlPage(HTML)

    async def answer(self, call: AnyCall) -> Any:
        self.calls.append(call)
        return self.reply()


async def _answer(service: BrowserSample, call: AnyCall) -> Any:
    return await service.answer(call)


async def _see(service: BrowserSample, call: AnyCall) -> Seen:
    service.calls.append(call)
    who = call.principal
    return Seen(
        peer=call.peer,
        headers=dict(call.headers),
        organization=who.organization,
        project=who.project,
        key=call.context.key,
    )


def route(method: Any, path: str, name: str, **more: Any) -> AnyRoute:
    given: dict[str, Any] = {"summary": f"Do {name}", "scope": "public", "handler": _answer}
    return Route(**given | {"method": method, "path": path, "name": name} | more)


def routes() -> list[AnyRoute]:
    known = {"scope": "authenticated", "handler": _see, "response_type": Seen}
    place, inside = "/organizations/{organizationID}", "/organizations/{organizationID}/projects/{projectID}"
    return [
        route("GET", "/login", "show_login", page=True, redirects=True, errors=(401,)),
        route("POST", "/login", "log_in", page=True, redirects=True, form=True, body_type=LoginForm, errors=(401,)),
        route("GET", "/callback", "come_back", page=True, success=302),
        route("POST", "/leave", "leave", redirects=True, success=204),
        route("POST", "/token", "get_token", oauth=True, form=True, body_type=TokenForm, response_type=TokenRead,
              has_secret=True, errors=(401,)),
        route("GET", "/headers", "headers", handler=_see, response_type=Seen,
              headers=("authorization", "cookie", "x-flavour")),
        route("GET", place, "in_organization", path_type=OrganizationPath, **known),
        route("GET", inside, "in_project", path_type=ProjectPath, **known),
        route("POST", inside, "write_in_project", path_type=ProjectPath, **known),
    ]  # fmt: skip


def table() -> Table:
    return Table("tack", title="Tack", description="Saddles.", routes=routes())


class SampleAuthenticator:
    """Lets in whoever it knows, and can be made to wait."""

    def __init__(self) -> None:
        self.known = {"good": Principal(subject="anna@example.com", type="user")}
        self.wait: Callable[[], Any] | None = None

    def access_version(self) -> int:
        return 0

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        return credentials.token in self.known

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        if self.wait is not None:
            await self.wait()
        principal = self.known.get(credentials.token or "")
        if principal is None:
            raise Unauthenticated("token is invalid or has expired")
        return principal


@dataclass(frozen=True, slots=True)
class Open:
    """The sample API, mounted."""

    client: Client
    service: BrowserSample
    authenticator: SampleAuthenticator
    store: SqliteStore
    api: Validated


@asynccontextmanager
async def opened(directory: Path, *, buffers: BufferShares | None = None, **settings: Any) -> AsyncIterator[Open]:
    store = open_store(directory / "tack.db", REGISTRY, SEALER)
    service, transport, own = BrowserSample(), SampleAuthenticator(), table()
    clock, randomness = SkippingClock(), SeededRandomness(1)
    more: dict[str, Any] = {} if buffers is None else {"buffers": buffers}
    given = ApiSettings(**settings)
    ports = api_ports(store, transport, clock=clock, randomness=randomness, settings=given, **more)
    api = Validated(Api(own, service, ports), contract_of(own))
    try:
        yield Open(Client(app=api), service, transport, store, api)
    finally:
        await store.close()
        api.assert_documented()
