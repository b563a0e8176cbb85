"""Sending a request to a service, wherever it is: its route and its values in, nothing or its error out.

In this process a route's handler is called with the service itself; elsewhere the same route goes over HTTP. Either way
the same rights are asked for, and what goes wrong is raised as the same error.
"""

from typing import TYPE_CHECKING, Any, Protocol

from remuda.access.context import Context
from remuda.http.routes import NOTHING, AnyRoute, Call, Parameters, Table

if TYPE_CHECKING:  # takes long to import, and who has everything in one process needs none
    from remuda.http.client import Client

__all__ = ["Here", "Send", "There"]


class Send(Protocol):
    """Reaches a service."""

    async def __call__(self, name: str, path: Parameters, context: Context, body: Any = None) -> None:
        """Do what a route does, by the route's name; raise what the service raises."""
        ...


class Here:
    """A service in this process."""

    def __init__(self, table: Table, service: object) -> None:
        self._routes, self._service = _by_name(table), service

    async def __call__(self, name: str, path: Parameters, context: Context, body: Any = None) -> None:
        """Call the handler."""
        call: Call[Any, Any, Any] = Call(
            context=context, path=path, query=NOTHING, body=NOTHING if body is None else body
        )
        await self._routes[name].handler(self._service, call)


class There:
    """A service in another process."""

    def __init__(self, table: Table, client: "Client") -> None:
        self._routes, self._client = _by_name(table), client

    async def __call__(self, name: str, path: Parameters, context: Context, body: Any = None) -> None:
        """Send the request."""
        await self._client.send(self._routes[name], path=path, body=body, context=context)


def _by_name(table: Table) -> dict[str, AnyRoute]:
    return {route.name: route for route in table.routes}
