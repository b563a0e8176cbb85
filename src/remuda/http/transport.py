"""Calling a server: one request with all its attempts, or one stream.

A GET can be sent again, and so can a write, because it always carries an idempotency key. It is sent again when the
server was not reached, when its answer was lost, or when it asks for that (429, 503, in flight): after the pause it
asks for, or a growing one with jitter, until the attempts or the time are used up. A write whose answer was lost and
never came is OutcomeUnknown.

What passes between a client and a server of ours: who calls, how a request is written, what an error means.

A request is written from a route and its values, and an error comes back as the class it was raised as, with the
sentence that the server told. What only the raiser knew is blank.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import anyio._backends._asyncio  # noqa: F401  to have it imported
import httpcore2  # noqa: F401  same
import httpx2
import msgspec

from remuda.access.principal import Context, Principal
from remuda.http.authentication import Claim, write_claim
from remuda.http.remote_errors import error_from
from remuda.http.routes import AnyRoute, Nothing, Parameters
from remuda.http.sse import EventReader, Received
from remuda.kernel.clock import Clock
from remuda.kernel.errors import InFlight, Invalid, OutcomeUnknown, RemudaError, ServerUnreachable, TimedOut
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret, hide, reveal

AnswerT = TypeVar("AnswerT")


class Credentials(Protocol):
    """Says who calls."""

    def headers(self, context: Context | None) -> Mapping[str, str]:
        """Return the headers that show it, for a request in this context or on nobody's behalf."""
        ...


class Bearer:
    """A token, fetched anew for each request, because tokens are renewed."""

    def __init__(self, token: Callable[[], Secret]) -> None:
        self._token = token

    def headers(self, context: Context | None) -> Mapping[str, str]:  # noqa: ARG002  a token speaks for itself
        """Return the token."""
        return {"Authorization": f"Bearer {self._token().reveal()}"}


class Service:
    """A service that acts for whoever stands behind the context. Its certificate is a matter of the TLS settings."""

    def __init__(self, name: str, *, impersonate: bool = False) -> None:
        """Take the service's own name, and whether to ask for no more than both it and the caller may."""
        self._name, self._impersonate = name, impersonate

    def headers(self, context: Context | None) -> Mapping[str, str]:
        """Return for whom the service acts: who pays, and who is audited."""
        claim = Claim(actor=self._name, type="system") if context is None else claim_of(context.principal)
        return {"X-Principal": write_claim(claim)} | ({"X-Impersonate": "true"} if self._impersonate else {})


def claim_of(principal: Principal) -> Claim:
    """Return how a service says that it acts for this one."""
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
    """Return path and query as they go over the wire."""
    target = route.path
    for name, value in _values(path):
        target = target.replace(f"{{{name}}}", _segment(name, value))
    pairs = [(name, value) for name, value in _values(query) if value is not None]
    return f"{target}?{urlencode([*_spread(pairs)])}" if pairs else target


def _values(parameters: Parameters) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of parameters, but not those that are what they would be anyway."""
    for each in msgspec.structs.fields(parameters):
        value = getattr(parameters, each.name)
        if each.default is msgspec.NODEFAULT or value != each.default:
            yield each.encode_name, msgspec.to_builtins(value)


def _segment(name: str, value: Any) -> str:
    """Encode a value twice: servers cut a path at its slashes after decoding it once, and decode each value again."""
    if value == "":
        raise Invalid(name, "is empty", remedy="name what is meant")
    once = quote(_text(value), safe="")
    if not once.strip("."):  # what means "here" or "one up" to everybody between us and the server
        once = once.replace(".", "%2E")
    return quote(once, safe="")


def _spread(pairs: list[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, value in pairs:
        for each in value if isinstance(value, list | tuple) else [value]:
            yield name, _text(each)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def encode_body(body: Any) -> bytes | None:
    """Return a request's body, or None if it has none."""
    if body is None or isinstance(body, Nothing):
        return None
    return msgspec.json.encode(body, enc_hook=reveal)


def encode_form(form: Any) -> bytes | None:
    """Return a request's body as a form, or None if it has none."""
    if form is None or isinstance(form, Nothing):
        return None
    fields = msgspec.to_builtins(form, enc_hook=reveal)
    return urlencode([*_spread([(name, value) for name, value in fields.items() if value is not None])]).encode()


def read_answer(body: bytes, answer_type: type[AnswerT], *, server: str) -> AnswerT:
    """Return an answer as its type, or raise if it is no answer of ours."""
    if answer_type is type(None):
        return None
    try:
        return msgspec.json.decode(body, type=answer_type, dec_hook=hide)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnreachable(server, "its answer is not what the route promises") from None


# httpx2 imports these two when its first request goes out, and would hold the loop for that long.


_FINE = range(200, 300)
_LOST_BY_A_PROXY = {502, 504}
_NOT_NOW = {429, 503} | _LOST_BY_A_PROXY
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""The request did not leave: nothing can have happened."""
_NO_TRACE = "0" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How patient a client is."""

    connect_s: float = 5.0
    read_s: float = 35.0
    """For the next bytes of an answer: a little longer than a server may work on it."""
    total_s: float = 60.0
    """For a request with all its attempts."""
    silence_s: float = 45.0
    """For the next sign of life on a watch: three heartbeats."""
    attempts: int = 5
    first_pause_s: float = 0.1
    longest_pause_s: float = 5.0
    connections: int = 100
    page: int = 500
    """Items to ask for at once when a list is read in pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it goes over the wire, but for what each attempt adds."""

    name: str
    """What it does, for people."""
    method: str
    target: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    context: Context | None = None

    @property
    def is_repeatable(self) -> bool:
        """Sent twice, it is done once."""
        return self.method == "GET" or "Idempotency-Key" in self.headers


@dataclass(frozen=True, slots=True)
class _Failure:
    error: RemudaError
    is_passing: bool
    """Another attempt may do better."""
    is_lost: bool = False
    """The server may have done it all the same."""


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
        """Send a request until it is answered, and return a success or raise the error that was told."""
        deadline = self._clock.monotonic() + self._settings.total_s
        is_lost = False
        for failures in count():
            outcome = await self._attempt(request, deadline - self._clock.monotonic())
            if isinstance(outcome, httpx2.Response):
                return outcome
            is_lost = is_lost or outcome.is_lost
            pause_s = self.pause_s(failures, outcome.error)
            is_last = failures + 1 >= self._settings.attempts or self._clock.monotonic() + pause_s >= deadline
            if outcome.is_passing and is_lost and (is_last or not request.is_repeatable) and request.method != "GET":
                raise OutcomeUnknown(f"{request.name} at {self.server}")
            if is_last or not outcome.is_passing:
                raise outcome.error
            await self._clock.sleep(pause_s)
        raise AssertionError("attempts are used up before they are counted up")

    async def _attempt(self, request: Request, patience_s: float) -> httpx2.Response | _Failure:
        try:
            async with asyncio.timeout(patience_s):
                response = await self._http.send(self._built(request))
        except TimeoutError:
            return _Failure(TimedOut(self._settings.total_s), is_passing=True, is_lost=True)
        except httpx2.HTTPError as error:
            return _Failure(self._unreachable(error), is_passing=True, is_lost=not isinstance(error, _UNSENT))
        return response if response.status_code in _FINE else self._failure(response)

    def _failure(self, response: httpx2.Response) -> _Failure:
        status = response.status_code
        error = error_from(status, response.headers, response.content, server=self.server)
        is_passing = status in _NOT_NOW or isinstance(error, InFlight)
        return _Failure(error, is_passing=is_passing, is_lost=status in _LOST_BY_A_PROXY)

    async def events(
        self, request: Request, since: str | None, heard: Callable[[], None] | None = None
    ) -> AsyncGenerator[Received | RemudaError]:
        """Yield the events of one stream until it ends; if it fails in a way that can pass, yield that last.

        `heard` is called after anything that came was dealt with, heartbeats too.
        """
        more = {} if since is None else {"Last-Event-ID": since}
        timeout = httpx2.Timeout(self._settings.silence_s, connect=self._settings.connect_s)
        reader = EventReader()
        try:
            response = await self._http.send(self._built(request, more, timeout=timeout), stream=True)
            try:
                if response.status_code not in _FINE:
                    await response.aread()
                    failure = self._failure(response)
                    if not failure.is_passing:
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
        """Return how long to wait after so many failures: as long as the server asks, or longer each time."""
        pause_s: float = min(self._settings.first_pause_s * 2**failures, self._settings.longest_pause_s)
        asked_s: float = getattr(error, "retry_after_s", 0)
        return asked_s + self._randomness.uniform(pause_s / 2, pause_s)

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
