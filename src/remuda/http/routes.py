"""Route table: the declaration of an API.

A `Route` describes one operation, and a `Table` all routes of a service. Dispatch, validation, the OpenAPI document,
the authorization matrix, the typed client and the docs pages are derived from it. A table imports no service object:
the instances are given when the table is mounted.

A route names the service method that it calls (`calls`), whose arguments are bound by name (`signatures`). The method
returns the response itself, a stored object that `view` renders, or one of `responses`, such as a collection. The
service checks permissions with `access.checks`, because it is also called without HTTP; `permission` and `scope` of the
route document them, and the authorization matrix proves that they are right. A route that reads headers, cookies or the
peer has a `handler`, which takes the service and the call.
"""

import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Generic, Literal, TypeVar, get_origin

import msgspec

from remuda.access.principal import Context, Permission, Principal
from remuda.http.page_reads import PageRead
from remuda.http.responses import Collection, EtagView, OtherResponse, Rendered, Viewed
from remuda.http.schema import ListQuery, Nothing, PageQuery, Parameters
from remuda.http.signatures import Arguments, Inputs, arguments_of, check_result

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
"""Methods of our APIs; OPTIONS is handled for all routes."""

Scope = Literal["public", "authenticated", "everywhere", "organization", "project"]
"""Scope of the permission: `public` needs no credentials, `authenticated` any valid ones."""

ServiceT = TypeVar("ServiceT")
PathT = TypeVar("PathT", bound=Parameters)
QueryT = TypeVar("QueryT", bound=Parameters)
BodyT = TypeVar("BodyT")
ResponseT = TypeVar("ResponseT")


class Call(msgspec.Struct, Generic[PathT, QueryT, BodyT], frozen=True, kw_only=True):
    """One validated request of a route."""

    context: Context
    path: PathT
    query: QueryT
    body: BodyT
    headers: Mapping[str, str] = {}
    """The declared headers that were sent."""
    peer: str = ""
    """Address of the client, as reported by forwarding proxies."""

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self.context.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherResponseType:
    """An alternative response of a route, which the method returns as `OtherResponse`."""

    status: int
    response_type: type
    about: str
    """The case in which it is returned."""


Handler = Callable[
    [ServiceT, Call[PathT, QueryT, BodyT]],
    Coroutine[
        Any,
        Any,
        ResponseT
        | Rendered[ResponseT]
        | Viewed[ResponseT]
        | OtherResponse[Any]
        | Collection[Any, ResponseT]
        | PageRead[ResponseT],
    ],
]
"""A function that takes the service and the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[ServiceT, PathT, QueryT, BodyT, ResponseT]):
    """One operation of an API."""

    method: Method
    path: str
    """Path template, with `{name}` for each field of `path_type`."""
    name: str
    """The operationId: `list_instances`."""
    summary: str
    scope: Scope
    service: type[ServiceT] | None = None
    """The class whose instance is called."""
    calls: Callable[..., Any] | None = None
    """The method of `service`. Its arguments are bound by name."""
    view: EtagView[Any, ResponseT] | None = None
    """Renders a stored object that the method returns. A GET responds with the bytes that the store has cached."""
    handler: Handler[ServiceT, PathT, QueryT, BodyT, ResponseT] | None = None
    """In place of `calls`, for a route that reads headers, cookies or the peer."""
    permission: Permission | None = None
    path_type: type[PathT] = Nothing  # type: ignore[assignment]  # the handler's type decides
    query_type: type[QueryT] = Nothing  # type: ignore[assignment]  # the handler's type decides
    body_type: type[BodyT] = Nothing  # type: ignore[assignment]  # the handler's type decides
    response_type: type[ResponseT] = NoneType  # type: ignore[assignment]  # the handler's type decides
    success: int = 200
    errors: tuple[int, ...] = ()
    """Statuses of this route beside those of every route."""
    other: OtherResponseType | None = None
    """The alternative response."""
    error_bodies: Mapping[int, type] = field(default_factory=dict)
    """Types of error bodies with additional fields, by status."""
    is_conditional: bool = False
    """Whether it supports `If-Match`. Other routes reject the header rather than ignore it."""
    has_secret: bool = False
    """Whether the response contains a secret: it is neither stored nor replayed nor cached (`no-store`)."""
    repeat_calls: Callable[..., Any] | None = None
    """The method that responds to a repeated request whose response was not stored."""
    is_idempotent: bool = False
    """Whether a repeat has no further effect: no response is stored, and a repeat returns the current state."""
    form: bool = False
    """Whether the body is a form (`application/x-www-form-urlencoded`) rather than JSON."""
    page: bool = False
    """Whether it is for browsers: its responses are pages or redirects, errors included."""
    redirects: bool = False
    """Whether it may respond with 302 as well."""
    oauth: bool = False
    """Whether its errors are OAuth 2 errors (`OAuthError`). Its responses are not cached."""
    is_genuine: Callable[[ServiceT, Call[PathT, QueryT, BodyT]], Coroutine[Any, Any, bool]] | None = None
    """For a public route that verifies credentials of its own: returns whether those of a call are genuine.

    Failures of such a route count against the address of the caller. Beyond the limit, credentials that are not genuine
    wait. The check is as cheap as a lookup by index or a signature, changes nothing, and is true only of credentials
    that the route accepts or rejects for a reason that it states.
    """
    max_age_s: int = 0
    """Time for which a client may cache the response privately; 0 for none."""
    headers: tuple[str, ...] = ()
    """Request headers for the handler, in lower case."""
    tag: str = ""
    """The heading in the docs; by default the last fixed segment of the path."""
    description: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The path parameters in order."""
        return tuple(_PARAMETER.findall(self.path))

    @property
    def shape(self) -> str:
        """Its method and path without parameter names: unique in a table."""
        return f"{self.method} {_PARAMETER.sub('{}', self.path)}"

    @property
    def takes_key(self) -> bool:
        """Whether it accepts an `Idempotency-Key`. Keys belong to callers, so a public route has none."""
        return self.method != "GET" and self.scope != "public"

    @property
    def replays(self) -> bool:
        """Whether a repeated request gets the stored response."""
        return self.takes_key and not self.is_idempotent

    @property
    def may_redirect(self) -> bool:
        """Whether it can redirect a browser."""
        return self.redirects or self.success == _FOUND

    @property
    def has_body(self) -> bool:
        """Whether it has a request body."""
        return self.body_type is not Nothing

    @property
    def is_list(self) -> bool:
        """Whether its response is an array."""
        return get_origin(self.response_type) in {list, tuple}

    @property
    def is_paged(self) -> bool:
        """Whether its response is a page."""
        return issubclass(self.query_type, PageQuery)

    @property
    def is_collection(self) -> bool:
        """Whether its response is a collection, which can be paged and watched."""
        return issubclass(self.query_type, ListQuery)

    @property
    def arguments(self) -> Arguments:
        """The arguments of `calls`. Raises ValueError if the method does not fit."""
        return arguments_of(_given(self.calls), self.inputs())

    @property
    def repeat_arguments(self) -> Arguments:
        """The arguments of `repeat_calls`. Raises ValueError if the method does not fit."""
        return arguments_of(_given(self.repeat_calls), self.inputs(needs_all=False))

    def inputs(self, *, needs_all: bool = True) -> Inputs:
        """Return the values that the route has for a method, all of which it has to take unless `needs_all` is off."""
        return Inputs(
            path=self.path_type,
            query=self.query_type,
            body=self.body_type if self.has_body else None,
            needs_context=self.permission is not None,
            needs_all=needs_all,
        )

    @property
    def heading(self) -> str:
        """The tag, or the last fixed segment of the path."""
        fixed = [segment for segment in self.path.split("/") if segment and not segment.startswith("{")]
        return self.tag or (fixed[-1] if fixed else "root")


AnyHandler = Handler[Any, Any, Any, Any, Any]
"""A handler of any types."""

AnyRoute = Route[Any, Any, Any, Any, Any]
"""A route of any types."""

_PARAMETER = re.compile(r"\{([^{}/]+)\}")
_VERSION = re.compile(r"/v[0-9]+$")
_FOUND = 302


def _given(method: Callable[..., Any] | None) -> Callable[..., Any]:
    assert method is not None, "only a route that calls a method has arguments"
    return method


class Table:
    """All routes of one service. Raises ValueError with all contradictions."""

    def __init__(self, service: str, *, title: str, description: str, routes: Iterable[AnyRoute]) -> None:
        self.service, self.title, self.description = service, title, description
        self.routes: tuple[AnyRoute, ...] = tuple(routes)
        if faults := [*_clashes(self.routes), *(fault for route in self.routes for fault in _all_faults(route))]:
            raise ValueError(f"the routes of {service} do not fit: {'; '.join(faults)}")

    def action_of(self, route: AnyRoute) -> str:
        """Return the action of a route on the object that its path names, as `stop` in `/instances/{id}/stop`, or "".

        A path with other methods or with paths below it is a collection rather than an action, and so is one whose POST
        returns something and that belongs to no object, or that is directly below the version of the API. A GET is an
        action if it reads nothing but a secret of the object, as in `/instances/{id}/sshkey`.
        """
        parent, _, last = route.path.rpartition("/")
        if route.method == "GET":
            return last if route.has_secret and parent.endswith("}") and not last.startswith("{") else ""
        if route.method != "POST" or last.startswith("{"):
            return ""
        is_below = not _VERSION.search(parent)
        is_action = parent.endswith("}") or (is_below and route.response_type is NoneType)
        return last if is_action and not self._is_collection(route) else ""

    def _is_collection(self, route: AnyRoute) -> bool:
        others = (each.path for each in self.routes if each is not route)
        return any(f"{path}/".startswith(f"{route.path}/") for path in others)


_SEGMENT = re.compile(r"[^{}/]+|\{[^{}/]+\}")
_SCOPES_WITHOUT_PERMISSION = {"public", "authenticated"}
_OK, _NO_CONTENT = 200, 204


def _clashes(routes: tuple[AnyRoute, ...]) -> Iterator[str]:
    shapes = Counter(route.shape for route in routes)
    yield from (f"{shape} is there twice" for shape, count in shapes.items() if count > 1)
    names = Counter(route.name for route in routes)
    yield from (f"the name {name} is there twice" for name, count in names.items() if count > 1)


def _all_faults(route: AnyRoute) -> Iterator[str]:
    yield from _faults(route)
    yield from _method_faults(route)


def _method_faults(route: AnyRoute) -> Iterator[str]:
    """Yield the reasons why a method does not fit the route."""
    if (route.calls is None) == (route.handler is None):
        yield f"{route.name} needs a method that it calls or a handler, and not both"
    for method, is_repeat in ((route.calls, False), (route.repeat_calls, True)):
        if method is not None:
            try:
                _check_method(route, method, is_repeat=is_repeat)
            except ValueError as error:
                yield f"{route.name} calls {getattr(method, '__qualname__', method)}, which {error}"


def _check_method(route: AnyRoute, method: Callable[..., Any], *, is_repeat: bool) -> None:
    if getattr(route.service, method.__name__, None) is not method:
        raise ValueError(f"is no method of the route's service {getattr(route.service, '__name__', None)}")
    _ = route.repeat_arguments if is_repeat else route.arguments
    other = None if route.other is None else route.other.response_type
    check_result(method, response=route.response_type, other=other, has_view=route.view is not None)


def _faults(route: AnyRoute) -> Iterator[str]:
    fields = route.path_type.__struct_encode_fields__
    rules = {
        "has a path that is not /one/{two}/three": route.path == "/"
        or (route.path[:1] == "/" and all(map(_SEGMENT.fullmatch, route.path[1:].split("/")))),
        f"has {sorted(route.parameters)} in its path and {sorted(fields)} in its type": sorted(route.parameters)
        == sorted(fields),
        f"has scope {route.scope} and permission {route.permission}": (route.scope in _SCOPES_WITHOUT_PERMISSION)
        == (route.permission is None),
        "has a body, which a GET or DELETE must not": not (route.has_body and route.method in {"GET", "DELETE"}),
        "is conditional, which only a write can be": not (route.is_conditional and route.method == "GET"),
        "has a response with a 204": route.success != _NO_CONTENT or route.response_type is NoneType,
        "has an alternative response with the status of the usual one": route.other is None
        or route.other.status != route.success,
        "has a method for repeats although its responses are stored": route.repeat_calls is None or route.has_secret,
        "is a form without a body": not route.form or route.has_body,
        "is a page, for OAuth2 and a list, of which it can be one": not (route.page and route.oauth)
        and not ((route.page or route.oauth) and route.is_list),
        "has a header that is not in lower case": all(name == name.lower() for name in route.headers),
        "is a collection and not a GET that responds 200 with a list": not route.is_paged
        or (route.method == "GET" and route.success == _OK and route.is_list),
    }
    yield from (f"{route.name} {fault}" for fault, holds in rules.items() if not holds)
