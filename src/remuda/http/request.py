"""Inbound request: its headers and body, and what the pipeline has found out about it so far.

A body whose announced length exceeds the limit is rejected before any of it is read, so that a client that waits for
`100 Continue` never sends it. A body without an announced length is counted while it arrives, and rejected when it
exceeds the limit: memory holds no more than the limit and one network read.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from remuda.access.principal import Principal
from remuda.http.asgi import ClientDisconnect, Receive, Scope
from remuda.http.authentication import RequestCredentials
from remuda.http.buffer_shares import SLICE_BYTES, UNCOUNTED, Buffered, BufferShares
from remuda.http.dispatch import whole_path_of
from remuda.http.endpoints import Endpoint
from remuda.http.errors import RejectedRequest, reject
from remuda.http.proxies import ForwardingProxies
from remuda.http.responses import Header, Response
from remuda.http.shares import holders_at
from remuda.http.time_limit import run_with_timeout
from remuda.kernel.errors import Malformed, TimedOut, TooLarge, TooSlow
from remuda.kernel.time_limits import TimeLimits


class Observation:
    """Facts about one request for logs and metrics, put into the scope by `server.access_log`."""

    __slots__ = (
        "bytes",
        "error_code",
        "is_aborted",
        "is_stream",
        "peer",
        "principal",
        "route",
        "service",
        "started",
        "status",
        "trace_id",
    )

    def __init__(self, trace_id: str, started: float, peer: tuple[str, int] | None) -> None:
        self.trace_id, self.started, self.peer = trace_id, started, peer
        self.service: str | None = None
        """Name of the route table, set by the dispatcher."""
        self.route: str | None = None
        """Name of the route, set by the dispatcher; None if the path is unknown."""
        self.principal = ""
        """The authenticated caller: `Principal.who`."""
        self.error_code: str | None = None
        self.status = 0
        """Status of the response, once it has begun."""
        self.bytes = 0
        """Length of the response body so far."""
        self.is_stream = False
        """Whether the response is an event stream, which lasts as long as the client wants."""
        self.is_aborted = False
        """Whether the client disconnected before the response was complete."""


def observation_of(scope: Scope) -> Observation:
    found: Observation = scope["remuda"]
    return found


def client_of(
    peer: tuple[str, int] | None, headers: Mapping[bytes, bytes], proxies: ForwardingProxies
) -> tuple[str, int] | None:
    """Return the client's address: the peer of the connection or, if that is a forwarding proxy, its client."""
    if peer is None or b"x-forwarded-for" not in headers:
        return peer
    return proxies.client_of(peer[0], headers[b"x-forwarded-for"]), 0


def host_of(peer: tuple[str, int] | None, headers: Mapping[bytes, bytes], proxies: ForwardingProxies) -> str:
    """Return the host of the client; empty if only a proxy is known, which has many clients."""
    client = client_of(peer, headers, proxies)
    return "" if client is None or client[0] in proxies else client[0]


_HOST = re.compile(rb"[0-9A-Za-z._\-\[\]:]{1,255}")


class InboundRequest:
    """A request in the pipeline. Each stage adds what it finds out, and headers for the response."""

    __slots__ = (
        "buffered",
        "caller",
        "credentials",
        "endpoint",
        "extra_headers",
        "headers",
        "observation",
        "path",
        "query",
        "receive",
        "scope",
        "values",
    )

    endpoint: Endpoint
    values: tuple[str, ...]
    """Path parameters, with ids in lower case."""
    path: Any
    query: Any

    def __init__(self, scope: Scope, receive: Receive, observation: Observation) -> None:
        self.scope, self.receive, self.observation = scope, receive, observation
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.extra_headers: tuple[Header, ...] = ()
        self.credentials: RequestCredentials | None = None
        self.buffered: Buffered | None = None
        """Bytes that are counted for its body and its response; None for few."""
        self.caller: Principal | None = None
        """The authenticated caller, which has a slot for this request."""

    @property
    def tls_certificate(self) -> str | None:
        """Certificate of the client as PEM, if TLS has verified one."""
        extensions = self.scope.get("extensions")
        if extensions is None:
            return None
        chain: list[str] = extensions.get("tls", {}).get("client_cert_chain", [])
        return chain[0] if chain else None

    @property
    def claimed_subject(self) -> str:
        """Hash of the credentials, which may be forged: who the request claims to be from; empty without the header."""
        sent = self.headers.get(b"authorization")
        return hashlib.sha256(sent).hexdigest() if sent else ""

    def client(self, proxies: ForwardingProxies) -> tuple[str, int] | None:
        """Return the client's address: the peer of the connection or, if that is a forwarding proxy, its client."""
        return client_of(self.observation.peer, self.headers, proxies)

    def count_bytes(self, shares: BufferShares, proxies: ForwardingProxies, amount: int) -> None:
        """Count bytes until the response is sent; raise TooMuchBuffered or NoFreeBuffer."""
        if self.buffered is None:
            host = host_of(self.observation.peer, self.headers, proxies)
            if self.caller is None:
                self.buffered = Buffered(shares.anonymous, holders_at(host))
            else:
                self.buffered = Buffered(shares.callers, shares.callers.holders(self.caller, host))
        self.buffered.add(amount)

    def count_response(self, shares: BufferShares, proxies: ForwardingProxies, response: Response) -> None:
        """Count what a slow reader of a response occupies, except of a watch: these have a limit of their own."""
        if isinstance(response.body, bytes):
            self.count_bytes(shares, proxies, len(response.body))
        elif not getattr(self.query, "watch", False):
            self.count_bytes(shares, proxies, SLICE_BYTES)

    def fingerprint(self, body: bytes) -> bytes:
        """Return a digest that distinguishes requests under the same idempotency key."""
        path, query = whole_path_of(self.scope).encode("latin-1"), self.scope["query_string"]
        parts = (self.scope["method"].encode(), path, query, self.headers.get(b"if-match", b""), body)
        return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()

    def url(self, proxies: ForwardingProxies) -> str:
        """Return the base URL at which the client reaches this API, or an empty string if its host is invalid."""
        host, peer = self.headers.get(b"host", b""), self.observation.peer
        if not _HOST.fullmatch(host):
            return ""
        scheme: str = self.scope.get("scheme", "http")
        if self.headers.get(b"x-forwarded-proto") == b"https" and peer is not None and peer[0] in proxies:
            scheme = "https"
        return f"{scheme}://{host.decode()}{self.scope.get('root_path', '')}"

    def error_response(self, error: Exception, url: str) -> Response:
        """Return the error response in the form of the request's route, once that is known."""
        respond = self.endpoint.reject if hasattr(self, "endpoint") else reject
        return respond(error, RejectedRequest(self.observation.trace_id, self.headers, url))


HEADER_PATTERN = "^[!-~]([ -~]{0,253}[!-~])?$"
"""Pattern of a validated header: printable ASCII without blanks at the ends."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
"""Headers of a call whose route declares none."""

_VALID = re.compile(HEADER_PATTERN.encode())


def read_header(headers: Mapping[bytes, bytes], name: str) -> str | None:
    value = headers.get(name.lower().encode())
    if value is None:
        return None
    if not _VALID.fullmatch(value):
        problem = "is not 1 to 255 visible ASCII characters"
        raise Malformed(
            f"{name} {problem}. Send a value that was read from the API, or leave it out.", [(name, problem)]
        )
    return value.decode()


def read_declared(names: frozenset[bytes], sent: Iterable[Header]) -> Mapping[str, str]:
    """Return those of these headers that were sent. A repeated one is rejected, because it is ambiguous."""
    found: dict[str, str] = {}
    for name, value in sent:
        if name in names:
            text = name.decode()
            if text in found:
                problem = "is repeated"
                raise Malformed(f"the header {text} {problem}. Send it once.", [(text, problem)])
            found[text] = value.decode("latin-1")
    return found


def read_if_match(headers: Mapping[bytes, bytes], *, is_conditional: bool) -> str | None:
    """Return the If-Match header, or None; reject it on a route that would ignore it."""
    if not is_conditional and b"if-match" in headers:
        problem = "is not supported here"
        raise Malformed(f"If-Match {problem} and would be ignored. Leave it out.", [("If-Match", problem)])
    return read_header(headers, "If-Match")


def read_key(headers: Mapping[bytes, bytes], *, is_public: bool) -> str | None:
    """Return the idempotency key, or None; reject it on public routes, where callers cannot be distinguished."""
    key = headers.get(b"idempotency-key")
    if is_public and key is not None:
        problem = "is not supported here"
        remedy = "leave it out, because anonymous callers cannot be distinguished"
        raise Malformed(f"Idempotency-Key {problem}: {remedy}.", [("Idempotency-Key", problem)])
    return None if key is None else key.decode("latin-1")


_LENGTH = re.compile(rb"[0-9]{1,18}")


async def read_body(
    receive: Receive,
    headers: Iterable[Header],
    *,
    limit: int,
    limits: TimeLimits,
    count: Callable[[int], None] = lambda _: None,
) -> bytes:
    """Return the whole body. `count` is called with the length of each part, except the first ones of a small body.

    Raise TooLarge or TooSlow, Malformed if its announced length is not a number, and `ClientDisconnect` if the client
    has disconnected.
    """
    if _announced(headers) > limit:
        raise TooLarge("body", limit)
    try:
        return await run_with_timeout(limits, _read(receive, limit, count))
    except TimedOut:
        raise TooSlow(limits.seconds) from None


async def _read(receive: Receive, limit: int, count: Callable[[int], None]) -> bytes:
    chunks: list[bytes] = []
    length = counted = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        length += len(chunk)
        if length > limit:
            raise TooLarge("body", limit)
        if length > UNCOUNTED:
            count(length - counted)
            counted = length
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _announced(headers: Iterable[Header]) -> int:
    for name, value in headers:
        if name == b"content-length":
            if not _LENGTH.fullmatch(value):
                raise Malformed("Content-Length is not a number of up to 18 digits. Send the body's length in bytes.")
            return int(value)
    return 0
