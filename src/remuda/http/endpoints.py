"""A route with everything about it that can be worked out before the first request comes."""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import msgspec

from remuda.http.answers import JSON, Answer, Header
from remuda.http.audit import Operation
from remuda.http.binding import Binder
from remuda.http.bodies import BodyReader
from remuda.http.errors import NO_CACHE
from remuda.http.replies import Rendered
from remuda.http.routes import AnyRoute, Nothing
from remuda.http.secrets import reveal

__all__ = ["Endpoint"]

_EMPTY = (NO_CACHE,)
_FILLED = (JSON, NO_CACHE)


class Endpoint:
    """One route, ready to be called."""

    __slots__ = (
        "_body",
        "_encode",
        "_is_empty",
        "_success",
        "bind_path",
        "bind_query",
        "is_read",
        "operation",
        "parameters",
        "route",
    )

    def __init__(self, route: AnyRoute) -> None:
        self.route = route
        self.is_read = route.method == "GET"
        self.parameters = route.parameters
        self.operation = Operation(verb=route.method, route=route.path)
        self.bind_path = Binder(route.path_type, route.parameters).bind_path
        # A list that cannot be watched says so, rather than ending at once.
        refused = ("watch",) if route.is_list and not route.is_collection else ()
        self.bind_query = Binder(route.query_type, refused=refused).bind_query
        self._body = BodyReader(route.body_type) if route.has_body else None
        encoder = msgspec.json.Encoder(enc_hook=reveal) if route.holds_secret else msgspec.json.Encoder()
        self._encode: Callable[[Any], bytes] = encoder.encode
        self._is_empty = route.answer_type is NoneType
        self._success = route.success

    @property
    def has_body(self) -> bool:
        """Clients send a body with it."""
        return self._body is not None

    def read_body(self, body: bytes, headers: Mapping[bytes, bytes]) -> Any:
        """Return the body as the route's type, or nothing if the route takes none."""
        return _NOTHING if self._body is None else self._body.read(body, headers.get(b"content-type"))

    def answer(self, reply: Any) -> Answer:
        """Return a handler's reply as it goes to the wire; collections are somebody else's."""
        if self._is_empty:
            return Answer(self._success, b"", _EMPTY)
        if isinstance(reply, Rendered):
            return Answer(self._success, reply.body, (*_FILLED, *_headers(reply)))
        return Answer(self._success, self._encode(reply), _FILLED)


_NOTHING = Nothing()


def _headers(reply: Rendered[Any]) -> list[Header]:
    headers = [(name.lower().encode(), value.encode()) for name, value in reply.headers.items()]
    if reply.etag is not None:
        headers.append((b"etag", reply.etag.encode()))
    return headers
