"""What each route can answer, for the OpenAPI document: statuses, bodies and headers.

Everything that can really be answered is written down, because every answer in every test is held against it.

The OpenAPI 3.1 document of a table.

It is read from the table and from nothing else, so it cannot lag behind. Parameters, bodies and answers are the schemas
of the very types that requests are judged by.
"""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from types import NoneType
from typing import Any

import msgspec

from remuda.http.bodies import FORM, form_schema, wire_schema
from remuda.http.errors import CONTRACT_WORDS, ErrorBody, OAuth2Error, OtherErrorBody
from remuda.http.pages import PAGE_HEADERS
from remuda.http.request import HEADER_PATTERN
from remuda.http.routes import AnyRoute, OtherAnswer, Parameters, Table

HEADERS: Mapping[str, str] = {
    "Access-Control-Allow-Origin": "The pages that may use the API.",
    "Access-Control-Expose-Headers": "What those pages may read beside the body.",
    "Allow": "The methods that the path has.",
    "Cache-Control": "Keep it for so long, ask again each time, or do not keep it at all.",
    "Content-Security-Policy": "What a page may load and where its forms may go.",
    "ETag": "The state that was read: send it back as If-Match.",
    "Idempotency-Replayed": "This answer was given before, to the first request with this Idempotency-Key.",
    "Link": "The next page, as rel=next.",
    "Location": "Where to go.",
    "Pragma": "Do not keep it, for those who know no better word.",
    "RateLimit": "What is left of the quota, and when all of it is back.",
    "RateLimit-Policy": "How many requests a caller has in how many seconds.",
    "Referrer-Policy": "Whether the next page is told of this one.",
    "Retry-After": "How many seconds to wait before the next try.",
    "Set-Cookie": "What a browser keeps for us.",
    "Vary": "What the answer depends on beside the address.",
    "WWW-Authenticate": "Where to get credentials.",
    "X-Accel-Buffering": "Asks proxies to pass a stream on as it comes.",
    "X-Continue": "Where this page ended: send it back as `continue`. Without it this was the last page.",
    "X-Content-Type-Options": "Take it for what it says it is.",
    "X-Frame-Options": "Whether other pages may show it inside themselves.",
    "X-Resource-Version": "The version of the list: watch from here and nothing is missed.",
    "X-Trace-Id": "Names this request in logs and traces.",
    "traceparent": "The same, as the next one in a trace takes it.",
}
"""Every response header of ours, and what it says."""

_EVERYWHERE = (
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Cache-Control",
    "RateLimit",
    "RateLimit-Policy",
    "Vary",
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
    400: "The request cannot be understood.",
    401: "The credentials are missing or do not hold.",
    403: "The caller lacks the right.",
    404: "There is no such thing, or not for this caller.",
    408: "The request did not arrive in time.",
    409: "It exists already, has changed since, is in use, or is being worked on.",
    410: "Changes since then are no longer known, or do not tell all since rights have changed: list again.",
    412: "The object is not what If-Match says.",
    413: "The body is too long.",
    422: "The request is understood, and its content breaks a rule.",
    429: "The caller asks too often.",
    431: "The head of the request is too long.",
    500: "A defect of ours.",
    503: "Not now: try again a little later.",
}
Node = dict[str, Any]

_HTML: Node = {"text/html": {"schema": {"type": "string"}}}
_EVENT: Node = {
    "description": "One of the events of the stream.",
    "type": "object",
    "properties": {
        "event": {"enum": ["added", "modified", "deleted", "bookmark", "gone", "end"]},
        "id": {"type": "string", "description": "Where to resume: send it as Last-Event-ID. Empty: begin anew."},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "The item, or a remark."},
    },
    "required": ["event", "data"],
}


def route_responses(route: AnyRoute, schemas: Mapping[Any, Node]) -> Node:
    """Return everything that a route can answer, by status; what it answers when all is well comes first."""
    responses = {str(route.success): _success_response(route, schemas)}
    if route.other is not None:
        responses[str(route.other.status)] = _other_response(route, route.other, schemas)
    if route.may_redirect:
        responses["302"] = _redirect_response()
    named = {status: f"#/components/responses/{status}{_manner(route)}" for status in _error_statuses(route)}
    told = {str(status): {"$ref": name} for status, name in named.items()}
    own = {str(status): _refusal_response(status, schemas[body]) for status, body in route.refusals.items()}
    return responses | told | own


def _error_statuses(route: AnyRoute) -> list[int]:
    return sorted({*_kernel_statuses(route), *route.errors})


def _kernel_statuses(route: AnyRoute) -> Iterator[int]:
    yield from (400, 408, 429, 431, 500, 503)
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


def error_responses(routes: Iterable[AnyRoute], schemas: Mapping[Any, Node]) -> dict[str, Node]:
    """Return the shared description of each error, by its name in the document's components.

    On pages, and in OAuth2, there are others, named after the status and `-page` or `-oauth`.
    """
    manners = ["", *sorted({_manner(route) for route in routes} - {""})]
    return {f"{status}{manner}": _error_response(status, manner, schemas) for manner in manners for status in _ABOUT}


def _manner(route: AnyRoute) -> str:
    return "-page" if route.page else "-oauth" if route.oauth else ""


def _error_response(status: int, manner: str, schemas: Mapping[Any, Node]) -> Node:
    content = {"application/json": {"schema": schemas[_body_type(status)]}}
    headers = _BY_STATUS.get(status, ())
    if manner == "-page":
        content, headers = _HTML | content, (*headers, *_ON_PAGES)
    if manner == "-oauth":
        content, headers = {"application/json": {"schema": schemas[OAuth2Error]}}, (*headers, "Pragma")
    return {"description": _ABOUT[status], "headers": _headers(*headers), "content": content}


def _refusal_response(status: int, schema: Node) -> Node:
    content = {"application/json": {"schema": schema}}
    return {"description": _ABOUT[status], "headers": _headers(*_BY_STATUS.get(status, ())), "content": content}


def _other_response(route: AnyRoute, other: OtherAnswer, schemas: Mapping[Any, Node]) -> Node:
    headers = _headers(*(("Idempotency-Replayed",) if route.replays else ()))
    content = {"application/json": {"schema": schemas[other.answer_type]}}
    return {"description": other.about, "headers": headers, "content": content}


def _redirect_response() -> Node:
    return {"description": HTTPStatus.FOUND.phrase, "headers": _headers("Location", *_ON_PAGES)}


def _success_response(route: AnyRoute, schemas: Mapping[Any, Node]) -> Node:
    response: Node = {"description": HTTPStatus(route.success).phrase, "headers": _headers(*_success_headers(route))}
    if route.page:
        response["content"] = _HTML
    elif route.answer_type is not NoneType:
        response["content"] = {"application/json": {"schema": schemas[route.answer_type]}}
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
        yield from ("X-Accel-Buffering", "X-Resource-Version")
    elif route.answer_type is not NoneType and not route.page:
        yield "ETag"
    if route.replays:
        yield "Idempotency-Replayed"


def _body_type(status: int) -> type[ErrorBody | OtherErrorBody]:
    return ErrorBody if status in CONTRACT_WORDS else OtherErrorBody


def _headers(*names: str) -> dict[str, Node]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sorted({*_EVERYWHERE, *names})}


_ELSEWHERE = {"accept", "authorization", "content-type", "cookie"}
"""Headers that OpenAPI has other places for."""
_REF = "#/components/schemas/{name}"
_IDEMPOTENCY_KEY: Node = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A name for this request: sent again with it, the request is done once and answered twice.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_IF_MATCH: Node = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of a read: the write happens only if nothing has changed since.",
    "schema": {"type": "string", "pattern": HEADER_PATTERN},
}
_LAST_EVENT_ID: Node = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "With `watch`: the id of the last event that was seen, to go on from there.",
    "schema": {"type": "string", "pattern": HEADER_PATTERN},
}
_OF_SERVICES: Node = {
    "X-Principal": {
        "name": "X-Principal",
        "in": "header",
        "description": "For whom a service acts, as JSON in unpadded base64url, or as a JWS that the key of its "
        "certificate signed. Always beside a certificate; beside a token it counts if that is a service's.",
        "schema": {"type": "string", "pattern": "^[0-9A-Za-z_.-]+$"},
    },
    "X-Impersonate": {
        "name": "X-Impersonate",
        "in": "header",
        "description": "The service wants no more than both it and the one it acts for may do.",
        "schema": {"enum": ["true", "false"]},
    },
}
"""No operation names them as its own: from whoever is no service they mean nothing."""
_SCHEMES: Node = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "service": {
        "type": "mutualTLS",
        "description": "For services. They say for whom they act: `X-Principal`, and `X-Impersonate` if they want no "
        "more than both may; see the parameters of this document.",
    },
}


def document(table: Table, *, version: str, server: str = "/") -> Node:
    """Return the document of a service that is mounted at `server`."""
    schemas, components = _schemas(table)
    return {
        "openapi": "3.1.0",
        "info": {"title": table.title, "version": version, "description": _about(table)},
        "servers": [{"url": server}],
        "tags": [{"name": name} for name in dict.fromkeys(route.heading for route in table.routes)],
        "paths": _paths(table, schemas),
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
    return f"{table.description} Every path that has GET answers HEAD likewise, without the body.".lstrip()


def _schemas(table: Table) -> tuple[Mapping[Any, Node], Node]:
    """Return the schema of each type on the wire, and the components that those refer to."""
    bodies = [route.body_type for route in table.routes if route.has_body and not route.form]
    answers = [route.answer_type for route in table.routes if not route.page]
    others = [route.other.answer_type for route in table.routes if route.other is not None]
    refusals = [body for route in table.routes for body in route.refusals.values()]
    errors = [ErrorBody, OtherErrorBody, *(OAuth2Error for route in table.routes if route.oauth)]
    kinds = list(dict.fromkeys([*errors, *bodies, *answers, *others, *refusals]))
    schemas, components = msgspec.json.schema_components(kinds, schema_hook=wire_schema, ref_template=_REF)
    return dict(zip(kinds, schemas, strict=True)), components


def _paths(table: Table, schemas: Mapping[Any, Node]) -> Node:
    paths: Node = {}
    for route in table.routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return paths


def _operation(route: AnyRoute, schemas: Mapping[Any, Node]) -> Node:
    operation: Node = {"operationId": route.name, "summary": route.summary, "tags": [route.heading]}
    if route.description:
        operation["description"] = route.description
    if parameters := [
        *_parameters(route.path_type, "path"),
        *_parameters(route.query_type, "query"),
        *_header_parameters(route),
    ]:
        operation["parameters"] = parameters
    if route.has_body:
        operation["requestBody"] = _body(route, schemas)
    operation["responses"] = route_responses(route, schemas)
    operation["security"] = [] if route.scope == "public" else [{name: []} for name in _SCHEMES]
    operation["x-scope"] = route.scope
    if route.permission is not None:
        operation["x-permission"] = {"endpoint": route.permission.endpoint, "operation": route.permission.verb}
    return operation


def _body(route: AnyRoute, schemas: Mapping[Any, Node]) -> Node:
    if not route.form:
        return {"required": True, "content": {"application/json": {"schema": schemas[route.body_type]}}}
    schema = form_schema(route.body_type)
    return {"required": "required" in schema, "content": {FORM: {"schema": schema}}}


def _parameters(kind: type[Parameters], place: str) -> Iterator[Node]:
    for field in msgspec.structs.fields(kind):
        schema = _without_null(msgspec.json.schema(field.type))
        if place == "path" and schema.get("type") == "string" and "pattern" not in schema:
            schema.setdefault("minLength", 1)
        description = schema.pop("description", None)
        if field.default not in {msgspec.NODEFAULT, None}:
            schema["default"] = field.default
        yield {
            "name": field.encode_name,
            "in": place,
            "required": field.required,
            **({"description": description} if description else {}),
            "schema": schema,
        }


def _without_null(schema: Node) -> Node:
    """Return the schema of the text that is sent: a parameter is left out, never null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _header_parameters(route: AnyRoute) -> Iterator[Node]:
    if route.is_collection:
        yield _LAST_EVENT_ID
    if route.takes_key:
        yield _IDEMPOTENCY_KEY
    if route.is_conditional:
        yield _IF_MATCH
    for name in route.headers:
        if name not in _ELSEWHERE:
            yield {"name": name, "in": "header", "schema": {"type": "string"}}
