"""Which web pages of other origins may use the API.

Every answer of a known path says so; that of an unknown path does not. A preflight is answered by the kernel for every
route: it must name a method, and the path must have it.
"""

from collections.abc import Iterable, Sequence

from remuda.http.responses import Answer, Header
from remuda.kernel.errors import Malformed, NotAllowed

REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "traceparent",
    "tracestate",
    "Idempotency-Key",
    "If-Match",
    "Last-Event-ID",
)
"""What a page may send."""

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
"""What a page may read beside the body."""

_EXPOSE: Header = (b"access-control-expose-headers", ", ".join(EXPOSED_HEADERS).encode())
_ALLOW_HEADERS: Header = (b"access-control-allow-headers", ", ".join(REQUEST_HEADERS).encode())
_VARY: Header = (b"vary", b"Origin")


class Cors:
    """The origins whose pages may use the API: any, unless some are named.

    A page of an origin that is not named is told the first one that is, and its browser then refuses.
    """

    def __init__(self, origins: Iterable[str] = ("*",), *, max_age_s: int = 86400) -> None:
        named = tuple(origin.encode() for origin in origins)
        # What is said to one origin must not be served to another from a cache.
        varies = (_VARY,) if named != (b"*",) else ()
        self._by_origin: dict[bytes, tuple[Header, ...]] = {
            origin: ((b"access-control-allow-origin", origin), _EXPOSE, *varies) for origin in named
        }
        self._other = self._by_origin[named[0]]
        self._without_origin = tuple(header for header in self._other if header != _EXPOSE)
        self._max_age: Header = (b"access-control-max-age", b"%d" % max_age_s)

    def headers(self, origin: bytes | None) -> tuple[Header, ...]:
        """Return what an answer says to a page of this origin, or to a caller that is no page."""
        return self._without_origin if origin is None else self._by_origin.get(origin, self._other)

    def preflight(self, wanted: bytes | None, methods: Sequence[str]) -> Answer:
        """Answer OPTIONS on a path that has these methods."""
        if wanted is None:
            raise Malformed("OPTIONS needs the header Access-Control-Request-Method: name the method to ask about")
        if wanted.decode("latin-1") not in methods:
            raise NotAllowed(methods)
        allowed = ", ".join(methods).encode()
        return Answer(204, b"", ((b"access-control-allow-methods", allowed), _ALLOW_HEADERS, self._max_age))
