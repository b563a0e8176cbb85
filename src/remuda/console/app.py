"""Web console of a process: it handles `/` and the paths below `/console`, and passes the rest to the process pages.

It finds the user's session by the cookie and watches the instances with the permissions of that user. It handles GET
only and changes nothing. Requests from other sites are rejected by `Sec-Fetch-Site`. A stream ends with its session.
User input is text and never markup: the template escapes it, and the script sets text only.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from remuda.access.principal import Principal
from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.errors import NO_CACHE, error_response
from remuda.http.pages import page_response
from remuda.http.proxies import ForwardingProxies
from remuda.http.ratelimit import RateLimiter, anonymous
from remuda.http.request import Observation, client_of, host_of, observation_of
from remuda.http.responses import JSON, Collection, HtmlPage, Response, wire_headers
from remuda.http.server.health import DOCS, PAGES, Mounted, ProcessPages
from remuda.http.static_content import StaticContent
from remuda.http.watch import WatchPorts, watch_response
from remuda.kernel.errors import Forbidden, NotAllowed, RemudaError, Unauthenticated, Unavailable
from remuda.version import ServiceDescriptor

STREAM = "/console/instances"

_SCRIPT = "console.js"
_SCRIPT_PATH = f"/console/{_SCRIPT}"


class ConsolePages:
    """Renderer of the page."""

    def __init__(self, *, description: ServiceDescriptor, mounted: Sequence[Mounted], account: str) -> None:
        """Take the URL of the login page as `account`."""
        self._template = _environment().get_template("console.html")
        self._about = {"version": str(description), "mounted": mounted, "account": account}
        self._about |= {"script": _SCRIPT_PATH, "stream": STREAM}
        own = ("page.css", "console.css")
        styles = " ".join(f"'sha256-{_digest(_environment().get_template(name).render())}'" for name in own)
        self._policy = (
            f"default-src 'none'; script-src 'self'; connect-src 'self'; style-src {styles}; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )

    def front(self, *, known: str, problems: Sequence[tuple[str, str]], pages: Mapping[str, str]) -> HtmlPage:
        """Return the page for a logged-in user, or the start page (`known` is empty then)."""
        readiness = "Remuda is not ready" if problems else "Remuda is ready"
        title = "Your instances" if known else readiness
        html = self._template.render(title=title, known=known, problems=problems, pages=pages, **self._about)
        return HtmlPage(html, headers={"Content-Security-Policy": self._policy})


@cache
def script() -> StaticContent:
    """Return the script. The browser revalidates it each time, so that it never runs one of an earlier release."""
    content = files("remuda.console").joinpath("static", _SCRIPT).read_bytes()
    headers = {
        "Content-Type": "text/javascript; charset=utf-8",
        "Cache-Control": "no-cache",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return StaticContent(content, tuple(wire_headers(headers)))


def _digest(style: str) -> str:
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    own, shared = PackageLoader("remuda.console"), PackageLoader("remuda.http")
    return Environment(
        loader=ChoiceLoader([own, shared]),
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )


_METHODS = ("GET", "HEAD")
_SAME_SITE = {b"same-origin", b"none"}
"""Values for a request that one of our pages or the user began."""

Headers = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePorts:
    """Dependencies of the console."""

    pages: ConsolePages
    viewer: Callable[[str], Awaitable[Principal]]
    """Returns the user whose browser sent these cookies, or raises Unauthenticated."""
    instances: Callable[[Principal], Awaitable[Collection[Any, Any]]]
    """Returns the instances that a user may see."""
    watch: WatchPorts
    limiter: RateLimiter
    forwarding: ForwardingProxies = field(default_factory=ForwardingProxies)
    """Proxies whose headers about client addresses count."""


class Console:
    """ASGI app of the console, in front of the process pages."""

    def __init__(self, ports: ConsolePorts, otherwise: ProcessPages) -> None:
        self._ports, self._otherwise = ports, otherwise
        self._routes: Mapping[str, Callable[[Headers, Observation], Awaitable[Response]]] = {
            "/": self._front,
            "/console/console.js": self._script,
            "/console/session": self._session,
            STREAM: self._stream,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = self._routes.get(scope["path"])
        if handle is None:
            otherwise: ASGIApp = self._otherwise
            await otherwise(scope, receive, send)
            return
        seen = observation_of(scope)
        try:
            if scope["method"] not in _METHODS:
                raise NotAllowed(_METHODS)
            response = await handle(dict(scope["headers"]), seen)
        except RemudaError as error:
            seen.error_code = error.code
            response = error_response(error, trace_id=seen.trace_id)
        if scope["method"] == "HEAD":
            await response.send_head(send)
        else:
            await response.send(send, receive=receive)

    async def _front(self, headers: Headers, seen: Observation) -> Response:
        try:
            known = (await self._viewer(headers, seen)).actor_name
        except (Unauthenticated, Unavailable):  # also while the store fails, which the page reports
            known = ""
        problems = self._otherwise.problems()
        return page_response(self._ports.pages.front(known=known, problems=problems, pages={**PAGES, **DOCS}))

    async def _script(self, headers: Headers, seen: Observation) -> Response:
        self._count_anonymous(headers, seen)
        return script().response(headers)

    async def _session(self, headers: Headers, seen: Observation) -> Response:
        """Return the user's name: a script cannot read why its stream was rejected."""
        viewer = await self._same_site_viewer(headers, seen)
        return Response(HTTPStatus.OK, msgspec.json.encode({"subject": viewer.actor_name}), (JSON, NO_CACHE))

    async def _stream(self, headers: Headers, seen: Observation) -> Response:
        principal = await self._same_site_viewer(headers, seen)
        last = headers.get(b"last-event-id", b"").decode("latin-1")
        response = await watch_response(
            await self._ports.instances(principal),
            last_event_id=last or None,
            principal=principal,
            host=host_of(seen.peer, headers, self._ports.forwarding),
            renew=lambda: self._ports.viewer(_cookies(headers)),
            ports=self._ports.watch,
        )
        return response.with_headers(NO_CACHE)

    async def _same_site_viewer(self, headers: Headers, seen: Observation) -> Principal:
        if headers.get(b"sec-fetch-site", b"same-origin") not in _SAME_SITE:
            raise Forbidden("this path is for pages of this site only: use the API with a token")
        return await self._viewer(headers, seen)

    async def _viewer(self, headers: Headers, seen: Observation) -> Principal:
        try:
            principal = await self._ports.viewer(_cookies(headers))
        except RemudaError:
            self._count_anonymous(headers, seen)
            raise
        seen.principal = principal.actor_name
        self._ports.limiter.take(principal.actor_name)
        return principal

    def _count_anonymous(self, headers: Headers, seen: Observation) -> None:
        self._ports.limiter.take(anonymous(client_of(seen.peer, headers, self._ports.forwarding)))


def _cookies(headers: Headers) -> str:
    return headers.get(b"cookie", b"").decode("latin-1")
