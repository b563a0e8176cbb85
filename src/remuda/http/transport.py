"""HTTP client transport: requests with their attempts, streams, and the mapping of errors.

A GET is safe to repeat, and so is a write, because it always carries an idempotency key. A request is retried if the
server was not reached, the response was lost, or the server asks for it (429, 503, in flight): after the requested
pause, or exponential backoff with jitter, until the attempts or the time are used up. A write whose response was lost
for good raises OutcomeUnknown.

An error response becomes the exception class that the server raised, with the server's message. Details that are not
transferred are blank.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import anyio._backends._asyncio  # noqa: F401  httpx2 would import it with the first request and block the event loop
import httpcore2  # noqa: F401  same
import httpx2
import msgspec

from remuda.access.principal import Context, Principal
from remuda.http.authentication import Claim, write_claim
from remuda.http.routes import AnyRoute, Nothing, Parameters
from remuda.http.sse import EventReader, Received
from remuda.kernel import errors
from remuda.kernel.clock import Clock
from remuda.kernel.errors import InFlight, Invalid, OutcomeUnknown, RemudaError, ServerUnreachable, TimedOut
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret, hide, reveal

AnswerT = TypeVar("AnswerT")


class Credentials(Protocol):
    """Credentials of a client."""

    def headers(self, context: Context | None) -> Mapping[str, str]:
        """Return the headers for a request in this context, or for the service itself if it is None."""
        ...


class Bearer:
    """A bearer token, read for each request, because tokens are renewed."""

    def __init__(self, token: Callable[[], Secret]) -> None:
        self._token = token

    def headers(self, context: Context | None) -> Mapping[str, str]:  # noqa: ARG002  the token identifies the caller
        return {"Authorization": f"Bearer {self._token().reveal()}"}


class Service:
    """A service that acts for the principal of the context. Its certificate is part of the TLS settings."""

    def __init__(self, name: str, *, impersonate: bool = False) -> None:
        """Take the service's name, and whether to ask for no more than both it and the caller may do."""
        self._name, self._impersonate = name, impersonate

    def headers(self, context: Context | None) -> Mapping[str, str]:
        """Return the principal that the service acts for: it pays and is audited."""
        claim = Claim(actor=self._name, type="system") if context is None else claim_of(context.principal)
        return {"X-Principal": write_claim(claim)} | ({"X-Impersonate": "true"} if self._impersonate else {})


def claim_of(principal: Principal) -> Claim:
    """Return the claim of a service that acts for this principal."""
    return Claim(
        actor=principal.who,
        type=principal.type,
        organization=principal.organization,
        project=principal.project,
        organizations=principal.organizations,
        issuer=principal.issuer,
        vouched_by=principal.vouched_by,
    )


def target_of(route: AnyRoute, path: Parameters, query: Parameters) -> str:
    """Return the path and query of a request."""
    target = route.path
    for name, value in _values(path):
        target = target.replace(f"{{{name}}}", _segment(name, value))
    pairs = [(name, value) for name, value in _values(query) if value is not None]
    return f"{target}?{urlencode([*_spread(pairs)])}" if pairs else target


def _values(parameters: Parameters) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of parameters, except those that equal their default."""
    for each in msgspec.structs.fields(parameters):
        value = getattr(parameters, each.name)
        if each.default is msgspec.NODEFAULT or value != each.default:
            yield each.encode_name, msgspec.to_builtins(value)


def _segment(name: str, value: Any) -> str:
    """Encode a value twice, because servers may decode a path before they split it and then decode each value."""
    if value == "":
        raise Invalid(name, "is empty", remedy="pass a value")
    once = quote(_text(value), safe="")
    if not once.strip("."):  # intermediaries would resolve "." and ".."
        once = once.replace(".", "%2E")
    return quote(once, safe="")


def _spread(pairs: list[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, value in pairs:
        for each in value if isinstance(value, list | tuple) else [value]:
            yield name, _text(each)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def encode_body(body: Any) -> bytes | None:
    """Return a request's JSON body, or None if it has none."""
    if body is None or isinstance(body, Nothing):
        return None
    return msgspec.json.encode(body, enc_hook=reveal)


def encode_form(form: Any) -> bytes | None:
    """Return a request's form body, or None if it has none."""
    if form is None or isinstance(form, Nothing):
        return None
    fields = msgspec.to_builtins(form, enc_hook=reveal)
    return urlencode([*_spread([(name, value) for name, value in fields.items() if value is not None])]).encode()


def read_answer(body: bytes, answer_type: type[AnswerT], *, server: str) -> AnswerT:
    """Return a response as its type, or raise ServerUnreachable if it does not match."""
    if answer_type is type(None):
        return None
    try:
        return msgspec.json.decode(body, type=answer_type, dec_hook=hide)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnreachable(server, "its response does not match the route") from None


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
"""Attributes of errors that are not transferred."""


def error_from(status: int, headers: Mapping[str, str], body: bytes, *, server: str) -> RemudaError:
    """Return the exception of an error response."""
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ServerUnreachable(server, f"it responded {status} in an unknown format")
    kind = _BY_CODE.get((status, envelope.code)) or _BY_STATUS.get(status, errors.Unavailable)
    error = kind.__new__(kind)
    RemudaError.__init__(error, envelope.error_description)
    vars(error).update(_BLANK)
    vars(error).update(_attributes(envelope, headers))
    return error


def _attributes(envelope: _Envelope, headers: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that are transferred."""
    yield "problems", tuple((problem.pointer, problem.reason) for problem in envelope.problems)
    yield "plan", envelope.plan or None
    yield "allowed", tuple(method.strip() for method in headers.get("allow", "").split(",") if method.strip())
    if _SECONDS.fullmatch(seconds := headers.get("retry-after", "")):
        yield "retry_after_s", int(seconds)


_CLASSES: Sequence[type[RemudaError]] = [getattr(errors, name) for name in errors.__all__]
_BY_CODE: Mapping[tuple[int, str], type[RemudaError]] = {(kind.status, kind.code): kind for kind in _CLASSES}
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
    422: errors.Invalid,
    429: errors.TooMany,
    431: errors.TooLarge,
}
"""Exception class for a status of a server without our codes, such as the reference implementation."""


_SUCCESS = range(200, 300)
_PROXY_FAILURES = {502, 504}
_RETRYABLE = {429, 503} | _PROXY_FAILURES
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""The request was not sent, so nothing can have happened."""
_NO_TRACE = "0" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Timeouts and limits of a client."""

    connect_s: float = 5.0
    read_s: float = 35.0
    """Timeout for the next bytes of a response: a little longer than a server's own limit."""
    total_s: float = 60.0
    """Timeout of a request with all its attempts."""
    silence_s: float = 45.0
    """Timeout for the next event or heartbeat of a watch: three heartbeats."""
    attempts: int = 5
    first_pause_s: float = 0.1
    longest_pause_s: float = 5.0
    connections: int = 100
    page: int = 500
    """Number of items per page when a list is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, without the headers that each attempt adds."""

    name: str
    """Name of the operation, for messages."""
    method: str
    target: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    context: Context | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether sending it twice executes it once."""
        return self.method == "GET" or "Idempotency-Key" in self.headers


@dataclass(frozen=True, slots=True)
class _Failure:
    error: RemudaError
    is_temporary: bool
    """Whether another attempt may succeed."""
    is_lost: bool = False
    """Whether the server may have executed the request."""


class Caller:
    """Connections to one server."""

    def __init__(
        self,
        server: str,
        *,
        credentials: Credentials,
        clock: Clock,
        randomness: Randomness,
        settings: ClientSettings,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.server = server.rstrip("/")
        self._credentials, self._clock, self._randomness, self._settings = credentials, clock, randomness, settings
        most = settings.connections
        self._http = httpx2.AsyncClient(
            base_url=self.server,
            verify=tls or server.startswith("https:"),
            timeout=httpx2.Timeout(settings.read_s, connect=settings.connect_s),
            limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def exchange(self, request: Request) -> httpx2.Response:
        """Send a request until there is a response; return a success or raise the server's error."""
        deadline = self._clock.monotonic() + self._settings.total_s
        is_lost = False
        for failures in count():
            outcome = await self._attempt(request, deadline - self._clock.monotonic())
            if isinstance(outcome, httpx2.Response):
                return outcome
            is_lost = is_lost or outcome.is_lost
            pause_s = self.pause_s(failures, outcome.error)
            is_last = failures + 1 >= self._settings.attempts or self._clock.monotonic() + pause_s >= deadline
            if outcome.is_temporary and is_lost and (is_last or not request.is_repeatable) and request.method != "GET":
                raise OutcomeUnknown(f"{request.name} at {self.server}")
            if is_last or not outcome.is_temporary:
                raise outcome.error
            await self._clock.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, request: Request, timeout_s: float) -> httpx2.Response | _Failure:
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._http.send(self._built(request))
        except TimeoutError:
            return _Failure(TimedOut(self._settings.total_s), is_temporary=True, is_lost=True)
        except httpx2.HTTPError as error:
            return _Failure(self._unreachable(error), is_temporary=True, is_lost=not isinstance(error, _UNSENT))
        return response if response.status_code in _SUCCESS else self._failure(response)

    def _failure(self, response: httpx2.Response) -> _Failure:
        status = response.status_code
        error = error_from(status, response.headers, response.content, server=self.server)
        is_temporary = status in _RETRYABLE or isinstance(error, InFlight)
        return _Failure(error, is_temporary=is_temporary, is_lost=status in _PROXY_FAILURES)

    async def events(
        self, request: Request, since: str | None, heard: Callable[[], None] | None = None
    ) -> AsyncGenerator[Received | RemudaError]:
        """Yield the events of one stream until it ends; if it fails temporarily, yield that error last.

        `heard` is called after everything received was yielded, heartbeats included.
        """
        more = {} if since is None else {"Last-Event-ID": since}
        timeout = httpx2.Timeout(self._settings.silence_s, connect=self._settings.connect_s)
        reader = EventReader()
        try:
            response = await self._http.send(self._built(request, more, timeout=timeout), stream=True)
            try:
                if response.status_code not in _SUCCESS:
                    await response.aread()
                    failure = self._failure(response)
                    if not failure.is_temporary:
                        raise failure.error
                    yield failure.error
                    return
                async for chunk in response.aiter_raw():
                    for event in reader.feed(chunk):
                        yield event
                    if heard is not None:
                        heard()
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            yield self._unreachable(error)

    def pause_s(self, failures: int, error: RemudaError | None) -> float:
        """Return the pause after this number of failures: what the server asks for, plus exponential backoff."""
        pause_s: float = min(self._settings.first_pause_s * 2**failures, self._settings.longest_pause_s)
        requested_s: float = getattr(error, "retry_after_s", 0)
        return requested_s + self._randomness.uniform(pause_s / 2, pause_s)

    def _built(self, request: Request, more: Mapping[str, str] | None = None, **options: Any) -> httpx2.Request:
        headers = {"Accept": "application/json", **request.headers, **(more or {})}
        if request.body is not None:
            headers.setdefault("Content-Type", "application/json")
        if request.context is not None and request.context.trace_id != _NO_TRACE:
            headers["traceparent"] = f"00-{request.context.trace_id}-{self._randomness.token_bytes(8).hex()}-01"
        headers |= self._credentials.headers(request.context)
        return self._http.build_request(
            request.method, request.target, content=request.body, headers=headers, **options
        )

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        return ServerUnreachable(self.server, str(error) or type(error).__name__)
