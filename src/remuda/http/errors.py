"""Errors as answers.

The body is `error`, `error_description` and `trace_id` as existing clients know them, and beside these our own `code`,
which is stable, `problems`, where several places of a request are wrong, and `plan`, where a change is refused for what
it would do: that one is a service's own, and the routes that have it declare it (`Route.refusals`). `error` is one word
per status. Statuses that the wire contract does not have use words of our own under a schema of their own, so that
nobody who knows the contract's words meets another one where the contract speaks.

What a sentence may say to a stranger depends on the error: an absent object is not told apart from a hidden one, and a
failing disk, an unreachable server or a defect is our business, not the caller's. There the caller gets a fixed text,
and the cause is in the log under the trace id.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from remuda.http.responses import JSON, Answer, Header
from remuda.kernel.errors import (
    AlreadyExists,
    NotAllowed,
    NotFound,
    OAuthRefusal,
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
"""The word for each status that the wire contract knows."""

OWN_WORDS: Mapping[int, str] = {
    408: "request_timeout",
    410: "gone",
    412: "precondition_failed",
    429: "too_many_requests",
    431: "request_header_fields_too_large",
    503: "unavailable",
}
"""The word for each status that we add."""

NO_CACHE: Header = (b"cache-control", b"no-cache")
"""What every answer of the API says: ask again."""

NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
"""What an answer of OAuth2 says instead: nobody may keep it."""

INTERNAL = "an internal error has occurred, please contact support"
"""All that a caller learns of a defect."""

_UNAVAILABLE = "the service cannot do this at the moment: try again a little later"
_FIXED: Mapping[type[RemudaError], str] = {
    NotFound: "resource not found",
    AlreadyExists: "the requested resource already exists",
    NotAllowed: "the requested method was not allowed",
}
_SPEAKS_FREELY = (Unavailable, TimedOut, OutcomeUnknown)
_WORDS = {**CONTRACT_WORDS, **OWN_WORDS}
_DEFECT, _DOWN, _UNKNOWN_CALLER = 500, 503, 401
_UNQUOTABLE = re.compile(r"[^ !#-\[\]-~]")

TraceId = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$", description="Names this request in logs and traces.")]


class Problem(msgspec.Struct, frozen=True):
    """One place of a request that is wrong."""

    pointer: Annotated[
        str,
        msgspec.Meta(
            description="Where: a JSON pointer into the body, or the name of a parameter, a header or a part."
        ),
    ]
    reason: Annotated[str, msgspec.Meta(description="Why; never what was sent.")]


class _Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    error_description: Annotated[str, msgspec.Meta(description="What happened and what to do, for people.")]
    trace_id: TraceId
    code: Annotated[str, msgspec.Meta(description="What happened, for programs; it never changes.")]
    problems: tuple[Problem, ...] = ()


class ErrorBody(_Told, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error whose status the wire contract knows."""

    error: Literal[
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
    ]


class OtherErrorBody(_Told, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error whose status is our own addition."""

    error: Literal[
        "request_timeout",
        "gone",
        "precondition_failed",
        "too_many_requests",
        "request_header_fields_too_large",
        "unavailable",
    ]


class OAuth2Error(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error of an OAuth2 endpoint: in the standard's words or, before it came to that, in ours."""

    error: Annotated[str, msgspec.Meta(description="A word of OAuth2, for programs.")]
    error_description: Annotated[str, msgspec.Meta(description="What happened and what to do, for people.")]
    trace_id: TraceId | msgspec.UnsetType = msgspec.UNSET
    code: str | msgspec.UnsetType = msgspec.UNSET
    problems: tuple[Problem, ...] = ()


class _Body(_Told, frozen=True, kw_only=True, omit_defaults=True):
    error: str
    plan: Any = None


_ENCODER = msgspec.json.Encoder()


class Refused(msgspec.Struct, frozen=True):
    """The request that an error is the answer to."""

    trace_id: str
    headers: Mapping[bytes, bytes]
    url: str = ""
    """Where the client reaches the API, if that can be told."""


def refuse(error: Exception, refused: Refused) -> Answer:
    """Refuse a request as most routes do."""
    return answer_to(error, trace_id=refused.trace_id, url=refused.url)


def refuse_in_oauth(error: Exception, refused: Refused) -> Answer:
    """Refuse a request as OAuth2 does, if that is how it was refused; nobody may keep the answer."""
    if not isinstance(error, OAuthRefusal):
        return unkept(refuse(error, refused))
    body = OAuth2Error(error=error.error, error_description=error.sentence)
    return Answer(error.status, _ENCODER.encode(body), (JSON, *NO_STORE, *error.headers))


def unkept(answer: Answer) -> Answer:
    """Return an answer that nobody may keep."""
    others = [header for header in answer.headers if header not in {NO_CACHE, *NO_STORE}]
    return Answer(answer.status, answer.body, (*others, *NO_STORE))


def answer_to(error: Exception, *, trace_id: str, url: str = "") -> Answer:
    """Return what the caller is told of an error; of one that is not ours, only that there was one."""
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
    return Answer(status, _ENCODER.encode(body), headers)


def challenge(description: str, url: str) -> Header:
    """Return the header that tells a caller without credentials of the API at this URL where to get some."""
    parts = ['error="access_denied"', f'error_description="{_UNQUOTABLE.sub("", description)}"']
    if url and not _UNQUOTABLE.search(url):
        parts.append(f'resource_metadata="{url}/.well-known/openid-protected-resource"')
    return b"www-authenticate", f"Bearer {','.join(parts)}".encode()


def description_of(error: Exception) -> str:
    """Return what may be said of an error to a stranger."""
    if isinstance(error, OAuthRefusal):
        return error.sentence  # written for clients, whatever its status
    if not isinstance(error, RemudaError) or error.status == _DEFECT:
        return INTERNAL
    if error.status == _DOWN and type(error) not in _SPEAKS_FREELY:
        return _UNAVAILABLE
    return _FIXED.get(type(error), error.sentence)


def _headers(error: Exception) -> Sequence[Header]:
    headers: list[Header] = list(getattr(error, "headers", ()))
    if isinstance(error, NotAllowed):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    if not any(name == b"retry-after" for name, _ in headers) and hasattr(error, "retry_after_s"):
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    return headers
