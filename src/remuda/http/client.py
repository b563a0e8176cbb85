"""Typed client: it sends a request of a route and returns the typed response, or raises the server's error.

It is built from the same route table as the server, so both agree by construction, and a service port over HTTP is a
few lines that call `send`. Connections are pooled, every call has a time limit, and requests that are safe to repeat
are retried (`transport`). A write under a context carries the idempotency key of that operation, so a caller that
restarts and repeats it does not execute it twice.

`watch` reconnects and resumes by itself, without end. It raises Gone if the server no longer has the changes since, if
permissions have changed, so that changes alone do not describe what is visible, or if it was interrupted before the
initial objects were complete: the caller has to start over.
"""

import hashlib
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

import msgspec

from remuda.access.principal import Context
from remuda.http.bodies import FORM
from remuda.http.routes import Route
from remuda.http.schema import ListQuery, PageQuery, Parameters
from remuda.http.sse import Received
from remuda.http.transport import (
    ClientCredentials,
    ClientSettings,
    HttpTransport,
    OutboundRequest,
    encode_body,
    encode_form,
    read_response,
    target_of,
)
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone, RemudaError
from remuda.kernel.ids import derived_id, random_id
from remuda.kernel.randomness import Randomness

PathT = TypeVar("PathT", bound=Parameters)
QueryT = TypeVar("QueryT", bound=Parameters)
PageQueryT = TypeVar("PageQueryT", bound=PageQuery)
ListQueryT = TypeVar("ListQueryT", bound=ListQuery)
BodyT = TypeVar("BodyT")
ResponseT = TypeVar("ResponseT")
ItemT = TypeVar("ItemT")

_KEYS = "c0a7f9f2-5d0a-4a34-8a0b-6d1d9b7c2e51"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[ItemT]):
    """An event of a watch. `synced`: the initial objects are complete. `bookmark`: nothing happened up to here."""

    type: Literal["added", "modified", "deleted", "synced", "bookmark"]
    item: ItemT | None
    """The item, or the last state of a deleted one; None if the event has none."""
    version: str | None
    """Cursor from which another watch can begin; None while there is none."""


class Client(AbstractAsyncContextManager["Client"]):
    """Client of one server. It is shared, and closed at the end."""

    def __init__(
        self,
        server: str,
        *,
        credentials: ClientCredentials,
        clock: Clock,
        randomness: Randomness,
        settings: ClientSettings | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take the server's URL, as in `https://identity.example:6080`, and the TLS settings for https."""
        self._settings = settings or ClientSettings()
        self._clock, self._randomness = clock, randomness
        self._caller = HttpTransport(
            server, credentials=credentials, clock=clock, randomness=randomness, settings=self._settings, tls=tls
        )

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._caller.close()

    async def send(
        self,
        route: Route[Any, PathT, QueryT, BodyT, ResponseT],
        *,
        path: PathT | None = None,
        query: QueryT | None = None,
        body: BodyT | None = None,
        context: Context | None = None,
        if_match: str | None = None,
        response_type: type[ResponseT] | None = None,
    ) -> ResponseT:
        """Send a request and return its response, or raise the server's error.

        A caller that expects the alternative response of the route (`Route.other`) passes its type.
        """
        headers = {} if if_match is None else {"If-Match": if_match}
        encode = encode_form if route.form else encode_body
        request = self._request(route, path, query, context, headers, body=encode(body))
        content = (await self._caller.exchange(request)).content
        return read_response(content, response_type or route.response_type, server=self._caller.server)

    async def pages(
        self,
        route: Route[Any, PathT, PageQueryT, Any, list[ItemT]],
        *,
        path: PathT | None = None,
        query: PageQueryT | None = None,
        context: Context | None = None,
    ) -> AsyncGenerator[list[ItemT]]:
        """Yield the pages of a list. A page may be short, or empty, without being the last."""
        request_query = query or route.query_type()
        request_query = msgspec.structs.replace(request_query, limit=request_query.limit or self._settings.page)
        while True:
            response = await self._caller.exchange(self._request(route, path, request_query, context, {}))
            yield read_response(response.content, route.response_type, server=self._caller.server)
            more = response.headers.get("x-continue")
            if more is None:
                return
            request_query = msgspec.structs.replace(request_query, continue_=more)

    async def collect(
        self,
        route: Route[Any, PathT, PageQueryT, Any, list[ItemT]],
        *,
        path: PathT | None = None,
        query: PageQueryT | None = None,
        context: Context | None = None,
    ) -> list[ItemT]:
        return [item async for page in self.pages(route, path=path, query=query, context=context) for item in page]

    async def watch(
        self,
        route: Route[Any, PathT, ListQueryT, Any, list[ItemT]],
        *,
        path: PathT | None = None,
        query: ListQueryT | None = None,
        context: Context | None = None,
        since: str | None = None,
        on_message: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent[ItemT]]:
        """Yield the present objects and then changes, or the changes after a version, without end.

        `on_message` is called whenever the server has sent something, even a heartbeat, and all of it was yielded.
        """
        request_query = msgspec.structs.replace(query or route.query_type(), watch=True)
        request = self._request(route, path, request_query, context, {"Accept": "text/event-stream"})
        item_type, failures = get_args(route.response_type)[0], 0
        while True:
            failure: RemudaError | None = None
            has_begun = False
            async with aclosing(self._caller.events(request, since, on_message)) as events:
                async for event in events:
                    if isinstance(event, RemudaError):
                        failure = event
                        break
                    if event.id == "":
                        raise Gone(route.name, since or "0")
                    if event.type == "end":
                        break
                    failures, has_begun = 0, True
                    change = self._watch_event(event, item_type)
                    since = change.version or since
                    yield change
            if has_begun and since is None:
                raise Gone(route.name, "0")
            failures += 1
            await self._clock.sleep(self._caller.retries.pause_s(failures, getattr(failure, "retry_after_s", 0.0)))

    def _watch_event(self, event: Received, item_type: Any) -> WatchEvent[Any]:
        version = event.id or None
        match event.type:
            case "added" | "modified" | "deleted" as kind:
                return WatchEvent(kind, read_response(event.data, item_type, server=self._caller.server), version)
            case _:
                return WatchEvent("synced" if b"synced" in event.data else "bookmark", None, version)

    def _request(
        self,
        route: Route[Any, PathT, QueryT, Any, Any],
        path: PathT | None,
        query: QueryT | None,
        context: Context | None,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
    ) -> OutboundRequest:
        target = target_of(route, path or route.path_type(), query or route.query_type())
        if route.form:
            headers = {**headers, "Content-Type": FORM}
        if route.takes_key:
            headers = {**headers, "Idempotency-Key": self._key(route.method, target, body, context)}
        return OutboundRequest(
            name=route.name, method=route.method, target=target, body=body, headers=headers, context=context
        )

    def _key(self, method: str, target: str, body: bytes | None, context: Context | None) -> str:
        """Return the caller's idempotency key, or one that is unique for each request of an operation."""
        if context is None:
            return random_id(self._randomness)
        if context.key is not None:
            return context.key
        facts = (context.operation, method, target, hashlib.sha256(body or b"").hexdigest())
        return derived_id(_KEYS, msgspec.json.encode(facts).decode())
