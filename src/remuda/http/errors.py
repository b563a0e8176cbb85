"""Error responses.

The body has `error`, `error_description` and `trace_id`, as existing clients know them. We add `code`, which is stable,
`problems`, if several places of a request are wrong, and `plan`, if a change is rejected because of its effects. The
plan's schema belongs to a service, and routes that return it declare it (`Route.error_bodies`). `error` is one word for
each status. Statuses that the wire contract does not have use our own words under a separate schema, so that a client
of the contract never meets an unknown word under a status of the contract.

Which details a message may contain depends on the error. A missing object is not distinguished from a hidden one. A
failing disk, an unreachable server or a defect is not the caller's concern: the caller gets a fixed text, and the cause
is logged under the trace id.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from remuda.http.responses import JSON, Header, Response
from remuda.kernel.errors import (
    AlreadyExists,
    NotAllowed,
    NotFound,
    OAuthError,
    OutcomeUnknown,
    RemudaError,
    TimedOut,
    Unavailable,
)

CONTRACT_WORDS: Mapping[int, str] = {
    400: "invalid_request",
    401: "access_denied",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "request_entity_too_large",
    415: "unsupported_media_type",
    422: "unprocessable_content",
    500: "server_error",
}
"""Error word of each status in the wire contract."""

OWN_WORDS: Mapping[int, str] = {
    408: "request_timeout",
    410: "gone",
    412: "precondition_failed",
    414: "uri_too_long",
    429: "too_many_requests",
    431: "request_header_fields_too_large",
    503: "unavailable",
}
"""Error word of each status that we add."""

NO_CACHE: Header = (b"cache-control", b"no-cache")
"""Header of every API response: revalidate before reuse."""

NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
"""Headers of an OAuth2 response: no cache may store it."""

INTERNAL = "an internal error has occurred, please contact support"
"""Text for a defect; the caller learns nothing else."""

_UNAVAILABLE = "the service is temporarily unavailable: try again later"
_FIXED: Mapping[type[RemudaError], str] = {
    NotFound: "resource not found",
    AlreadyExists: "the requested resource already exists",
    NotAllowed: "the requested method was not allowed",
}
_WITH_OWN_MESSAGE = (Unavailable, TimedOut, OutcomeUnknown)
_WORDS = {**CONTRACT_WORDS, **OWN_WORDS}
_DEFECT, _DOWN, _UNKNOWN_CALLER = 500, 503, 401
_UNQUOTABLE = re.compile(r"[^ !#-\[\]-~]")

TraceId = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$", description="Names this request in logs and traces.")]


class Problem(msgspec.Struct, frozen=True):
    """One part of a request that is wrong."""

    pointer: Annotated[
        str, msgspec.Meta(description="A JSON pointer into the body, or the name of a parameter, a header or a part.")
    ]
    reason: Annotated[str, msgspec.Meta(description="The reason; it never contains the value that was sent.")]


class _ErrorFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    error_description: Annotated[str, msgspec.Meta(description="What happened and what to do, for users.")]
    trace_id: TraceId
    code: Annotated[str, msgspec.Meta(description="What happened, for programs; it never changes.")]
    problems: Annotated[
        tuple[Problem, ...], msgspec.Meta(description="The parts of the request that are wrong, if it is known which.")
    ] = ()


class ErrorBody(_ErrorFields, frozen=True, kw_only=True, omit_defaults=True):
    """Body of an error whose status is in the wire contract."""

    error: Annotated[
        Literal[
            "invalid_request",
            "access_denied",
            "forbidden",
            "not_found",
            "method_not_allowed",
            "conflict",
            "request_entity_too_large",
            "unsupported_media_type",
            "unprocessable_content",
            "server_error",
        ],
        msgspec.Meta(description="The word of the status, for programs."),
    ]


class OtherErrorBody(_ErrorFields, frozen=True, kw_only=True, omit_defaults=True):
    """Body of an error whose status is our addition."""

    error: Annotated[
        Literal[
            "request_timeout",
            "gone",
            "precondition_failed",
            "uri_too_long",
            "too_many_requests",
            "request_header_fields_too_large",
            "unavailable",
        ],
        msgspec.Meta(description="The word of the status, for programs."),
    ]


class OAuth2Error(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Body of an error of an OAuth2 endpoint: in the standard's form, or in ours if it failed before that."""

    error: Annotated[str, msgspec.Meta(description="A word of OAuth2, for programs.")]
    error_description: Annotated[str, msgspec.Meta(description="What happened and what to do, for users.")]
    trace_id: TraceId | msgspec.UnsetType = msgspec.UNSET
    code: Annotated[
        str | msgspec.UnsetType,
        msgspec.Meta(
            description="What happened, for programs, if the request failed before OAuth2 was reached; it never "
            "changes."
        ),
    ] = msgspec.UNSET
    problems: Annotated[
        tuple[Problem, ...], msgspec.Meta(description="The parts of the request that are wrong, if it is known which.")
    ] = ()


class _Body(_ErrorFields, frozen=True, kw_only=True, omit_defaults=True):
    error: str
    plan: Any = None


_ENCODER = msgspec.json.Encoder()


class RejectedRequest(msgspec.Struct, frozen=True):
    """Request that an error responds to."""

    trace_id: str
    headers: Mapping[bytes, bytes]
    url: str = ""
    """Base URL at which the client reaches the API, if it is known."""


def reject(error: Exception, request: RejectedRequest) -> Response:
    return error_response(error, trace_id=request.trace_id, url=request.url)


def reject_in_oauth(error: Exception, request: RejectedRequest) -> Response:
    """Return the error response of an OAuth2 route, which no cache may store."""
    if not isinstance(error, OAuthError):
        return uncached(reject(error, request))
    body = OAuth2Error(error=error.error, error_description=error.message)
    return Response(error.status, _ENCODER.encode(body), (JSON, *NO_STORE, *error.headers))


def uncached(response: Response) -> Response:
    """Return a response that no cache may store."""
    others = [header for header in response.headers if header not in {NO_CACHE, *NO_STORE}]
    return Response(response.status, response.body, (*others, *NO_STORE))


def error_response(error: Exception, *, trace_id: str, url: str = "") -> Response:
    """Return the response to an error; an unexpected exception reveals nothing but that it happened."""
    status = error.status if isinstance(error, RemudaError) else _DEFECT
    description = description_of(error)
    body = _Body(
        error=_WORDS[status],
        error_description=description,
        trace_id=trace_id,
        code=error.code if isinstance(error, RemudaError) else "internal",
        problems=tuple(Problem(*problem) for problem in getattr(error, "problems", ())),
        plan=getattr(error, "plan", None),
    )
    headers = (JSON, NO_CACHE, *_headers(error))
    if status == _UNKNOWN_CALLER:
        headers = (*headers, challenge(description, url))
    return Response(status, _ENCODER.encode(body), headers)


def challenge(description: str, url: str) -> Header:
    """Return the header that tells a client without credentials of the API at this URL where to get them."""
    parts = ['error="access_denied"', f'error_description="{_UNQUOTABLE.sub("", description)}"']
    if url and not _UNQUOTABLE.search(url):
        parts.append(f'resource_metadata="{url}/.well-known/openid-protected-resource"')
    return b"www-authenticate", f"Bearer {','.join(parts)}".encode()


def description_of(error: Exception) -> str:
    """Return the text for an error that any caller may see."""
    if isinstance(error, OAuthError):
        return error.message  # written for clients, whatever its status
    if not isinstance(error, RemudaError) or error.status == _DEFECT:
        return INTERNAL
    if error.status == _DOWN and type(error) not in _WITH_OWN_MESSAGE:
        return _UNAVAILABLE
    return _FIXED.get(type(error), error.message)


def _headers(error: Exception) -> Sequence[Header]:
    headers: list[Header] = list(getattr(error, "headers", ()))
    if isinstance(error, NotAllowed):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    if not any(name == b"retry-after" for name, _ in headers) and hasattr(error, "retry_after_s"):
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    return headers
