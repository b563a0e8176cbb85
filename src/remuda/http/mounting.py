"""One table from the routes of several rooms.

Each room's handlers are given that room's service and nothing else, so that a room can be mounted and tested alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from remuda.http.routes import AnyRoute


def within(room: Callable[[Any], object], routes: Iterable[AnyRoute]) -> list[AnyRoute]:
    """Return a room's routes as they are mounted with a service of which `room` returns that room's part.

    A route that names its service finds it by itself, and stays as it is.
    """
    return [
        route
        if route.handler is None or route.service is not None
        else replace(
            route,
            handler=_handler(room, route.handler),
            repeated=None if route.repeated is None else _handler(room, route.repeated),
        )
        for route in routes
    ]


def _handler(room: Callable[[Any], object], handler: Callable[[Any, Any], Any]) -> Any:
    async def handle(service: Any, call: Any) -> Any:
        return await handler(room(service), call)

    return handle
