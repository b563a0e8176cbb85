"""What each route can answer, for the OpenAPI document: statuses, bodies and headers.

Everything that can really be answered is written down, because every answer in every test is held against it.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from types import NoneType
from typing import Any

from remuda.http.errors import CONTRACT_WORDS, ErrorBody, OtherErrorBody
from remuda.http.routes import AnyRoute

__all__ = ["HEADERS", "error_responses", "error_statuses", "success_response"]

HEADERS: Mapping[str, str] = {
    "Access-Control-Allow-Origin": "The pages that may use the API.",
    "Access-Control-Expose-Headers": "What those pages may read beside the body.",
    "Allow": "The methods that the path has.",
    "Cache-Control": "Ask again each time.",
    "ETag": "The state that was read: send it back as If-Match.",
    "Idempotency-Replayed": "This answer was given before, to the first request with this Idempotency-Key.",
    "Link": "The next page, as rel=next.",
    "RateLimit": "What is left of the quota, and when all of it is back.",
    "RateLimit-Policy": "How many requests a caller has in how many seconds.",
    "Retry-After": "How many seconds to wait before the next try.",
    "Vary": "What the answer depends on beside the address.",
    "WWW-Authenticate": "Where to get credentials.",
    "X-Accel-Buffering": "Asks proxies to pass a stream on as it comes.",
    "X-Continue": "Where this page ended: send it back as `continue`. Without it this was the last page.",
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


def error_statuses(route: AnyRoute) -> list[int]:
    """Return every status of an error that the route can answer."""
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


def error_responses(schemas: Mapping[Any, Node]) -> dict[str, Node]:
    """Return the shared description of each error, by its name in the document's components."""
    return {
        str(status): {
            "description": _ABOUT.get(status, HTTPStatus(status).phrase),
            "headers": _headers(*_BY_STATUS.get(status, ())),
            "content": {"application/json": {"schema": schemas[_body_type(status)]}},
        }
        for status in _ABOUT
    }


def success_response(route: AnyRoute, schemas: Mapping[Any, Node]) -> Node:
    """Return the description of what a route answers when all is well."""
    response: Node = {"description": HTTPStatus(route.success).phrase, "headers": _headers(*_success_headers(route))}
    if route.answer_type is not NoneType:
        response["content"] = {"application/json": {"schema": schemas[route.answer_type]}}
    if route.is_collection:
        response["content"]["text/event-stream"] = {"schema": _EVENT}
    return response


def _success_headers(route: AnyRoute) -> Iterator[str]:
    if route.is_collection:
        yield from ("Link", "X-Accel-Buffering", "X-Continue", "X-Resource-Version")
    elif route.answer_type is not NoneType:
        yield "ETag"
    if route.takes_key:
        yield "Idempotency-Replayed"


def _body_type(status: int) -> type[ErrorBody | OtherErrorBody]:
    return ErrorBody if status in CONTRACT_WORDS else OtherErrorBody


def _headers(*names: str) -> dict[str, Node]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sorted((*_EVERYWHERE, *names))}
