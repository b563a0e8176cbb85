"""The ways into a service: its API in this process, its port in this process, and its typed client over a socket.

Every denial must be the same through each of them.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, get_args, get_origin
from urllib.parse import quote

import msgspec

from remuda.access.principal import ANONYMOUS, Context
from remuda.http import client as typed
from remuda.http.asgi import ASGIApp
from remuda.http.responses import Collection, without_etag
from remuda.http.routes import AnyRoute, Table
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import RemudaError
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Contract
from tests.kit.asgi.validating import Validated
from tests.kit.proofs.authorization.credentials import CallerCredentials
from tests.kit.proofs.authorization.matrix import Caller, Row

_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked."""

    row: Row
    values: Mapping[str, str]
    query: Sequence[tuple[str, str]] = ()

    def having(self, name: str, value: str) -> "Request":
        """Return it with another value for a parameter."""
        return replace(self, values={**self.values, name: value})

    @property
    def body(self) -> Any:
        """The body, as JSON."""
        return None if self.row.body is None else self.row.body(self.values)

    @property
    def target(self) -> str:
        """The path on the wire: a value is encoded twice, because servers decode it twice."""
        path = self.row.path
        for name in _PARAMETER.findall(path):
            path = path.replace(f"{{{name}}}", quote(quote(self.values[name], safe=""), safe=""))
        return path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. A port does not tell which success it was, so that is whichever was to be."""

    status: int
    said: str = ""
    """What an error says."""
    answer: Any = None


class Transport(Protocol):
    """A way in."""

    async def ask(self, caller: Caller, request: Request) -> Outcome:
        """Ask as somebody."""
        ...


class Keys(Protocol):
    """What callers have to get in."""

    def headers(self, caller: Caller) -> Mapping[str, str]:
        """Return what a caller sends to say who it is."""
        ...


class ApiTransport:
    """HTTP without a socket; every answer is held against the documents."""

    def __init__(self, asgi: ASGIApp, contract: Contract, gate: Keys) -> None:
        validator = None if isinstance(asgi, Validated) else contract  # which has validated it already
        self._client, self._credentials = Client(app=asgi, contract=validator), gate

    async def ask(self, caller: Caller, request: Request) -> Outcome:
        """Send it."""
        reply = await self._client.send(
            request.row.method,
            request.target,
            query=request.query,
            **{"form" if request.row.is_form else "body": request.body},
            headers=self._credentials.headers(caller),
        )
        told = reply.json if reply.media == "application/json" and reply.body else None
        if reply.status >= 400:
            return Outcome(reply.status, reply.body.decode() if told is None else told["error_description"])
        return Outcome(reply.status, answer=told)


PortCall = Callable[[Context, Request], Awaitable[Any]]
"""Calls the method of a port that an operation stands for."""


class PortTransport:
    """The service object itself. Who could not be authenticated never gets here, and has no permissions if it did."""

    def __init__(self, calls: Mapping[str, PortCall], credentials: CallerCredentials) -> None:
        self._calls, self._credentials = calls, credentials

    async def ask(self, caller: Caller, request: Request) -> Outcome:
        """Call the method, with the caller in its context."""
        principal = self._credentials.principal(caller) if caller.is_known else ANONYMOUS
        context = Context(principal=principal, operation=random_id(SystemRandomness()))
        try:
            answer = await self._calls[request.row.operation](context, request)
            if isinstance(answer, Collection):
                answer = await listed(answer)
        except RemudaError as error:
            return Outcome(error.status, error.message)
        return Outcome(request.row.success, answer=answer)


async def listed(collection: Collection[Any, Any]) -> Any:
    """Return what the kernel would make of a collection."""
    page = await collection.store.list(collection.kind, labels=collection.labels, index=collection.index)
    shown = [item for item in page.items if collection.visible is None or collection.visible(item)]
    return [msgspec.json.decode(without_etag(collection.view, collection.view(item))) for item in shown]


class SocketTransport:
    """The typed client, as another process would use it."""

    def __init__(self, server: str, table: Table, gate: Keys) -> None:
        self._server, self._credentials = server, gate
        self._routes = {route.name: route for route in table.routes}
        self._clients: dict[str, typed.Client] = {}

    async def ask(self, caller: Caller, request: Request) -> Outcome:
        """Send it."""
        route = self._routes[request.row.operation]
        try:
            answer = await self._answer(
                caller,
                request,
                path=typed_path(route, request),
                query=typed_query(route, request),
                body=None if request.body is None else msgspec.convert(request.body, route.body_type),
            )
        except RemudaError as error:
            return Outcome(error.status, error.message)
        return Outcome(request.row.success, answer=msgspec.to_builtins(answer, enc_hook=str))

    async def _answer(self, caller: Caller, request: Request, **sent: Any) -> Any:
        client, route = self._client(caller), self._routes[request.row.operation]
        if route.other is not None and route.other.status == request.row.success:
            return await client.send(route, response_type=route.other.response_type, **sent)
        return await client.send(route, **sent)

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()

    def _client(self, caller: Caller) -> typed.Client:
        if caller.name not in self._clients:
            self._clients[caller.name] = typed.Client(
                self._server,
                credentials=_Shown(self._credentials.headers(caller)),
                clock=SystemClock(),
                randomness=SystemRandomness(),
            )
        return self._clients[caller.name]


class _Shown:
    """Credentials, with what a proxy would add to a service's."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    def headers(self, context: Context | None) -> Mapping[str, str]:  # noqa: ARG002  they are the caller's own
        """Return them."""
        return self._headers


def typed_path(route: AnyRoute, request: Request) -> Any:
    """Return the parameters of a request's path, as its route has them."""
    return msgspec.convert({name: request.values[name] for name in route.parameters}, route.path_type)


def typed_query(route: AnyRoute, request: Request) -> Any:
    """Return the parameters of a request's query, as its route has them."""
    fields = msgspec.structs.fields(route.query_type)
    several = {each.encode_name for each in fields if _origin(each.type) is tuple}
    given: dict[str, Any] = dict(request.query)
    for name in several & given.keys():
        given[name] = [value for each, value in request.query if each == name]
    return msgspec.convert(given, route.query_type, strict=False)  # a text that is a number or a truth is that


def _origin(kind: Any) -> Any:
    return get_origin(get_args(kind)[0] if get_origin(kind) is Annotated else kind)
