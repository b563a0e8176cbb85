"""Sending a request to a service, wherever it is: its route and its values in, its answer or its error out.

In this process the method is called that the route names; elsewhere the same route goes over HTTP. Either way
the same rights are asked for, the same answer comes back, and what goes wrong is raised as the same error.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, get_args

import msgspec

from remuda.access.principal import Context, Principal
from remuda.http.authentication import acting_for
from remuda.http.invocation import invocations
from remuda.http.responses import Collection, EtagView, Rendered, Viewed
from remuda.http.routes import NOTHING, AnyRoute, Call, Parameters, Table
from remuda.http.transport import claim_of
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.secrets import hide

if TYPE_CHECKING:  # takes long to import, and who has everything in one process needs none
    from remuda.http.client import Client


ServiceNow = Callable[[], Awaitable[Principal]]
"""Returns the service that asks, with its rights as they are now."""

_PAGE = 25


class Send(Protocol):
    """Reaches a service."""

    async def __call__(self, name: str, path: Parameters, context: Context, body: Any = None) -> None:
        """Do what a route does, by the route's name; raise what the service raises."""
        ...

    async def ask(
        self, name: str, path: Parameters, context: Context, body: Any = None, query: Parameters | None = None
    ) -> Any:
        """Do the same, and return the answer. A list is returned whole, so what asks for one asks for few."""
        ...

    def pages(
        self, name: str, path: Parameters, context: Context, query: Parameters | None = None
    ) -> AsyncGenerator[Sequence[Any]]:
        """Yield a list's items, some at a time, so that it may be long."""
        ...


class Here:
    """A service in this process."""

    def __init__(self, table: Table, services: object, *, impersonating: ServiceNow | None = None) -> None:
        """Take the service's table and what its routes call.

        `impersonating` is the service that asks, where it asks as whoever stands behind the context: with no more
        rights than both have.
        """
        self._routes, self._impersonating = by_name(table), impersonating
        self._invocations = invocations(table, services)
        self._decode = {name: _decoder(route) for name, route in self._routes.items()}

    async def __call__(self, name: str, path: Parameters, context: Context, body: Any = None) -> None:
        await self._handled(self._routes[name], path, context, body, None)

    async def ask(
        self, name: str, path: Parameters, context: Context, body: Any = None, query: Parameters | None = None
    ) -> Any:
        """Call the method, and return its result as clients read it."""
        answer = await self._handled(self._routes[name], path, context, body, query)
        match answer:
            case Viewed():
                return answer.schema()
            case Rendered():
                return self._decode[name](answer.body)
            case Collection():
                return [each async for page in _pages(answer, self._decode[name]) for each in page]
            case _:
                return answer

    async def pages(
        self, name: str, path: Parameters, context: Context, query: Parameters | None = None
    ) -> AsyncGenerator[Sequence[Any]]:
        """Call the method, and yield the items of its list."""
        answer = await self._handled(self._routes[name], path, context, None, query)
        async for page in _pages(answer, self._decode[name]):
            yield page

    async def _handled(
        self, route: AnyRoute, path: Parameters, context: Context, body: Any, query: Parameters | None
    ) -> Any:
        if self._impersonating is not None:
            context = await _as_caller(context, self._impersonating)
        call: Call[Any, Any, Any] = Call(
            context=context,
            path=path,
            query=route.query_type() if query is None else query,
            body=NOTHING if body is None else body,
        )
        return await self._invocations[route.name](call)


class There:
    """A service in another process."""

    def __init__(self, table: Table, client: "Client") -> None:
        """Take the service's table, and a client with the credentials of the service that asks."""
        self._routes, self._client = by_name(table), client

    async def __call__(self, name: str, path: Parameters, context: Context, body: Any = None) -> None:
        """Send the request."""
        await self.ask(name, path, context, body)

    async def ask(
        self, name: str, path: Parameters, context: Context, body: Any = None, query: Parameters | None = None
    ) -> Any:
        """Send the request, and read the answer."""
        route = self._routes[name]
        if route.is_paged:
            return await self._client.collect(route, path=path, query=query, context=context)
        return await self._client.send(route, path=path, query=query, body=body, context=context)

    async def pages(
        self, name: str, path: Parameters, context: Context, query: Parameters | None = None
    ) -> AsyncGenerator[Sequence[Any]]:
        """Send a request for each page."""
        async for page in self._client.pages(self._routes[name], path=path, query=query, context=context):
            yield page


def by_name(table: Table) -> dict[str, AnyRoute]:
    """Return a table's routes by their names."""
    return {route.name: route for route in table.routes}


async def _as_caller(context: Context, service: ServiceNow) -> Context:
    caller = context.principal
    asking = acting_for(await service(), claim_of(caller), impersonated=caller.access)
    return msgspec.structs.replace(context, principal=asking)


def _decoder(route: AnyRoute) -> Callable[[bytes], Any]:
    """Return what reads a rendered answer, or a rendered item of a list."""
    answer = get_args(route.response_type)[0] if route.is_collection else route.response_type
    return msgspec.json.Decoder(answer, dec_hook=hide).decode


async def _pages(collection: Collection[Any, Any], decode: Callable[[bytes], Any]) -> AsyncGenerator[Sequence[Any]]:
    store, view, after = collection.store, collection.view, None
    read = view.read if isinstance(view, EtagView) else lambda each: decode(view(each))
    while True:
        page = await store.list(
            collection.kind, labels=collection.labels, index=collection.index, limit=_PAGE, after=after
        )
        shown = [each for each in page.items if collection.visible is None or collection.visible(each)]
        yield [read(each) for each in shown]
        if page.next is None:
            return
        after = page.next
        await yield_to_loop()
