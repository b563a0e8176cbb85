"""What each route can answer, for the OpenAPI document: statuses, bodies and headers.

Everything that can really be answered is written down, because every answer in every test is held against it.
"""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from types import NoneType
from typing import Any

from remuda.http.errors import CONTRACT_WORDS, ErrorBody, OAuth2Error, OtherErrorBody
from remuda.http.pages import PAGE_HEADERS
from remuda.http.routes import AnyRoute, OtherAnswer

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
