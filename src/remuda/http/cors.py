"""CORS: web pages of other origins that may use the API.

Responses on known paths carry the headers; those on unknown paths do not. A preflight is handled here for every route:
it must name a method that the path has.
"""

from collections.abc import Iterable, Sequence

from remuda.http.responses import Header, Response
from remuda.kernel.errors import Malformed, NotAllowed

REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "traceparent",
    "tracestate",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
)
"""Headers that a page may send."""

EXPOSED_HEADERS = (
    "Allow",
    "ETag",
    "Idempotency-Replayed",
    "Link",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "WWW-Authenticate",
    "X-Continue",
    "X-Resource-Version",
    "X-Trace-Id",
    "traceparent",
)
"""Response headers that a page may read."""

_EXPOSE: Header = (b"access-control-expose-headers", ", ".join(EXPOSED_HEADERS).encode())
_ALLOW_HEADERS: Header = (b"access-control-allow-headers", ", ".join(REQUEST_HEADERS).encode())
_VARY: Header = (b"vary", b"Origin")


class Cors:
    """Origins whose pages may use the API; `*` is any. Browsers block pages of all others."""

    def __init__(self, origins: Iterable[str] = (), *, max_age_s: int = 86400) -> None:
        named = tuple(origin.encode() for origin in origins)
        # A response to one origin must not be served to another from a cache.
        varies = (_VARY,) if named != (b"*",) else ()
        self._by_origin: dict[bytes, tuple[Header, ...]] = {
            origin: ((b"access-control-allow-origin", origin), _EXPOSE, *varies) for origin in named
        }
        self._other = self._by_origin[named[0]] if named else ()
        self._without_origin = tuple(header for header in self._other if header != _EXPOSE)
        self._max_age: Header = (b"access-control-max-age", b"%d" % max_age_s)

    def headers(self, origin: bytes | None) -> tuple[Header, ...]:
        """Return the response headers for a page of this origin, or for a caller that is not a page."""
        return self._without_origin if origin is None else self._by_origin.get(origin, self._other)

    def preflight(self, method: bytes | None, methods: Sequence[str]) -> Response:
        if method is None:
            raise Malformed("OPTIONS needs the header Access-Control-Request-Method: name the method to ask about")
        if method.decode("latin-1") not in methods:
            raise NotAllowed(methods)
        allowed = ", ".join(methods).encode()
        return Response(204, b"", ((b"access-control-allow-methods", allowed), _ALLOW_HEADERS, self._max_age))
