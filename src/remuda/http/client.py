"""The typed client: a route and its values in, the route's answer or the server's error out.

It is made from the same table as the server, so both agree by construction, and a service port over HTTP is a few lines
that call `send`. Connections are pooled, everything has a time limit, and what can safely be sent again is sent again
(`calling`). A write under a context has the idempotency key of that operation, so that a caller which was restarted and
carries it out anew does not do it twice.

`watch` reconnects and resumes by itself, for ever. It raises Gone when the server no longer knows the changes since,
when rights have changed, so that changes alone do not tell what there is to see, or when it was cut off before it had
been told all that is there: begin anew then.
"""

import hashlib
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, get_args

import msgspec

from remuda.access.principal import Context
from remuda.http.bodies import FORM
from remuda.http.routes import ListQuery, PageQuery, Parameters, Route
from remuda.http.sse import Received
from remuda.http.transport import (
    Caller,
    ClientSettings,
    Credentials,
    Request,
    encode_body,
    encode_form,
    read_answer,
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
AnswerT = TypeVar("AnswerT")
ItemT = TypeVar("ItemT")

_KEYS = "c0a7f9f2-5d0a-4a34-8a0b-6d1d9b7c2e51"


@dataclass(frozen=True, slots=True)
class Seen(Generic[ItemT]):
    """What a watch tells. `synced`: all that was there has been told. `bookmark`: nothing happened up to here."""

    type: Literal["added", "modified", "deleted", "synced", "bookmark"]
    item: ItemT | None
    """The item; of a deleted one, its last state. None if it is about none."""
    version: str | None
    """Where another watch could begin; None while that is nowhere."""


class Client:
    """Calls one server. Share it, and close it at the end."""

    def __init__(
        self,
        server: str,
        *,
        credentials: Credentials,
        clock: Clock,
        randomness: Randomness,
        settings: ClientSettings | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take the server's address, as in `https://identity.example:6080`, and for https whom to trust and show."""
        self._settings = settings or ClientSettings()
        self._clock, self._randomness = clock, randomness
        self._caller = Caller(
            server, credentials=credentials, clock=clock, randomness=randomness, settings=self._settings, tls=tls
        )

    async def __aenter__(self) -> Self:
        """Use it until the end of the block."""
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        await self._caller.close()

    async def send(
        self,
        route: Route[Any, PathT, QueryT, BodyT, AnswerT],
        *,
        path: PathT | None = None,
        query: QueryT | None = None,
        body: BodyT | None = None,
        context: Context | None = None,
        if_match: str | None = None,
    ) -> AnswerT:
        """Send a request and return its answer, or raise the error that the server told."""
        answer = await self._send(route, path, query, body, context, if_match)
        return read_answer(answer, route.answer_type, server=self._caller.server)

    async def send_for_other(
        self,
        route: Route[Any, PathT, QueryT, BodyT, Any],
        kind: type[AnswerT],
        *,
        path: PathT | None = None,
        query: QueryT | None = None,
        body: BodyT | None = None,
        context: Context | None = None,
        if_match: str | None = None,
    ) -> AnswerT:
        """Send a request that is answered otherwise than usual (`Route.other`), and return that answer."""
        answer = await self._send(route, path, query, body, context, if_match)
        return read_answer(answer, kind, server=self._caller.server)

    async def _send(
        self,
        route: Route[Any, PathT, QueryT, BodyT, Any],
        path: PathT | None,
        query: QueryT | None,
        body: BodyT | None,
        context: Context | None,
        if_match: str | None,
    ) -> bytes:
        headers = {} if if_match is None else {"If-Match": if_match}
        encode = encode_form if route.form else encode_body
        request = self._request(route, path, query, context, headers, body=encode(body))
        return (await self._caller.exchange(request)).content

    async def pages(
        self,
        route: Route[Any, PathT, PageQueryT, Any, list[ItemT]],
        *,
        path: PathT | None = None,
        query: PageQueryT | None = None,
        context: Context | None = None,
    ) -> AsyncGenerator[list[ItemT]]:
        """Yield the pages of a list. One may be short, or empty, and not be the last."""
        asked = query or route.query_type()
        asked = msgspec.structs.replace(asked, limit=asked.limit or self._settings.page)
        while True:
            response = await self._caller.exchange(self._request(route, path, asked, context, {}))
            yield read_answer(response.content, route.answer_type, server=self._caller.server)
            more = response.headers.get("x-continue")
            if more is None:
                return
            asked = msgspec.structs.replace(asked, continue_=more)

    async def collect(
        self,
        route: Route[Any, PathT, PageQueryT, Any, list[ItemT]],
        *,
        path: PathT | None = None,
        query: PageQueryT | None = None,
        context: Context | None = None,
    ) -> list[ItemT]:
        """Return a whole list, read in pages."""
        return [item async for page in self.pages(route, path=path, query=query, context=context) for item in page]

    async def watch(
        self,
        route: Route[Any, PathT, ListQueryT, Any, list[ItemT]],
        *,
        path: PathT | None = None,
        query: ListQueryT | None = None,
        context: Context | None = None,
        since: str | None = None,
        heard: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Seen[ItemT]]:
        """Yield what there is and then what happens, or what happened after a version, without end.

        `heard` is called whenever the server has said something, if only that it lives, and all of it was yielded.
        """
        asked = msgspec.structs.replace(query or route.query_type(), watch=True)
        request = self._request(route, path, asked, context, {"Accept": "text/event-stream"})
        item_type, failures = get_args(route.answer_type)[0], 0
        while True:
            failure: RemudaError | None = None
            has_begun = False
            async with aclosing(self._caller.events(request, since, heard)) as events:
                async for event in events:
                    if isinstance(event, RemudaError):
                        failure = event
                        break
                    if event.id == "":
                        raise Gone(route.name, since or "0")
                    if event.type == "end":
                        break
                    failures, has_begun = 0, True
                    seen = self._seen(event, item_type)
                    since = seen.version or since
                    yield seen
            if has_begun and since is None:
                raise Gone(route.name, "0")
            failures += 1
            await self._clock.sleep(self._caller.retries.pause_s(failures, failure))

    def _seen(self, event: Received, item_type: Any) -> Seen[Any]:
        version = event.id or None
        match event.type:
            case "added" | "modified" | "deleted" as kind:
                return Seen(kind, read_answer(event.data, item_type, server=self._caller.server), version)
            case _:
                return Seen("synced" if b"synced" in event.data else "bookmark", None, version)

    def _request(
        self,
        route: Route[Any, PathT, QueryT, Any, Any],
        path: PathT | None,
        query: QueryT | None,
        context: Context | None,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
    ) -> Request:
        target = target_of(route, path or route.path_type(), query or route.query_type())
        if route.form:
            headers = {**headers, "Content-Type": FORM}
        if route.takes_key:
            headers = {**headers, "Idempotency-Key": self._key(route.method, target, body, context)}
        return Request(name=route.name, method=route.method, target=target, body=body, headers=headers, context=context)

    def _key(self, method: str, target: str, body: bytes | None, context: Context | None) -> str:
        """Return the key of a write: within one operation, the same for the same request and for no other.

        One that the caller chose is the name of what it does at the server, and goes as it is.
        """
        if context is None:
            return random_id(self._randomness)
        if context.key is not None:
            return context.key
        facts = (context.operation, method, target, hashlib.sha256(body or b"").hexdigest())
        return derived_id(_KEYS, msgspec.json.encode(facts).decode())
