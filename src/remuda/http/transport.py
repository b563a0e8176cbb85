"""HTTP client transport: requests with their attempts, streams, and the mapping of errors.

A GET can be sent again, and so can a write, because it always carries an idempotency key. It is sent again when the
server was not reached, when its response was lost, or when the server asks for that (429, 503, in flight); see
`kernel.exchange`. An error response is raised as the class that the server raised, with its message.

The CLI uses this module too, so it does not import the route table or cryptography.
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import httpx2
import msgspec

from remuda.http.remote_errors import error_from
from remuda.http.schema import Nothing, Parameters
from remuda.http.sse import EventReader, Received
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import InFlight, Invalid, RemudaError, ServerUnreachable
from remuda.kernel.exchange import AttemptFailed, RequestSender, Retries, RetryableResponse
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret, hide, reveal
from remuda.outbound.client import load, new_client, transport_errors

if TYPE_CHECKING:
    from remuda.access.principal import Context
    from remuda.http.routes import AnyRoute

ResponseT = TypeVar("ResponseT")


class ClientCredentials(Protocol):
    """Credentials of a client."""

    def headers(self, context: "Context | None") -> Mapping[str, str]:
        """Return the headers for a request in this context, or for the service itself if it is None."""


class BearerCredentials:
    """A bearer token, read for each request, because tokens are renewed."""

    def __init__(self, token: Callable[[], Secret]) -> None:
        self._token = token

    def headers(self, context: "Context | None") -> Mapping[str, str]:  # noqa: ARG002  the token identifies the caller
        return {"Authorization": f"Bearer {self._token().reveal()}"}


class ServiceCredentials:
    """A service that acts for the principal of the context. Its certificate is part of the TLS settings."""

    def __init__(self, name: str) -> None:
        self._name = name

    def headers(self, context: "Context | None") -> Mapping[str, str]:
        """Return the principal that the service acts for, which pays and is audited, and whether it impersonates it."""
        from remuda.http.authentication import (  # noqa: PLC0415  it imports cryptography
            PrincipalClaim,
            claim_of,
            write_claim,
        )

        if context is None:
            return {"X-Principal": write_claim(PrincipalClaim(actor=self._name, type="system"))}
        if context.impersonated is None:
            return {"X-Principal": write_claim(claim_of(context.principal))}
        return {"X-Principal": write_claim(claim_of(context.impersonated)), "X-Impersonate": "true"}


def target_of(route: "AnyRoute", path: Parameters, query: Parameters) -> str:
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


def read_response(body: bytes, response_type: type[ResponseT], *, server: str) -> ResponseT:
    """Return a response as its type, or raise ServerUnreachable if it does not match."""
    if response_type is type(None):
        return None
    try:
        return msgspec.json.decode(body, type=response_type, dec_hook=hide)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnreachable(server, "its response does not match the route") from None


load()  # now, and not with the first request

_SUCCESS = range(200, 300)
_LOST_BY_A_PROXY = {502, 504}
_NOT_NOW = {429, 503} | _LOST_BY_A_PROXY
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
class OutboundRequest:
    """A request, without the headers that each attempt adds."""

    name: str
    method: str
    target: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    context: "Context | None" = None

    @property
    def is_repeatable(self) -> bool:
        """Whether sending it twice executes it once."""
        return self.method == "GET" or "Idempotency-Key" in self.headers


class HttpTransport:
    """Connections to one server."""

    def __init__(
        self,
        server: str,
        *,
        credentials: ClientCredentials,
        clock: Clock,
        randomness: Randomness,
        settings: ClientSettings,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.server = server.rstrip("/")
        self._credentials, self._randomness, self._settings = credentials, randomness, settings
        self.retries = Retries(
            attempts=settings.attempts,
            total_s=settings.total_s,
            backoff=Backoff(settings.first_pause_s, settings.longest_pause_s),
            clock=clock,
            randomness=randomness,
        )
        self._exchange = RequestSender(self.server, self.retries)
        most = settings.connections
        self._http = new_client(
            httpx2.Timeout(settings.read_s, connect=settings.connect_s),
            tls=tls or server.startswith("https:"),
            base_url=self.server,
            limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def exchange(self, request: OutboundRequest) -> httpx2.Response:
        """Send a request until there is a response; return a success, or raise the error of the response."""

        async def attempt() -> httpx2.Response:
            built = self._built(request)
            with transport_errors():
                response = await self._http.send(built)
            self._check(response)
            return response

        return await self._exchange.send(
            attempt, name=request.name, is_read=request.method == "GET", is_repeatable=request.is_repeatable
        )

    def _check(self, response: httpx2.Response) -> None:
        """Raise the error of a response that is not a success, as RetryableResponse if another attempt may help."""
        status = response.status_code
        if status in _SUCCESS:
            return
        error = error_from(status, response.headers, response.content, server=self.server)
        if status in _NOT_NOW or isinstance(error, InFlight):
            raise RetryableResponse(error, is_lost=status in _LOST_BY_A_PROXY)
        raise error

    async def events(
        self, request: OutboundRequest, since: str | None, on_message: Callable[[], None] | None = None
    ) -> AsyncGenerator[Received | RemudaError]:
        """Yield the events of one stream; if it fails temporarily, yield that error last."""
        more = {} if since is None else {"Last-Event-ID": since}
        timeout = httpx2.Timeout(self._settings.silence_s, connect=self._settings.connect_s)
        reader, built = EventReader(), self._built(request, more, timeout=timeout)
        try:
            with transport_errors():
                response = await self._http.send(built, stream=True)
                try:
                    if response.status_code not in _SUCCESS:
                        await response.aread()
                    self._check(response)
                    async for chunk in response.aiter_raw():
                        for event in reader.feed(chunk):
                            yield event
                        if on_message is not None:
                            on_message()
                finally:
                    await response.aclose()
        except AttemptFailed as failure:
            yield failure.error(self.server)

    def _built(self, request: OutboundRequest, more: Mapping[str, str] | None = None, **options: Any) -> httpx2.Request:
        headers = {"Accept": "application/json", **request.headers, **(more or {})}
        if request.body is not None:
            headers.setdefault("Content-Type", "application/json")
        if request.context is not None and request.context.trace_id != _NO_TRACE:
            headers["traceparent"] = f"00-{request.context.trace_id}-{self._randomness.token_bytes(8).hex()}-01"
        headers |= self._credentials.headers(request.context)
        return self._http.build_request(
            request.method, request.target, content=request.body, headers=headers, **options
        )
