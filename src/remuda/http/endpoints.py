"""A route with everything about it that can be worked out before the first request comes."""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import msgspec

from remuda.access.principal import Principal
from remuda.http.audit import AuditOperation
from remuda.http.binding import Binder
from remuda.http.bodies import BodyReader, FormReader
from remuda.http.errors import NO_CACHE, NO_STORE, RejectedRequest, reject, reject_in_oauth, uncached
from remuda.http.invocation import invocation, repeat_invocation
from remuda.http.pages import page_response, redirect_response, reject_with_page
from remuda.http.responses import JSON, Header, OtherResponse, Redirect, Rendered, Response, Viewed, wire_headers
from remuda.http.routes import NOTHING, AnyRoute
from remuda.kernel.secrets import reveal

_EMPTY = (NO_CACHE,)
_FILLED = (JSON, NO_CACHE)
_VARIES: Header = (b"vary", b"authorization")


class Endpoint:
    """One route, ready to be called."""

    __slots__ = (
        "_body",
        "_encode",
        "_filled",
        "_is_empty",
        "_organization_at",
        "_project_at",
        "_success",
        "answer",
        "bind_path",
        "bind_query",
        "declared",
        "invoke",
        "is_public",
        "is_read",
        "operation",
        "parameters",
        "reject",
        "repeat",
        "route",
    )

    def __init__(self, route: AnyRoute, services: object, *, action: str = "") -> None:
        """Take as `action` what the route's path ends in, if that is something done to what is before it."""
        self.route = route
        self.invoke, self.repeat = invocation(route, services), repeat_invocation(route, services)
        self.is_read, self.is_public = route.method == "GET", route.scope == "public"
        self.parameters = route.parameters
        self.operation = AuditOperation(method=route.method, route=route.path, action=action)
        self.bind_path = Binder(route.path_type, route.parameters).bind_path
        self.bind_query = Binder(route.query_type, rejected=("watch",) if _refuses_watch(route) else ()).bind_query
        self._body = _body_reader(route)
        self.declared = frozenset(name.encode() for name in route.headers)
        self._organization_at, self._project_at = (_place(route, name) for name in ("organizationID", "projectID"))
        encoder = msgspec.json.Encoder(enc_hook=reveal) if route.holds_secret else msgspec.json.Encoder()
        self._encode: Callable[[Any], bytes] = encoder.encode
        self._is_empty = route.response_type is NoneType
        self._success = route.success
        self._filled = _headers(route)
        self.answer, self.reject = self._manners()

    @property
    def has_body(self) -> bool:
        """Clients send a body with it."""
        return self._body is not None

    def read_body(self, body: bytes, headers: Mapping[bytes, bytes]) -> Any:
        """Return the body as the route's type, or nothing if the route takes none."""
        return NOTHING if self._body is None else self._body.read(body, headers.get(b"content-type"))

    def place(self, principal: Principal, values: tuple[str, ...]) -> Principal:
        """Return the principal with who pays: as its credentials say, or else as the path does."""
        if self._organization_at is None:
            return principal
        organization, project = values[self._organization_at], principal.project
        if principal.organization is not None and principal.organization != organization:
            return principal  # another one pays, and a project of this one is none of its
        if project is None and self._project_at is not None:
            project = values[self._project_at]
        return principal.with_payer(organization, project)

    def _manners(self) -> tuple[Callable[[Any], Response], Callable[[Exception, RejectedRequest], Response]]:
        """Return how a handler's reply goes to the wire, and how an error does; collections are somebody else's."""
        if self.route.page:
            return page_response, reject_with_page
        if self.route.oauth:
            return (lambda reply: uncached(self._answer(reply))), reject_in_oauth
        return (self._answer_or_redirect if self.route.may_redirect else self._answer), reject

    def _answer(self, reply: Any) -> Response:
        if self._is_empty:
            return Response(self._success, b"", _EMPTY)
        if isinstance(reply, OtherResponse):
            assert self.route.other is not None, "a route that answers otherwise says so"
            return Response(self.route.other.status, self._encode(reply.response), _FILLED)
        if isinstance(reply, Viewed):
            reply = reply.rendered()
        if isinstance(reply, Rendered):
            return Response(self._success, reply.body, (*self._filled, *_rendered_headers(reply)))
        return Response(self._success, self._encode(reply), self._filled)

    def _answer_or_redirect(self, reply: Any) -> Response:
        return redirect_response(reply) if isinstance(reply, Redirect) else self._answer(reply)


def _refuses_watch(route: AnyRoute) -> bool:
    """Tell whether a route says that it cannot be watched, rather than ending at once; OAuth2 ignores what is odd."""
    takes = route.query_type.__struct_encode_fields__
    return "watch" not in takes and (route.is_list or (route.method == "GET" and route.scope != "public"))


def _body_reader(route: AnyRoute) -> BodyReader[Any] | FormReader[Any] | None:
    if not route.has_body:
        return None
    return FormReader(route.body_type) if route.form else BodyReader(route.body_type)


def _place(route: AnyRoute, name: str) -> int | None:
    return route.parameters.index(name) if name in route.parameters else None


def _headers(route: AnyRoute) -> tuple[Header, ...]:
    """Return what an answer says of itself: who may keep it is nobody where it carries a secret."""
    if route.holds_secret:
        return (JSON, NO_STORE[0])
    return (JSON, _kept(route.max_age_s), _VARIES) if route.max_age_s else _FILLED


def _kept(max_age_s: int) -> Header:
    return (b"cache-control", b"private, max-age=%d" % max_age_s)


def _rendered_headers(reply: Rendered[Any]) -> list[Header]:
    headers = wire_headers(reply.headers)
    if reply.etag is not None:
        headers.append((b"etag", reply.etag.encode()))
    return headers
