"""OpenAPI 3.1 document of a route table.

It is generated from the table alone, so it cannot be outdated. Parameters, bodies and responses are the schemas of the
very types that validate requests. Every response that can occur is listed, because the tests compare every response
with the document.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from types import NoneType
from typing import Any

import msgspec

from remuda.http.bodies import FORM, form_schema
from remuda.http.components import JsonObject, components_of, example_of
from remuda.http.errors import CONTRACT_WORDS, ErrorBody, OAuth2Error, OtherErrorBody
from remuda.http.pages import PAGE_HEADERS
from remuda.http.request import HEADER_PATTERN
from remuda.http.routes import AnyRoute, OtherResponseType, Table
from remuda.http.schema import Parameters

HEADERS: Mapping[str, str] = {
    "Access-Control-Allow-Origin": "The origins whose pages may use the API.",
    "Access-Control-Expose-Headers": "The headers that those pages may read.",
    "Allow": "The methods that the path has.",
    "Cache-Control": "How long it may be cached, if at all.",
    "Content-Security-Policy": "What a page may load, and where its forms may be submitted.",
    "ETag": "The state that was read: send it back as If-Match or, for a list, as If-None-Match.",
    "Idempotency-Replayed": "This response was stored for the first request with this Idempotency-Key.",
    "Link": "The next page, as rel=next.",
    "Location": "The URL of the redirect.",
    "Pragma": "Do not cache it, for HTTP/1.0 caches.",
    "RateLimit": "The remaining quota, and the time until all of it is back.",
    "RateLimit-Policy": "How many requests a caller has in how many seconds.",
    "Referrer-Policy": "Whether the browser sends this page's URL to the next one.",
    "Retry-After": "Seconds to wait before a retry.",
    "Set-Cookie": "A cookie for the browser.",
    "Vary": "The request headers that the response depends on.",
    "WWW-Authenticate": "Where to get credentials.",
    "X-Accel-Buffering": "Asks proxies not to buffer a stream.",
    "X-Continue": "The token of the next page: send it as `continue`. Absent on the last page.",
    "X-Content-Type-Options": "The browser must not guess the content type.",
    "X-Frame-Options": "Whether other pages may embed it in a frame.",
    "X-Resource-Version": "The version of the list: a watch from here misses nothing.",
    "X-Trace-Id": "Identifies this request in logs and traces.",
    "traceparent": "The trace context of this request.",
}
"""Description of each of our response headers."""

_EVERYWHERE = (
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Cache-Control",
    "RateLimit",
    "RateLimit-Policy",
    "Vary",
    "X-Content-Type-Options",
    "X-Trace-Id",
    "traceparent",
)
_BY_STATUS: Mapping[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    409: ("Retry-After",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_ON_PAGES = (*PAGE_HEADERS, "Set-Cookie")
_ABOUT: Mapping[int, str] = {
    400: "The request is malformed.",
    401: "The credentials are missing or invalid.",
    403: "The caller lacks the permission.",
    404: "The object does not exist, or is not visible to the caller.",
    408: "The request did not arrive in time.",
    409: "The object exists already, has changed, is in use, or has an operation in progress.",
    410: "The changes since then are no longer available, or permissions have changed: list again.",
    412: "The object's ETag does not match If-Match.",
    413: "The body is too large.",
    414: "The path of the request is too long.",
    422: "The content of the request is invalid.",
    429: "The caller has exceeded its rate limit.",
    431: "The headers of the request are too large.",
    500: "An internal error.",
    503: "The service is temporarily unavailable: try again later.",
}
_HTML: JsonObject = {"text/html": {"schema": {"type": "string"}}}
_EVENT: JsonObject = {
    "description": "One of the events of the stream.",
    "type": "object",
    "properties": {
        "event": {"enum": ["added", "modified", "deleted", "bookmark", "gone", "end"]},
        "id": {"type": "string", "description": "The cursor: send it as Last-Event-ID to resume. Empty: start over."},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "The item, or details of the event.",
        },
    },
    "required": ["event", "data"],
}


def route_responses(route: AnyRoute, schemas: Mapping[Any, JsonObject]) -> JsonObject:
    """Return every response of a route by status; the success comes first."""
    responses = {str(route.success): _success_response(route, schemas)}
    if route.other is not None:
        responses[str(route.other.status)] = _other_response(route, route.other, schemas)
    if route.is_collection:
        unchanged = "The list has not changed since the one with the ETag that was sent."
        responses["304"] = {"description": unchanged, "headers": _headers("ETag", "X-Resource-Version")}
    if route.may_redirect:
        responses["302"] = {"description": HTTPStatus.FOUND.phrase, "headers": _headers("Location", *_ON_PAGES)}
    statuses = sorted({*_kernel_statuses(route), *route.errors})
    references = {status: f"#/components/responses/{status}{_variant(route)}" for status in statuses}
    shared = {str(status): {"$ref": name} for status, name in references.items()}
    own = {str(status): _own_error_response(status, schemas[body]) for status, body in route.error_bodies.items()}
    return responses | shared | own


def _kernel_statuses(route: AnyRoute) -> Iterator[int]:
    yield from (400, 408, 414, 429, 431, 500, 503)
    if route.scope != "public":
        yield from (401, 403)
    if route.parameters:
        yield 404
    if route.has_body:
        yield 413
    if route.method != "GET":
        yield 409
    if route.is_conditional:
        yield 412
    if route.is_collection:
        yield 410
    yield 422


def error_responses(routes: Iterable[AnyRoute], schemas: Mapping[Any, JsonObject]) -> dict[str, JsonObject]:
    """Return the shared description of each error, by component name; pages and OAuth2 have their own."""
    variants = ["", *sorted({_variant(route) for route in routes} - {""})]
    return {
        f"{status}{variant}": _error_response(status, variant, schemas) for variant in variants for status in _ABOUT
    }


def _variant(route: AnyRoute) -> str:
    return "-page" if route.page else "-oauth" if route.oauth else ""


def _error_response(status: int, variant: str, schemas: Mapping[Any, JsonObject]) -> JsonObject:
    content = {"application/json": {"schema": schemas[ErrorBody if status in CONTRACT_WORDS else OtherErrorBody]}}
    headers = _BY_STATUS.get(status, ())
    if variant == "-page":
        content, headers = _HTML | content, (*headers, *_ON_PAGES)
    if variant == "-oauth":
        content, headers = {"application/json": {"schema": schemas[OAuth2Error]}}, (*headers, "Pragma")
    return {"description": _ABOUT[status], "headers": _headers(*headers), "content": content}


def _own_error_response(status: int, schema: JsonObject) -> JsonObject:
    content = {"application/json": {"schema": schema}}
    return {"description": _ABOUT[status], "headers": _headers(*_BY_STATUS.get(status, ())), "content": content}


def _other_response(route: AnyRoute, other: OtherResponseType, schemas: Mapping[Any, JsonObject]) -> JsonObject:
    headers = _headers(*(("Idempotency-Replayed",) if route.replays else ()))
    content = {"application/json": {"schema": schemas[other.response_type]}}
    return {"description": other.about, "headers": headers, "content": content}


def _success_response(route: AnyRoute, schemas: Mapping[Any, JsonObject]) -> JsonObject:
    response: JsonObject = {
        "description": HTTPStatus(route.success).phrase,
        "headers": _headers(*_success_headers(route)),
    }
    if route.page:
        response["content"] = _HTML
    elif route.response_type is not NoneType:
        response["content"] = {"application/json": {"schema": schemas[route.response_type]}}
    if route.is_collection:
        response["content"]["text/event-stream"] = {"schema": _EVENT}
    return response


def _success_headers(route: AnyRoute) -> Iterator[str]:
    if route.page:
        yield from _ON_PAGES
    if route.oauth:
        yield "Pragma"
    if route.is_paged:
        yield from ("Link", "X-Continue")
    if route.is_collection:
        yield from ("ETag", "X-Accel-Buffering", "X-Resource-Version")
    elif route.response_type is not NoneType and not route.page:
        yield "ETag"
    if route.replays:
        yield "Idempotency-Replayed"


def _headers(*names: str) -> dict[str, JsonObject]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sorted({*_EVERYWHERE, *names})}


_ELSEWHERE = {"accept", "authorization", "content-type", "cookie"}
"""Headers that OpenAPI describes elsewhere."""
_IDEMPOTENCY_KEY: JsonObject = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Identifies this request: if it is sent again with the same key, it is executed once.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_IF_NONE_MATCH: JsonObject = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the list that the client has: if it has not changed, the response is 304.",
    "schema": {"type": "string"},
}
_IF_MATCH: JsonObject = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of a read: the write is executed only if nothing has changed since.",
    "schema": {"type": "string", "pattern": HEADER_PATTERN},
}
_LAST_EVENT_ID: JsonObject = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "With `watch`: the id of the last event that was received, to resume after it.",
    "schema": {"type": "string", "pattern": HEADER_PATTERN},
}
_OF_SERVICES: JsonObject = {
    "X-Principal": {
        "name": "X-Principal",
        "in": "header",
        "description": "The principal that a service acts for, as JSON in unpadded base64url, or as a JWS signed with "
        "the key of its certificate. Required with a certificate; with a token it counts if the token is a service's.",
        "schema": {"type": "string", "pattern": "^[0-9A-Za-z_.-]+$"},
    },
    "X-Impersonate": {
        "name": "X-Impersonate",
        "in": "header",
        "description": "Restricts a service to what both it and the principal it acts for may do.",
        "schema": {"enum": ["true", "false"]},
    },
}
"""Not listed with the operations: callers other than services do not use them."""
_SCHEMES: JsonObject = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An access token, in the header Authorization. The description of this document says how to "
        "get one.",
    },
    "service": {
        "type": "mutualTLS",
        "description": "For services. They name the principal they act for in `X-Principal`, and restrict themselves "
        "to what both may do with `X-Impersonate`; see the parameters of this document.",
    },
}


AUTHENTICATION = """

## Authentication

A request carries an access token in the header `Authorization: Bearer TOKEN`. Operations whose `security` is empty \
need none. Tokens come from the service identity:

- A user logs in with a browser: OAuth 2.0 with an authorization code and PKCE, or with a device code. \
`/.well-known/openid-configuration` of identity names the endpoints. `remuda login` does this for the command. An \
access token expires soon, and the refresh token beside it gets the next one.

- A program uses a service account. The caller that creates the account gets its token in the response, once; \
`POST .../serviceaccounts/{serviceAccountID}/rotate` replaces it.

- The first start of a process writes the token of a first service account to `credentials.json` in its data directory.

- A service uses a client certificate, and names the principal that it acts for in `X-Principal`.

Without a valid token the response is 401, and its header `WWW-Authenticate` names the place where to get one. A \
caller without the permission gets 403; an object that the caller may not know of is 404.
"""
"""The section on authentication in the description of every document, in Markdown."""


def document(table: Table, *, version: str, server: str = "/") -> JsonObject:
    """Return the document of a service that is mounted at `server`."""
    schemas, components = components_of(_types(table))
    return {
        "openapi": "3.1.0",
        "info": {"title": table.title, "version": version, "description": _about(table)},
        "servers": [{"url": server}],
        "tags": [{"name": name} for name in dict.fromkeys(route.heading for route in table.routes)],
        "paths": _paths(table, schemas, components),
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": error_responses(table.routes, schemas),
            "headers": {
                name: {"description": about, "schema": {"type": "string"}} for name, about in sorted(HEADERS.items())
            },
            "parameters": _OF_SERVICES,
            "securitySchemes": _SCHEMES,
        },
    }


def _about(table: Table) -> str:
    return f"{table.description} Every path with GET also supports HEAD.{AUTHENTICATION}".lstrip()


def _types(table: Table) -> Iterator[Any]:
    """Yield the types of all bodies."""
    yield from (ErrorBody, OtherErrorBody)
    for route in table.routes:
        if route.oauth:
            yield OAuth2Error
        if route.has_body and not route.form:
            yield route.body_type
        if not route.page:
            yield route.response_type
        if route.other is not None:
            yield route.other.response_type
        yield from route.error_bodies.values()


def _paths(table: Table, schemas: Mapping[Any, JsonObject], components: Mapping[str, JsonObject]) -> JsonObject:
    paths: JsonObject = {}
    for route in table.routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, components)
    return paths


def _operation(route: AnyRoute, schemas: Mapping[Any, JsonObject], components: Mapping[str, JsonObject]) -> JsonObject:
    operation: JsonObject = {"operationId": route.name, "summary": route.summary, "tags": [route.heading]}
    if route.description:
        operation["description"] = route.description
    if parameters := [
        *_parameters(route.path_type, "path"),
        *_parameters(route.query_type, "query"),
        *_header_parameters(route),
    ]:
        operation["parameters"] = parameters
    if route.has_body:
        operation["requestBody"] = _body(route, schemas, components)
    operation["responses"] = route_responses(route, schemas)
    operation["security"] = [] if route.scope == "public" else [{name: []} for name in _SCHEMES]
    operation["x-scope"] = route.scope
    if route.permission is not None:
        operation["x-permission"] = {"endpoint": route.permission.endpoint, "operation": route.permission.verb}
    return operation


def _body(route: AnyRoute, schemas: Mapping[Any, JsonObject], components: Mapping[str, JsonObject]) -> JsonObject:
    schema = form_schema(route.body_type) if route.form else schemas[route.body_type]
    content = {"schema": schema}
    with contextlib.suppress(LookupError):  # the tests demand an example of each body
        content["example"] = example_of(schema, components)
    is_required = not route.form or "required" in schema
    return {"required": is_required, "content": {FORM if route.form else "application/json": content}}


def _parameters(kind: type[Parameters], location: str) -> Iterator[JsonObject]:
    for field in msgspec.structs.fields(kind):
        schema = _without_null(msgspec.json.schema(field.type))
        if location == "path" and schema.get("type") == "string" and "pattern" not in schema:
            schema.setdefault("minLength", 1)
        description = schema.pop("description", None)
        if field.default not in {msgspec.NODEFAULT, None}:
            schema["default"] = field.default
        yield {
            "name": field.encode_name,
            "in": location,
            "required": field.required,
            **({"description": description} if description else {}),
            "schema": schema,
        }


def _without_null(schema: JsonObject) -> JsonObject:
    """Return the schema of the text that is sent: an optional parameter is left out, never null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _header_parameters(route: AnyRoute) -> Iterator[JsonObject]:
    if route.is_collection:
        yield _LAST_EVENT_ID
        yield _IF_NONE_MATCH
    if route.takes_key:
        yield _IDEMPOTENCY_KEY
    if route.is_conditional:
        yield _IF_MATCH
    for name in route.headers:
        if name not in _ELSEWHERE:
            yield {"name": name, "in": "header", "schema": {"type": "string"}}
