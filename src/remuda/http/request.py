"""One request on its way through the pipeline, with what is known of it so far.

What is known of one request so far: `edge.observe` puts it into the scope, and the layers below fill it in.

Headers that change what a request does, read under the rule that the documents state.

Limits of a request's body: how long it may be, and how long it may take.

A body that announces more than the limit is refused before a byte of it is read, so that a client that waits for `100
Continue` never sends it. One that announces nothing is counted as it comes and refused when it is past the limit: no
more than the limit and one network read is ever held.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from remuda.http.asgi import ClientDisconnect, Receive, Scope
from remuda.http.authentication import Credentials, TrustedProxies
from remuda.http.dispatch import whole_path_of
from remuda.http.endpoints import Endpoint
from remuda.http.errors import Refused, refuse
from remuda.http.responses import Answer, Header
from remuda.kernel.errors import Malformed, TooLarge, TooSlow


class Observation:
    """What is known of one request so far. The layers below write to it."""

    __slots__ = (
        "bytes",
        "error_code",
        "is_cut",
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
        """The table's name, set by the dispatcher."""
        self.route: str | None = None
        """The operation's name, set by the dispatcher; none if the path is unknown."""
        self.principal = ""
        """Who asks, once that is known: `Principal.who`."""
        self.error_code: str | None = None
        """The `code` of the error that was answered."""
        self.status = 0
        """The answer's status, once it has begun."""
        self.bytes = 0
        """The length of the answer's body so far."""
        self.is_stream = False
        """The answer is a stream of events, which lasts as long as the client wants."""
        self.is_cut = False
        """The client left before the answer was complete."""


def observation_of(scope: Scope) -> Observation:
    found: Observation = scope["remuda"]
    return found


_HOST = re.compile(rb"[0-9A-Za-z._\-\[\]:]{1,255}")


class Inbound:
    """A request. Each stage fills in what it finds out, and what the answer has to say for it."""

    __slots__ = (
        "credentials",
        "endpoint",
        "headers",
        "more",
        "path",
        "query",
        "receive",
        "scope",
        "seen",
        "values",
    )

    endpoint: Endpoint
    values: tuple[str, ...]
    """The parameters of the path, as they were sent."""
    path: Any
    query: Any

    def __init__(self, scope: Scope, receive: Receive, seen: Observation) -> None:
        self.scope, self.receive, self.seen = scope, receive, seen
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.more: tuple[Header, ...] = ()
        """What the answer says beside what it would say by itself."""
        self.credentials: Credentials | None = None

    def client(self, proxies: TrustedProxies) -> tuple[str, int] | None:
        """Return where the request comes from: the other end of the connection or, if that is a proxy, its client."""
        peer = self.seen.peer
        if peer is None or b"x-forwarded-for" not in self.headers:
            return peer
        return proxies.client_of(peer[0], self.headers[b"x-forwarded-for"]), 0

    def fingerprint(self, body: bytes) -> bytes:
        """Return what tells one request from another under the same idempotency key."""
        path, query = whole_path_of(self.scope).encode("latin-1"), self.scope["query_string"]
        parts = (self.scope["method"].encode(), path, query, self.headers.get(b"if-match", b""), body)
        return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()

    def url(self, proxies: TrustedProxies) -> str:
        """Return where the client reaches this API, as the request has it; nothing if its host is none."""
        host, peer = self.headers.get(b"host", b""), self.seen.peer
        if not _HOST.fullmatch(host):
            return ""
        scheme: str = self.scope.get("scheme", "http")
        if self.headers.get(b"x-forwarded-proto") == b"https" and peer is not None and peer[0] in proxies:
            scheme = "https"
        return f"{scheme}://{host.decode()}{self.scope.get('root_path', '')}"

    def refusal(self, error: Exception, url: str) -> Answer:
        """Return what the caller is told of an error: as its route tells it, once that is known."""
        told = self.endpoint.refuse if hasattr(self, "endpoint") else refuse
        return told(error, Refused(self.seen.trace_id, self.headers, url))


HEADER_PATTERN = "^[!-~]([ -~]{0,253}[!-~])?$"
"""What such a header looks like: visible characters, and blanks between them."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
"""What a handler is given whose route declares none."""

_VALID = re.compile(HEADER_PATTERN.encode())


def read_header(headers: Mapping[bytes, bytes], name: str) -> str | None:
    """Return a header, or None if it was not sent."""
    value = headers.get(name.lower().encode())
    if value is None:
        return None
    if not _VALID.fullmatch(value):
        problem = "is not 1 to 255 visible ASCII characters"
        raise Malformed(f"{name} {problem}: send what was read, or leave it out.", [(name, problem)])
    return value.decode()


def read_declared(names: frozenset[bytes], sent: Iterable[Header]) -> Mapping[str, str]:
    """Return those of these headers that were sent. One that comes twice is refused: nobody can say which counts."""
    found: dict[str, str] = {}
    for name, value in sent:
        if name in names:
            text = name.decode()
            if text in found:
                problem = "is there more than once"
                raise Malformed(f"the header {text} {problem}: send it once.", [(text, problem)])
            found[text] = value.decode("latin-1")
    return found


def read_if_match(headers: Mapping[bytes, bytes], *, is_conditional: bool) -> str | None:
    """Return the state that the caller has seen, or None; refuse it where nothing would be held against it."""
    if not is_conditional and b"if-match" in headers:
        problem = "is not supported here"
        raise Malformed(f"If-Match {problem}, and would be ignored: leave it out.", [("If-Match", problem)])
    return read_header(headers, "If-Match")


def read_key(headers: Mapping[bytes, bytes], *, is_public: bool) -> str | None:
    """Return the idempotency key, or None; refuse it from strangers, who could not be told apart by it."""
    key = headers.get(b"idempotency-key")
    if is_public and key is not None:
        problem = "is not supported here"
        remedy = "leave it out, since nobody's key can be told from anybody else's"
        raise Malformed(f"Idempotency-Key {problem}: {remedy}.", [("Idempotency-Key", problem)])
    return None if key is None else key.decode("latin-1")


_LENGTH = re.compile(rb"[0-9]{1,18}")


async def read_body(receive: Receive, headers: Iterable[Header], *, limit: int, timeout_s: float) -> bytes:
    """Return the whole body.

    Raise TooLarge or TooSlow where it is, Malformed if its announced length is no number, and Starlette's
    ClientDisconnect if nobody is there any more to be answered.
    """
    if _announced(headers) > limit:
        raise TooLarge("body", limit)
    try:
        async with asyncio.timeout(timeout_s):
            return await _read(receive, limit)
    except TimeoutError:
        raise TooSlow(timeout_s) from None


async def _read(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        length += len(chunk)
        if length > limit:
            raise TooLarge("body", limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _announced(headers: Iterable[Header]) -> int:
    for name, value in headers:
        if name == b"content-length":
            if not _LENGTH.fullmatch(value):
                raise Malformed("Content-Length is no number of up to 18 digits: send how many bytes the body has.")
            return int(value)
    return 0
