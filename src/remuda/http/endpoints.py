"""Endpoint: a route with everything that can be prepared before the first request."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from types import NoneType
from typing import Any

import msgspec

from remuda.access.principal import Principal
from remuda.http.audit import AuditOperation
from remuda.http.binding import Binder
from remuda.http.bodies import BodyReader, FormReader
from remuda.http.errors import NO_CACHE, NO_STORE, RejectedRequest, reject, reject_in_oauth, uncached
from remuda.http.invocation import invocation, repeat_invocation, service_for
from remuda.http.pages import page_response, redirect_response, reject_with_page
from remuda.http.responses import JSON, Header, OtherResponse, Redirect, Rendered, Response, Viewed, wire_headers
from remuda.http.routes import AnyRoute
from remuda.http.schema import NOTHING, NameQuery
from remuda.kernel.secrets import reveal

_EMPTY = (NO_CACHE,)
_FILLED = (JSON, NO_CACHE)
_SECRET = (JSON, NO_STORE[0])
_VARIES: Header = (b"vary", b"authorization")


class Endpoint:
    """A prepared route."""

    __slots__ = (
        "_body",
        "_encode",
        "_filled",
        "_is_api",
        "_is_empty",
        "_organization_at",
        "_project_at",
        "_reject_unknown",
        "_success",
        "bind_path",
        "bind_query",
        "declared",
        "invoke",
        "is_audited",
        "is_genuine",
        "is_public",
        "is_read",
        "named_in",
        "normalized",
        "operation",
        "parameters",
        "reject",
        "render",
        "repeat",
        "route",
    )

    def __init__(self, route: AnyRoute, services: object, *, action: str = "") -> None:
        """Take as `action` the last segment of the path if it is an action on an object."""
        self.route = route
        self.invoke, self.repeat = invocation(route, services), repeat_invocation(route, services)
        self.is_genuine = None if route.is_genuine is None else partial(route.is_genuine, service_for(route, services))
        self.is_read, self.is_public = route.method == "GET", route.scope == "public"
        self.parameters = route.parameters
        self.operation = AuditOperation(method=route.method, route=route.path, action=action)
        self.is_audited = not self.is_public and (not self.is_read or bool(action))
        path = Binder(route.path_type, route.parameters)
        self.bind_path, self.normalized = path.bind_path, path.normalized
        self.named_in = parents_in(route.body_type)
        query = Binder(route.query_type, rejected=("watch",) if _rejects_watch(route) else ())
        self.bind_query, self._reject_unknown = query.bind_query, query.reject_unknown
        self._is_api = route.path.startswith("/api/") and not self.is_public
        self._body = _body_reader(route)
        self.declared = frozenset(name.encode() for name in route.headers)
        self._organization_at, self._project_at = (_index_of(route, name) for name in ("organizationID", "projectID"))
        encoder = msgspec.json.Encoder(enc_hook=reveal) if route.has_secret else msgspec.json.Encoder()
        self._encode: Callable[[Any], bytes] = encoder.encode
        self._is_empty = route.response_type is NoneType
        self._success = route.success
        self._filled = _headers(route)
        self.render, self.reject = self._renderers()

    @property
    def has_body(self) -> bool:
        return self._body is not None

    def read_body(self, body: bytes, headers: Mapping[bytes, bytes]) -> Any:
        """Return the body as the route's type, or `NOTHING` if the route has none."""
        return NOTHING if self._body is None else self._body.read(body, headers.get(b"content-type"))

    def check_query(self, query: bytes, principal: Principal) -> None:
        """Raise Malformed if a person or a service account sends an unknown query parameter to the API.

        OAuth 2 requires that others are ignored, and the system's services may be newer than this one.
        """
        if self._is_api and principal.service is None and principal.type in {"user", "service"}:
            self._reject_unknown(query)

    def filtered(self, result: Any, query: Any) -> Any:
        """Return a list that is not a collection, with the items of the name that the query asks for."""
        if not isinstance(query, NameQuery) or query.name is None:
            return result
        return [each for each in result if getattr(each, "metadata", each).name == query.name]

    def with_payer(self, principal: Principal, values: tuple[str, ...]) -> Principal:
        """Return the principal with its payer, from its credentials or else from the path."""
        if self._organization_at is None:
            return principal
        organization, project = values[self._organization_at], principal.project
        if principal.organization is not None and principal.organization != organization:
            return principal  # another organization pays, and the project of the path is not its own
        if project is None and self._project_at is not None:
            project = values[self._project_at]
        return principal.with_payer(organization, project)

    def _renderers(self) -> tuple[Callable[[Any], Response], Callable[[Exception, RejectedRequest], Response]]:
        """Return the functions that render a result and an error. Collections are rendered by the API."""
        if self.route.page:
            return page_response, reject_with_page
        if self.route.oauth:
            return (lambda result: uncached(self._render(result))), reject_in_oauth
        return (self._render_or_redirect if self.route.may_redirect else self._render), reject

    def _render(self, result: Any) -> Response:
        if self._is_empty:
            return Response(self._success, b"", _EMPTY)
        if isinstance(result, OtherResponse):
            assert self.route.other is not None, "the route declares its alternative response"
            return Response(self.route.other.status, self._encode(result.response), _FILLED)
        if isinstance(result, Viewed):
            result = result.rendered()
        if isinstance(result, Rendered):
            headers = _SECRET if result.has_secret else self._filled
            return Response(self._success, result.body, (*headers, *_rendered_headers(result)))
        return Response(self._success, self._encode(result), self._filled)

    def _render_or_redirect(self, result: Any) -> Response:
        return redirect_response(result) if isinstance(result, Redirect) else self._render(result)


def parents_in(body: type) -> Callable[[Any], Mapping[str, str]]:
    """Return a function that returns, of a body, the objects that it names as those to which a new one belongs.

    The names are those of path parameters: `networkID` for the field `networkId` of the body or of its `spec`.
    """
    found = _parents(body) if isinstance(body, type) and issubclass(body, msgspec.Struct) else ()

    def named_in(read: Any) -> Mapping[str, str]:
        return {parameter: str(reduce(getattr, path, read)) for path, parameter in found}

    return named_in


_PARENTS: Mapping[str, str] = {"organizationId": "organizationID", "networkId": "networkID"}


@cache  # every API of a table asks again, and msgspec computes the fields of a type on each call
def _parents(body: type[msgspec.Struct]) -> Sequence[tuple[tuple[str, ...], str]]:
    return [(path, parameter) for path, name in _fields(body) if (parameter := _PARENTS.get(name)) is not None]


def _fields(body: type) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the fields of a body and of its `spec`: how they are reached, and their names on the wire."""
    for each in msgspec.structs.fields(body) if _is_struct(body) else ():
        yield (each.name,), each.encode_name
        if each.name == "spec" and _is_struct(each.type):
            yield from (((each.name, *path), name) for path, name in _fields(each.type))


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _rejects_watch(route: AnyRoute) -> bool:
    """Return whether a route rejects `watch`, rather than ignore it as OAuth 2 requires of unknown parameters."""
    takes = route.query_type.__struct_encode_fields__
    return "watch" not in takes and (route.is_list or (route.method == "GET" and route.scope != "public"))


def _body_reader(route: AnyRoute) -> BodyReader[Any] | FormReader[Any] | None:
    if not route.has_body:
        return None
    return FormReader(route.body_type) if route.form else BodyReader(route.body_type)


def _index_of(route: AnyRoute, name: str) -> int | None:
    return route.parameters.index(name) if name in route.parameters else None


def _headers(route: AnyRoute) -> tuple[Header, ...]:
    """Return the headers of a response; one with a secret must not be cached."""
    if route.has_secret:
        return _SECRET
    return (JSON, (b"cache-control", b"private, max-age=%d" % route.max_age_s), _VARIES) if route.max_age_s else _FILLED


def _rendered_headers(result: Rendered[Any]) -> list[Header]:
    headers = wire_headers(result.headers)
    if result.etag is not None:
        headers.append((b"etag", result.etag.encode()))
    return headers
