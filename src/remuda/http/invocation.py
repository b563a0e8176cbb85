"""Invocations: what each route calls, bound to the service's instance and to the arguments that it takes.

Everything is decided when an API or an in-process client is built: which instance, which arguments, and what becomes of
the result. An invocation of a method without a view is the method itself with its arguments, and no coroutine more.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import iscoroutinefunction
from operator import attrgetter
from types import NoneType
from typing import Any

from remuda.http.responses import EtagView, Viewed, split_etag
from remuda.http.routes import AnyRoute, Call, Table
from remuda.http.signatures import Arguments, Method, returns_nothing
from remuda.store.objects import Resource

Invocation = Callable[[Call[Any, Any, Any]], Coroutine[Any, Any, Any]]
"""Takes a call, and returns what the route responds with: a value, or one of `responses`."""


def invocations(table: Table, services: object) -> Mapping[str, Invocation]:
    return {route.name: invocation(route, services) for route in table.routes}


def invocation(route: AnyRoute, services: object) -> Invocation:
    """Return what a route calls. Raise ValueError unless exactly one of the services is the route's.

    The services are a dataclass that has one of each class, a mapping of them, or the only one that there is. A route
    that has a handler and no service of its own is given all of them.
    """
    if route.calls is not None:
        return _invocation(route, route.calls, route.arguments, services)
    assert route.handler is not None, "a table checks that a route has one or the other"
    return partial(route.handler, services if route.service is None else service_for(route, services))


def repeat_invocation(route: AnyRoute, services: object) -> Invocation | None:
    """Return what a route calls for a repeat whose response was not stored, if there is anything."""
    if route.repeat_calls is None:
        return None
    return _invocation(route, route.repeat_calls, route.repeat_arguments, services)


def service_for(route: AnyRoute, services: object) -> Any:
    assert route.service is not None, "a route that calls a method has a service"
    if isinstance(services, route.service):
        return services
    found = [each for each in _all(services) if isinstance(each, route.service)]
    if len(found) != 1:
        service, present = route.service.__name__, sorted(type(each).__name__ for each in _all(services))
        raise ValueError(f"{route.name} needs one {service}, and there are {len(found)} among the services {present}")
    return found[0]


def _all(services: object) -> list[object]:
    if isinstance(services, Mapping):
        return list(services.values())
    if is_dataclass(services):
        return [getattr(services, each.name) for each in fields(services)]
    return []


def _invocation(route: AnyRoute, method: Method, arguments: Arguments, services: object) -> Invocation:
    service = service_for(route, services)
    call = _call(getattr(service, method.__name__), arguments)
    invoke = call if iscoroutinefunction(method) else _awaited(call)
    if route.response_type is NoneType:
        return invoke if returns_nothing(method) else _without_result(invoke)
    if route.view is None:
        return invoke
    if route.method != "GET":
        return _viewed(invoke, route.view)
    if not hasattr(service, "store"):
        raise ValueError(f"{route.name} reads a view from the store, and {type(service).__name__} has no store")
    return _read_view(invoke, service.store, route.view)


def _call(method: Method, arguments: Arguments) -> Callable[[Call[Any, Any, Any]], Any]:
    """Return a function that calls a bound method with what it takes of a call."""
    values, names = _values(arguments.positional), tuple(arguments.keywords)
    if not names:
        return lambda call: method(*values(call))
    named = _values(tuple(arguments.keywords.values()))
    return lambda call: method(*values(call), **dict(zip(names, named(call), strict=True)))


def _values(attributes: tuple[str, ...]) -> Callable[[Call[Any, Any, Any]], tuple[Any, ...]]:
    if not attributes:
        return lambda _: ()
    get = attrgetter(*attributes)
    return get if len(attributes) > 1 else lambda call: (get(call),)  # of one attribute it returns no tuple


def _awaited(call: Callable[[Call[Any, Any, Any]], Any]) -> Invocation:
    async def invoke(values: Call[Any, Any, Any]) -> Any:
        return call(values)

    return invoke


def _without_result(call: Invocation) -> Invocation:
    async def invoke(values: Call[Any, Any, Any]) -> None:
        await call(values)

    return invoke


def _viewed(call: Invocation, view: EtagView[Any, Any]) -> Invocation:
    async def invoke(values: Call[Any, Any, Any]) -> Any:
        result = await call(values)
        return Viewed(view.of(values.context.principal, result), result) if isinstance(result, Resource) else result

    return invoke


def _read_view(call: Invocation, store: Any, view: EtagView[Any, Any]) -> Invocation:
    """Return an invocation that responds with the bytes that the store caches of what the method found."""

    async def invoke(values: Call[Any, Any, Any]) -> Any:
        result = await call(values)
        if not isinstance(result, Resource):
            return result
        shown = view.of(values.context.principal, result)
        rendered = await store.get_view(type(result), result.name, shown)
        return split_etag(rendered, has_secret=shown.shows_secret(result))

    return invoke
