"""Errors of remote services, decoded from responses to the class that the server raised.

Facts that are not part of the response are blank. The CLI uses this module without the client, which takes long to
import.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from remuda.kernel import errors
from remuda.kernel.errors import RemudaError, ServerUnreachable

_SECONDS = re.compile(r"[0-9]{1,9}")


class _Problem(msgspec.Struct, frozen=True):
    pointer: str
    reason: str


class _Envelope(msgspec.Struct, frozen=True):
    error: str
    error_description: str
    code: str = ""
    problems: tuple[_Problem, ...] = ()
    plan: msgspec.Raw = msgspec.Raw()


_BLANK: Mapping[str, Any] = {
    **dict.fromkeys(("kind", "name", "field", "target_kind", "target", "owner", "version", "path", "cause"), ""),
    **dict.fromkeys(("server", "what", "key_id"), ""),
}
"""Facts of errors that a response does not contain."""


def error_from(status: int, headers: Mapping[str, str], body: bytes, *, server: str) -> RemudaError:
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ServerUnreachable(server, f"it responded {status} without an error of ours")
    kind = _BY_CODE.get((status, envelope.code)) or _BY_STATUS.get(status, errors.Unavailable)
    error = kind.__new__(kind)
    RemudaError.__init__(error, envelope.error_description)
    vars(error).update(_BLANK)
    vars(error).update(_facts(envelope, headers))
    return error


def _facts(envelope: _Envelope, headers: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    yield "problems", tuple((problem.pointer, problem.reason) for problem in envelope.problems)
    yield "plan", envelope.plan or None
    yield "error", envelope.error
    yield "allowed", tuple(method.strip() for method in headers.get("allow", "").split(",") if method.strip())
    if _SECONDS.fullmatch(seconds := headers.get("retry-after", "")):
        yield "retry_after_s", int(seconds)


_BY_CODE: Mapping[tuple[int, str], type[RemudaError]] = {(kind.status, kind.code): kind for kind in errors.ERRORS}
_BY_STATUS: Mapping[int, type[RemudaError]] = {
    400: errors.Malformed,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.NotAllowed,
    408: errors.TooSlow,
    409: errors.Conflict,
    410: errors.Gone,
    412: errors.PreconditionFailed,
    413: errors.TooLarge,
    414: errors.TooLarge,
    422: errors.Invalid,
    429: errors.TooMany,
    431: errors.TooLarge,
}
"""Errors by status, for servers without codes of ours such as the reference implementation."""
