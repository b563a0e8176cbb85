"""The console of a process: it stands before the pages of the process, and takes `/` and what is below `/console`.

A browser has a cookie and no token, so the console asks for whom it is, and follows the instances in that one's name on
the server's side. It answers GET only and changes nothing. A request that another site began is refused: browsers do
not send it the cookie, and say where it comes from (`Sec-Fetch-Site`). A stream ends with the login that it is for.

The page, and what it loads: a script and styles of our own, and nothing else.

What somebody else wrote, such as the name of an instance, is text in it and never markup: the template escapes it, and
the script sets text only.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from remuda.access.principal import Principal
from remuda.http.asgi import ASGIApp, Receive, Scope, Send
from remuda.http.errors import NO_CACHE, answer_to
from remuda.http.pages import answer_page
from remuda.http.ratelimit import RateLimiter
from remuda.http.request import Observation, observation_of
from remuda.http.responses import JSON, Answer, Collection, Page, wire_headers
from remuda.http.server.health import DOCS, PAGES, Mounted, ProcessPages
from remuda.http.watch import WatchPorts, answer_watch
from remuda.kernel.errors import Forbidden, NotAllowed, RemudaError, Unauthenticated, Unavailable
from remuda.version import ServiceDescriptor

STREAM = "/console/instances"
"""Where the script follows the instances."""

_SCRIPT = "console.js"
_PLACE = f"/console/{_SCRIPT}"


class ConsolePages:
    """Renders the page."""

    def __init__(self, *, description: ServiceDescriptor, mounted: Sequence[Mounted], account: str) -> None:
        """Take where somebody logs in and out as `account`."""
        self._template = _environment().get_template("console.html")
        self._about = {"version": str(description), "mounted": mounted, "account": account}
        self._about |= {"script": _PLACE, "stream": STREAM}
        own = ("page.css", "console.css")
        styles = " ".join(f"'sha256-{_digest(_environment().get_template(name).render())}'" for name in own)
        self._policy = (
            f"default-src 'none'; script-src 'self'; connect-src 'self'; style-src {styles}; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )

    def front(self, *, known: str, problems: Sequence[tuple[str, str]], pages: Mapping[str, str]) -> Page:
        """Show the page to whoever is logged in, or to somebody who is not yet (`known` is empty then)."""
        standing = "Remuda is not ready" if problems else "Remuda is ready"
        title = "Your instances" if known else standing
        html = self._template.render(title=title, known=known, problems=problems, pages=pages, **self._about)
        return Page(html, headers={"Content-Security-Policy": self._policy})


def script() -> Answer:
    """Return the script. A browser asks for it each time, so that it never has one of an earlier release."""
    return _script()


@cache
def _script() -> Answer:
    content = files("remuda.console").joinpath("static", _SCRIPT).read_bytes()
    headers = {
        "Content-Type": "text/javascript; charset=utf-8",
        "Cache-Control": "no-cache",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return Answer(200, content, tuple(wire_headers(headers)))


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
_HERE = {b"same-origin", b"none"}
"""What a browser says of a request that a page of ours began, or its user."""

Headers = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePorts:
    """What the console is given to work with."""

    pages: ConsolePages
    viewer: Callable[[str], Awaitable[Principal]]
    """Returns who is logged in in the browser that sent these cookies, or raises Unauthenticated."""
    instances: Callable[[Principal], Awaitable[Collection[Any, Any]]]
    """Returns the instances that somebody may see."""
    watch: WatchPorts
    limiter: RateLimiter


class Console:
    """Answers browsers, and leaves the rest to the pages of the process."""

    def __init__(self, ports: ConsolePorts, otherwise: ProcessPages) -> None:
        self._ports, self._otherwise = ports, otherwise
        self._answers: Mapping[str, Callable[[Headers, Observation], Awaitable[Answer]]] = {
            "/": self._front,
            "/console/console.js": self._script,
            "/console/session": self._session,
            STREAM: self._stream,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        answers = self._answers.get(scope["path"])
        if answers is None:
            otherwise: ASGIApp = self._otherwise
            await otherwise(scope, receive, send)
            return
        seen = observation_of(scope)
        try:
            if scope["method"] not in _METHODS:
                raise NotAllowed(_METHODS)
            answer = await answers(dict(scope["headers"]), seen)
        except RemudaError as error:
            seen.error_code = error.code
            answer = answer_to(error, trace_id=seen.trace_id)
        if scope["method"] == "HEAD":
            await answer.send_head(send)
        else:
            await answer.send(send, receive=receive)

    async def _front(self, headers: Headers, seen: Observation) -> Answer:
        try:
            known = (await self._viewer(headers, seen)).who
        except (Unauthenticated, Unavailable):  # also while the store fails, which the page tells
            known = ""
        problems = self._otherwise.problems()
        return answer_page(self._ports.pages.front(known=known, problems=problems, pages={**PAGES, **DOCS}))

    async def _script(self, _headers: Headers, _seen: Observation) -> Answer:
        return script()

    async def _session(self, headers: Headers, seen: Observation) -> Answer:
        """Tell who is logged in: a script is not told why its stream was refused."""
        viewer = await self._asker(headers, seen)
        return Answer(HTTPStatus.OK, msgspec.json.encode({"subject": viewer.who}), (JSON, NO_CACHE))

    async def _stream(self, headers: Headers, seen: Observation) -> Answer:
        principal = await self._asker(headers, seen)
        last = headers.get(b"last-event-id", b"").decode("latin-1")
        answer = await answer_watch(
            await self._ports.instances(principal),
            last_event_id=last or None,
            principal=principal,
            renew=lambda: self._ports.viewer(_cookies(headers)),
            ports=self._ports.watch,
        )
        return answer.with_headers(NO_CACHE)

    async def _asker(self, headers: Headers, seen: Observation) -> Principal:
        """Return who asks from a page of ours."""
        if headers.get(b"sec-fetch-site", b"same-origin") not in _HERE:
            raise Forbidden("this is for pages of this site alone: use the API, and a token")
        return await self._viewer(headers, seen)

    async def _viewer(self, headers: Headers, seen: Observation) -> Principal:
        principal = await self._ports.viewer(_cookies(headers))
        seen.principal = principal.who
        self._ports.limiter.take(principal.who)
        return principal


def _cookies(headers: Headers) -> str:
    return headers.get(b"cookie", b"").decode("latin-1")
