"""One request on its way through the pipeline, with what is known of it so far."""

import hashlib
import re
from typing import Any

from starlette.types import Receive, Scope

from remuda.http.credentials import Credentials, TrustedProxies
from remuda.http.dispatch import whole_path_of
from remuda.http.endpoints import Endpoint
from remuda.http.errors import Refused, refuse
from remuda.http.observation import Observation
from remuda.http.responses import Answer, Header

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
