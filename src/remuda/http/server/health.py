"""Health, readiness and version of a process, its front page, and the mounts of its APIs.

These routes are public and are handled before anything else: a process that is overloaded or whose store fails still
has to report it. So they are declared in a route table and documented from it, but do not pass the pipeline of the APIs
with its rate limits, audit and idempotency. The front page is not JSON and not in the table: like the documents and
unknown paths, it takes the rate limit of the client's address. The metrics have a listener of their own (`exposition`).

Alive (`/healthz`) means that the event loop runs, which the response proves. Ready (`/readyz`) means that requests
should be sent here: each check reports the current problems.

Of several APIs the one with the longest matching prefix gets the request. The path stays complete, and `root_path`
holds the prefix, as in ASGI.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from remuda.access.principal import ANONYMOUS, Context
from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.cors import Cors
from remuda.http.docs import DocsPages as Documents
from remuda.http.errors import NO_CACHE, error_response
from remuda.http.invocation import invocations
from remuda.http.merged_document import Published
from remuda.http.pages import page_response, unknown_path
from remuda.http.proxies import ForwardingProxies
from remuda.http.ratelimit import RateLimiter, anonymous
from remuda.http.request import Observation, client_of, observation_of
from remuda.http.responses import JSON, Header, HtmlPage, Response
from remuda.http.routes import AnyRoute, Call, Route, Table
from remuda.http.schema import Nothing, Wire
from remuda.kernel.errors import NotAllowed, NotFound, RemudaError, Unavailable
from remuda.store.sqlite.maintenance import Integrity
from remuda.version import ServiceDescriptor


@dataclass(frozen=True, slots=True)
class Mounted:
    """An API at its prefix."""

    prefix: str
    """Such as `/compute`; empty for an API at the root."""
    table: Table
    app: ASGIApp
    pages: Mapping[str, str] = field(default_factory=dict)
    """Entry pages for browsers: the link's text, by the path below the prefix."""


class Mounts:
    """Dispatch of each request to its API, or to `otherwise` if there is none.

    Paths in `kept` always go to `otherwise`: no API can hide the health of the process, wherever it is mounted.
    """

    def __init__(self, mounted: Iterable[Mounted], otherwise: ASGIApp, *, reserved: Collection[str] = ()) -> None:
        self._mounted = sorted(mounted, key=lambda one: len(one.prefix), reverse=True)
        self._otherwise, self._kept = otherwise, frozenset(reserved)
        prefixes = [one.prefix for one in self._mounted]
        if len(set(prefixes)) < len(prefixes):
            raise ValueError(f"two APIs have the same prefix: {prefixes}")
        if wrong := [prefix for prefix in prefixes if prefix and (prefix[0] != "/" or prefix[-1] == "/")]:
            raise ValueError(f"a prefix must begin with a slash and must not end with one: {wrong}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        one = self._find(scope["path"])
        if one is None:
            await self._otherwise(scope, receive, send)
            return
        if one.prefix:
            scope["root_path"] = scope.get("root_path", "") + one.prefix
        await one.app(scope, receive, send)

    def _find(self, path: str) -> Mounted | None:
        if path in self._kept:
            return None
        for one in self._mounted:
            if path.startswith(one.prefix) and path[len(one.prefix) :][:1] in {"/", ""}:
                return one
        return None


def _targets(mounted: Sequence[Mounted]) -> dict[str, str]:
    """Return the pages for browsers and the documentation of all APIs: the link's text by the URL."""
    pages = {f"{one.prefix}{path}": text for one in mounted for path, text in one.pages.items()}
    return pages | {f"{one.prefix}/docs": f"Documentation of {one.table.title}" for one in mounted}


FrontPage = Callable[[Sequence[tuple[str, str]]], HtmlPage]
"""Renders the front page with the problems: the component, and what is wrong with it."""


def front_page(description: ServiceDescriptor, pages: Mapping[str, str], mounted: Sequence[Mounted]) -> FrontPage:
    """Return the renderer of the front page. `pages` are those of the process: their descriptions by path."""
    template = _environment().get_template("front.html")

    def render(problems: Sequence[tuple[str, str]]) -> HtmlPage:
        title = "Remuda is not ready" if problems else "Remuda is ready"
        return HtmlPage(
            template.render(title=title, problems=problems, version=str(description), pages=pages, mounted=mounted)
        )

    return render


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("remuda.http"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


Check = Callable[[], Iterable[tuple[str, str]]]
"""Returns the problems that prevent readiness: the component, and what is wrong with it."""

_Call = Call[Nothing, Nothing, Nothing]
_CALL: _Call = Call(context=Context(principal=ANONYMOUS, operation=""), path=Nothing(), query=Nothing(), body=Nothing())
_METHODS = ("GET", "HEAD")
_SHARED_METHODS = (*_METHODS, "OPTIONS")
_DOCUMENTS = frozenset({"/openapi.json", "/docs"})


class Health(Wire, frozen=True, omit_defaults=False):
    """Response of a live process."""

    status: Annotated[str, msgspec.Meta(description="Always ok: a process that is not alive does not respond.")] = "ok"


class Readiness(Wire, frozen=True, omit_defaults=False):
    """Response of a ready process."""

    status: Annotated[str, msgspec.Meta(description="Always ready: a process that is not ready responds 503.")] = (
        "ready"
    )


class ProcessVersion(Wire, frozen=True):
    """Release of the process, and the source revision it was built from."""

    name: Annotated[str, msgspec.Meta(description="Name of the program.")]
    version: Annotated[str, msgspec.Meta(description="Release of the program.")]
    revision: Annotated[str, msgspec.Meta(description="Revision of the source that it was built from.")]


class NotReady(Unavailable):
    """Raised while requests should not be sent here; wait, or fix the problems."""

    code = "not_ready"

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("This process is not ready. Wait, or fix the problems.")
        self.problems = tuple(problems)
        """Components that are not ready, and the reasons."""


class ProcessPages:
    """Routes of the process itself, and 404 for everything else: a page for browsers, and JSON for programs."""

    def __init__(
        self,
        *,
        description: ServiceDescriptor,
        checks: Sequence[Check],
        mounted: Sequence[Mounted] = (),
        limiter: RateLimiter,
        forwarding: ForwardingProxies | None = None,
        cors: Cors | None = None,
    ) -> None:
        """Take the CORS settings of the routes in the table: no origin, unless some are named.

        `limiter` counts the requests of each address, except those to the routes in the table.
        """
        self._limiter, self._forwarding = limiter, forwarding or ForwardingProxies()
        self._cors = cors or Cors()
        self.version = ProcessVersion(name=description.name, version=description.version, revision=description.revision)
        self._checks = checks
        self._targets = _targets(mounted)
        self._front = front_page(description, {**PAGES, **DOCS}, mounted)
        self._routes = {route.path: route for route in PROCESS.routes}
        self._invocations = invocations(PROCESS, self)
        self._pages: Mapping[str, Callable[[], Awaitable[Response]]] = {"/": self._show_front}
        programs = (each for each in mounted if not all(route.page for route in each.table.routes))
        apis = (Published("", PROCESS), *(Published(each.prefix, each.table) for each in programs))
        self._documents = Documents(PROCESS, description.version, merged=apis)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        seen, headers = observation_of(scope), dict(scope["headers"])
        more: tuple[Header, ...] = ()
        if scope["path"] in self._routes or scope["path"] in _DOCUMENTS:
            more = self._cors.headers(headers.get(b"origin"))
        try:
            if scope["path"] not in self._routes:
                more += self._limiter.take(anonymous(client_of(seen.peer, headers, self._forwarding)))
            response = await self._respond(scope, headers, seen)
        except RemudaError as error:
            seen.error_code = error.code
            response = error_response(error, trace_id=seen.trace_id)
        await response.send(send, more)

    def problems(self) -> list[tuple[str, str]]:
        return [problem for check in self._checks for problem in check()]

    async def _respond(self, scope: Scope, headers: Mapping[bytes, bytes], seen: Observation) -> Response:
        path: str = scope["path"]
        if page := self._pages.get(path):
            if scope["method"] not in _METHODS:
                raise NotAllowed(_METHODS)
            return await page()
        route = self._routes.get(path)
        if route is None and path not in _DOCUMENTS:
            seen.error_code = NotFound.code
            return unknown_path(path, headers, self._targets, trace_id=seen.trace_id)
        if scope["method"] == "OPTIONS":
            return self._cors.preflight(headers.get(b"access-control-request-method"), _SHARED_METHODS)
        if scope["method"] not in _METHODS:
            raise NotAllowed(_SHARED_METHODS)
        if route is None:
            return self._documents.response(path, headers)
        seen.service, seen.route = PROCESS.service, route.name
        value = await self._invocations[route.name](_CALL)
        return Response(HTTPStatus.OK, msgspec.json.encode(value), (JSON, NO_CACHE))

    async def _show_front(self) -> Response:
        return page_response(self._front(self.problems()))


async def _get_health(_pages: ProcessPages, _call: _Call) -> Health:
    return Health()


async def _get_readiness(pages: ProcessPages, _call: _Call) -> Readiness:
    if problems := pages.problems():
        raise NotReady(problems)
    return Readiness()


async def _get_version(pages: ProcessPages, _call: _Call) -> ProcessVersion:
    return pages.version


_ROUTES: tuple[AnyRoute, ...] = (
    Route(
        method="GET",
        path="/healthz",
        name="get_health",
        summary="Whether the process is alive",
        scope="public",
        handler=_get_health,
        response_type=Health,
        tag="process",
    ),
    Route(
        method="GET",
        path="/readyz",
        name="get_readiness",
        summary="Whether the process is ready, and the problems if not",
        scope="public",
        handler=_get_readiness,
        response_type=Readiness,
        errors=(503,),
        tag="process",
    ),
    Route(
        method="GET",
        path="/api/version",
        name="get_version",
        summary="The release of the process",
        scope="public",
        handler=_get_version,
        response_type=ProcessVersion,
        tag="process",
    ),
)

PROCESS = Table("process", title="Process", description="Health, readiness and version of a process.", routes=_ROUTES)

PAGES: Mapping[str, str] = {route.path: route.summary for route in _ROUTES}
"""Pages of the process. No API can use these paths."""

DOCS: Mapping[str, str] = {"/docs": "Documentation of these routes; every API has its own"}


def store_check(integrity: Callable[[], Integrity], failing: Callable[[], Mapping[str, str]]) -> Check:
    """Return the readiness check of an embedded store.

    A store whose integrity check is still running after an unclean stop is used meanwhile, as its contract allows: only
    damage that was found counts.
    """

    def check() -> Iterable[tuple[str, str]]:
        if integrity() == "damaged":
            yield "store", "The store is damaged. Keep a copy of it and restore a backup."
        for task in failing():
            yield "store", f"The background task {task} failed and will be retried. The log has the cause."

    return check
