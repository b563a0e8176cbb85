"""Session of one command: requests to the services with the access token of a login context.

An expired access token is refreshed once. Responses are decoded as schema structs, and an error is raised with a
message for the user of the command.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlencode

from msgspec.structs import replace

from remuda.cli.client.contexts import ContextsFile, LoginContext
from remuda.cli.client.oauth import refresh_tokens, revoke_token
from remuda.cli.client.transport import Connections, explained
from remuda.http.transport import HttpTransport, OutboundRequest, encode_body, read_response
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone, RemudaError, Unauthenticated, Unavailable, Unusable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness

if TYPE_CHECKING:
    import httpx2

    from remuda.http.sse import Received

Service = Literal["identity", "region", "compute"]
"""A service, as login contexts name it."""
Query = Mapping[str, str | Sequence[str] | None]
"""Query parameters; those that are None are left out."""
ResponseT = TypeVar("ResponseT")

_PAGE = "500"
_WATCH_PAUSE_S = 1.0


class ClientSession(AbstractAsyncContextManager["ClientSession"]):
    """Requests of one command. Use it as a context manager."""

    def __init__(self, name: str, context: LoginContext, file: ContextsFile, *, clock: Clock | None = None) -> None:
        self.name, self.context = name, context
        self._file, self._connections = file, Connections(clock, certificate=context.certificate)

    async def __aexit__(self, *error: object) -> None:
        await self._connections.__aexit__(*error)

    async def get(
        self, service: Service, path: str, response_type: type[ResponseT], query: Query | None = None
    ) -> ResponseT:
        return await self.send("GET", service, path, response_type=response_type, query=query)

    async def get_with_etag(self, service: Service, path: str, response_type: type[ResponseT]) -> tuple[ResponseT, str]:
        response = await self._exchange("GET", service, path)
        return self._decoded(service, response.content, response_type), response.headers.get("etag", "")

    async def list_all(
        self, service: Service, path: str, item_type: type[ResponseT], query: Query | None = None, *, paged: bool = True
    ) -> list[ResponseT]:
        """Return all items of a list, page by page if it has pages."""
        return [item async for page in self.pages(service, path, item_type, query, paged=paged) for item in page]

    async def pages(
        self, service: Service, path: str, item_type: type[ResponseT], query: Query | None = None, *, paged: bool = True
    ) -> AsyncGenerator[list[ResponseT]]:
        """Yield the pages of a list, which is one if it has none."""
        parameters = {**(query or {}), **({"limit": _PAGE} if paged else {})}
        while True:
            response = await self._exchange("GET", service, path, parameters)
            page: Any = list[item_type]  # type: ignore[valid-type]  # a type that is known when this runs
            yield self._decoded(service, response.content, page)
            if "x-continue" not in response.headers:
                return
            parameters["continue"] = response.headers["x-continue"]

    async def send(
        self,
        method: str,
        service: Service,
        path: str,
        body: Any = None,
        *,
        response_type: type[ResponseT],
        query: Query | None = None,
        if_match: str = "",
    ) -> ResponseT:
        """Send a request and return its response. A type of None reads no response."""
        response = await self._exchange(method, service, path, query, encode_body(body), if_match)
        return self._decoded(service, response.content, response_type)

    async def watch(
        self, service: Service, path: str, item_type: type[ResponseT], query: Query
    ) -> AsyncGenerator[tuple[str, ResponseT]]:
        """Yield the present items, each as added, and then every change. A stream that ends is resumed."""
        cursor = ""
        target = {**query, "watch": "true"}
        while True:
            try:
                async with aclosing(self._events(service, path, target, cursor)) as events:
                    async for event in events:
                        cursor = cursor if event.id is None else event.id
                        if event.type in {"added", "modified", "deleted"}:
                            yield event.type, self._decoded(service, event.data, item_type)
            except Gone:
                cursor = ""
            except Unavailable:
                if not cursor:
                    raise
            await self._connections.clock.sleep(_WATCH_PAUSE_S)

    async def revoke(self) -> None:
        """End the login at the server, if it has a refresh token."""
        if self.context.tokens.refresh is not None:
            await revoke_token(self._connections, self.context.endpoints["identity"], self.context.tokens.refresh)

    async def _exchange(
        self,
        method: str,
        service: Service,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        if_match: str = "",
    ) -> "httpx2.Response":
        headers = {"If-Match": if_match} if if_match else {}
        if method != "GET":
            headers["Idempotency-Key"] = random_id(SystemRandomness())
        transport, target = self._target(service, path, query)
        try:
            try:
                return await transport.exchange(self._request(method, target, headers, body))
            except Unauthenticated:
                await self._refresh()
                return await transport.exchange(self._request(method, target, headers, body))
        except RemudaError as error:
            raise self._explained(error, body) from None

    async def _events(self, service: Service, path: str, query: Query, cursor: str) -> "AsyncGenerator[Received]":
        transport, target = self._target(service, path, query)
        is_refreshed = False
        while True:
            request = self._request("GET", target, {"Accept": "text/event-stream"})
            try:
                async with aclosing(transport.events(request, cursor or None)) as events:
                    async for event in events:
                        if isinstance(event, RemudaError):
                            raise event
                        yield event
            except Unauthenticated as error:
                if is_refreshed:
                    raise self._explained(error) from None
                await self._refresh()
                is_refreshed = True
            except RemudaError as error:
                raise self._explained(error) from None
            else:
                return

    def _target(self, service: Service, path: str, query: Query | None) -> tuple[HttpTransport, str]:
        if service not in self.context.endpoints:
            message = f"The context {self.name} has no address of the service {service}: run remuda login again."
            raise Unusable(message)
        transport, prefix = self._connections.at(self.context.endpoints[service])
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return transport, f"{prefix}{path}?{urlencode(given, doseq=True)}" if given else f"{prefix}{path}"

    def _request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> OutboundRequest:
        bearer = {"Authorization": f"Bearer {self.context.tokens.access.reveal()}"}
        name = f"{method} {target.partition('?')[0]}"
        return OutboundRequest(name=name, method=method, target=target, body=body, headers={**headers, **bearer})

    async def _refresh(self) -> None:
        """Take new tokens. One command refreshes at a time, because a refresh token is valid once."""
        if self.context.tokens.refresh is None:
            raise self._expired()
        with self._file.locked():
            contexts = self._file.read()
            known = contexts.contexts.get(self.name)
            if known is None or known.tokens.refresh is None:
                raise self._expired()
            if known.tokens.access.reveal() == self.context.tokens.access.reveal():
                tokens = await refresh_tokens(self._connections, known.endpoints["identity"], known.tokens.refresh)
                known = replace(known, tokens=tokens)
                self._file.write(contexts.with_context(self.name, known))
        self.context = known

    def _explained(self, error: RemudaError, body: bytes | None = None) -> RemudaError:
        return self._expired() if isinstance(error, Unauthenticated) else explained(error, body)

    def _expired(self) -> Unauthenticated:
        return Unauthenticated(f"You are no longer logged in (context {self.name}): log in again with remuda login.")

    def _decoded(self, service: Service, content: bytes, response_type: type[ResponseT]) -> ResponseT:
        return read_response(content, response_type, server=self.context.endpoints[service])
