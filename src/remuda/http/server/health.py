"""What a process says about itself: that it lives, whether it is ready, which release it is, what it counts.

These routes are public and are answered before anything else is asked: a process that is too busy, or whose store
fails, still has to say so. So they are declared in a table like every route, and documented from it, but not sent
through the pipeline of the APIs with its rate limits, audit and idempotency. What is no JSON is not in the table: the
metrics, in the format of Prometheus, and the front page.

Alive (`/healthz`) means that the loop turns, which answering proves. Ready (`/readyz`) means that requests are worth
sending here: each check is asked at that moment for what speaks against it.

Several APIs in one process, each below a prefix of its own.

The longest prefix that fits takes the request. The path stays whole, and `root_path` says how much of it belongs to the
mount, as ASGI has it.

The front page of a process: whether it is ready, what runs here, and where to look.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from remuda.access.principal import ANONYMOUS, Context
from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.cors import Cors
from remuda.http.docs import Pages as Documents
from remuda.http.errors import NO_CACHE, answer_to
from remuda.http.invocation import invocations
from remuda.http.pages import answer_page
from remuda.http.request import Observation, observation_of
from remuda.http.responses import JSON, Answer, Header, Page
from remuda.http.routes import AnyRoute, Call, Nothing, Route, Table, Wire
from remuda.kernel.errors import NotAllowed, NotFound, RemudaError, Unavailable
from remuda.store.sqlite.maintenance import Integrity
from remuda.version import ServiceDescriptor


@dataclass(frozen=True, slots=True)
class Mounted:
    """An API at its place."""

    prefix: str
    """Such as `/compute`; empty for one that has all the room."""
    table: Table
    app: ASGIApp
    pages: Mapping[str, str] = field(default_factory=dict)
    """Where people begin with a browser: what the link says, by the path behind the prefix."""


class Mounts:
    """Sends each request to the API it belongs to, and to `otherwise` if there is none.

    The paths in `kept` always go there: no API, wherever it is mounted, can hide whether the process lives.
    """

    def __init__(self, mounted: Iterable[Mounted], otherwise: ASGIApp, *, kept: Collection[str] = ()) -> None:
        self._mounted = sorted(mounted, key=lambda one: len(one.prefix), reverse=True)
        self._otherwise, self._kept = otherwise, frozenset(kept)
        prefixes = [one.prefix for one in self._mounted]
        if len(set(prefixes)) < len(prefixes):
            raise ValueError(f"two APIs are mounted at one prefix: {prefixes}")
        if wrong := [prefix for prefix in prefixes if prefix and (prefix[0] != "/" or prefix[-1] == "/")]:
            raise ValueError(f"a prefix begins with a slash and does not end with one: {wrong}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        one = self._find(scope["path"])
        if one is None:
            await self._otherwise(scope, receive, send)
            return
        if one.prefix:
            scope = {**scope, "root_path": scope.get("root_path", "") + one.prefix}
        await one.app(scope, receive, send)

    def _find(self, path: str) -> Mounted | None:
        if path in self._kept:
            return None
        for one in self._mounted:
            if path.startswith(one.prefix) and path[len(one.prefix) :][:1] in {"/", ""}:
                return one
        return None


FrontPage = Callable[[Sequence[tuple[str, str]]], Page]
"""Renders the page, with what speaks against being ready: which part it is, and what is wrong with it."""


def front_page(description: ServiceDescriptor, pages: Mapping[str, str], mounted: Sequence[Mounted]) -> FrontPage:
    """Return what renders the page. `pages` are those of the process: what each is about, by its path."""
    environment = Environment(
        loader=PackageLoader("remuda.http"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("front.html")

    def render(problems: Sequence[tuple[str, str]]) -> Page:
        title = "Remuda is not ready" if problems else "Remuda is ready"
        return Page(
            template.render(title=title, problems=problems, version=str(description), pages=pages, mounted=mounted)
        )

    return render


Check = Callable[[], Iterable[tuple[str, str]]]
"""Returns each thing that speaks against being ready: which part it is, and what is wrong with it."""

_Asked = Call[Nothing, Nothing, Nothing]
_ASKED: _Asked = Call(
    context=Context(principal=ANONYMOUS, operation=""), path=Nothing(), query=Nothing(), body=Nothing()
)
_METHODS = ("GET", "HEAD")
_SHARED_METHODS = (*_METHODS, "OPTIONS")
_DOCUMENTS = frozenset({"/openapi.json", "/docs"})
_METRICS: Header = (b"content-type", CONTENT_TYPE_LATEST.encode())


class Health(Wire, frozen=True, omit_defaults=False):
    """That the process lives."""

    status: str = "ok"


class Readiness(Wire, frozen=True, omit_defaults=False):
    """That requests are worth sending here."""

    status: str = "ready"


class Version(Wire, frozen=True):
    """Which release this is, and from which source it was built."""

    name: str
    version: str
    revision: str


class NotReady(Unavailable):
    """Raised while something speaks against sending requests here; wait, or mend what it names."""

    code = "not_ready"

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("This process is not ready: wait, or mend what is named.")
        self.problems = tuple(problems)
        """Which part is not ready, and why."""


class ProcessPages:
    """Answers what no API answers: the routes of the process itself, and 404."""

    def __init__(
        self,
        *,
        description: ServiceDescriptor,
        checks: Sequence[Check],
        registry: CollectorRegistry,
        mounted: Sequence[Mounted] = (),
        cors: Cors | None = None,
    ) -> None:
        """Take which pages of other origins may read what is in the table: any, unless some are named."""
        self._cors = cors or Cors()
        self.version = Version(name=description.name, version=description.version, revision=description.revision)
        self._checks, self._registry = checks, registry
        self._front = front_page(description, {**PAGES, **DOCS}, mounted)
        self._routes = {route.path: route for route in PROCESS.routes}
        self._invocations = invocations(PROCESS, self)
        self._pages: Mapping[str, Callable[[], Awaitable[Answer]]] = {
            "/": self._show_front,
            "/metrics": self._show_metrics,
        }
        self._documents = Documents(PROCESS, description.version)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer."""
        seen, headers = observation_of(scope), dict(scope["headers"])
        is_shared = scope["path"] in self._routes or scope["path"] in _DOCUMENTS
        try:
            answer = await self._answer(scope, headers, seen)
        except RemudaError as error:
            seen.error_code = error.code
            answer = answer_to(error, trace_id=seen.trace_id)
        await answer.send(send, self._cors.headers(headers.get(b"origin")) if is_shared else ())

    def problems(self) -> list[tuple[str, str]]:
        """Return everything that speaks against being ready."""
        return [problem for check in self._checks for problem in check()]

    async def _answer(self, scope: Scope, headers: Mapping[bytes, bytes], seen: Observation) -> Answer:
        path: str = scope["path"]
        if page := self._pages.get(path):
            if scope["method"] not in _METHODS:
                raise NotAllowed(_METHODS)
            return await page()
        route = self._routes.get(path)
        if route is None and path not in _DOCUMENTS:
            raise NotFound("path", path)
        if scope["method"] == "OPTIONS":
            return self._cors.preflight(headers.get(b"access-control-request-method"), _SHARED_METHODS)
        if scope["method"] not in _METHODS:
            raise NotAllowed(_SHARED_METHODS)
        if route is None:
            return self._documents.answer(path)
        seen.service, seen.route = PROCESS.service, route.name
        value = await self._invocations[route.name](_ASKED)
        return Answer(HTTPStatus.OK, msgspec.json.encode(value), (JSON, NO_CACHE))

    async def _show_front(self) -> Answer:
        return answer_page(self._front(self.problems()))

    async def _show_metrics(self) -> Answer:
        text = await asyncio.to_thread(generate_latest, self._registry)  # with many routes it would hold the loop
        return Answer(HTTPStatus.OK, text, (_METRICS, NO_CACHE))


async def _get_health(_pages: ProcessPages, _asked: _Asked) -> Health:
    return Health()


async def _get_readiness(pages: ProcessPages, _asked: _Asked) -> Readiness:
    if problems := pages.problems():
        raise NotReady(problems)
    return Readiness()


async def _get_version(pages: ProcessPages, _asked: _Asked) -> Version:
    return pages.version


_ROUTES: tuple[AnyRoute, ...] = (
    Route(
        method="GET",
        path="/healthz",
        name="get_health",
        summary="Whether the process lives",
        scope="public",
        handler=_get_health,
        answer_type=Health,
        tag="process",
    ),
    Route(
        method="GET",
        path="/readyz",
        name="get_readiness",
        summary="Whether the process is ready, or what speaks against it",
        scope="public",
        handler=_get_readiness,
        answer_type=Readiness,
        errors=(503,),
        tag="process",
    ),
    Route(
        method="GET",
        path="/api/version",
        name="get_version",
        summary="Which release this is",
        scope="public",
        handler=_get_version,
        answer_type=Version,
        tag="process",
    ),
)

PROCESS = Table("process", title="Process", description="What a process says about itself.", routes=_ROUTES)
"""The routes of the process itself."""

PAGES: Mapping[str, str] = {
    **{route.path: route.summary for route in _ROUTES},
    "/metrics": "What is counted, for Prometheus",
}
"""Where to look, and why. No API can take these paths for itself."""

DOCS: Mapping[str, str] = {"/docs": "How to ask for these; every API has such a page of its own"}
"""Where it is told how to ask."""


def store_check(integrity: Callable[[], Integrity], failing: Callable[[], Mapping[str, str]]) -> Check:
    """Return the check of an embedded store.

    A store that is still being looked through after an unclean stop is used meanwhile, as its contract allows: only
    damage that was found speaks against it.
    """

    def check() -> Iterable[tuple[str, str]]:
        if integrity() == "damaged":
            yield "store", "It is damaged: keep a copy of it and restore a backup."
        for duty in failing():
            yield "store", f"Its {duty} failed and will be tried again: the log says why."

    return check
