"""Local and remote clients of a service: implementations of its API, made from its route table.

An API is a Protocol whose methods are named after routes. `local` calls the method of the service that a route names,
and applies the route's view; `remote` sends the same route over HTTP. Both check the same permissions, return the same
schema and raise the same errors. A method that does not fit its route is found when a client is built.

A method has the arguments of the service's method. It returns the route's response, or None if it ignores that. A paged
list is an asynchronous generator of its items, and `watch_networks` is the list-watch of the route `list_networks`.
"""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, get_args, get_type_hints

import msgspec

from remuda.access.principal import Context
from remuda.clients.watch import LocalWatch, RemoteWatch, WatchMessage, item_reader
from remuda.http.invocation import service_for
from remuda.http.responses import Collection, EtagView, Rendered, Viewed
from remuda.http.routes import AnyRoute, Table
from remuda.http.signatures import arguments_of
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.memo import IdentityMemo
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import hide
from remuda.store.objects import Resource

if TYPE_CHECKING:  # slow to import, and not needed if all services run in one process
    from remuda.http.client import Client

ApiT = TypeVar("ApiT")
Method = Callable[..., Any]

_WATCH, _LIST = "watch_", "list_"
_SINCE = "since"
"""The argument of a list-watch: the cursor after which it begins."""
_PAGE = 25
_MAX_SCHEMAS = 100


def local(api: type[ApiT], table: Table, services: object, *, watch: LocalWatch) -> ApiT:
    """Return the client of a service in this process. Raise ValueError if the API does not fit the routes."""
    methods = {name: _local_method(name, method, route, services, watch) for name, method, route in _routes(api, table)}
    return cast("ApiT", SimpleNamespace(**methods))


def remote(api: type[ApiT], table: Table, client: "Client", *, clock: Clock, randomness: Randomness) -> ApiT:
    """Return the client of a service in another process. Raise ValueError if the API does not fit the routes."""
    watch = RemoteWatch(client=client, clock=clock, randomness=randomness)
    methods = {name: _remote_method(name, method, route, client, watch) for name, method, route in _routes(api, table)}
    return cast("ApiT", SimpleNamespace(**methods))


def _methods(api: type) -> Iterator[tuple[str, Method]]:
    for each in api.__mro__:
        if each not in {object, Protocol}:
            members = vars(each).items()
            yield from ((name, member) for name, member in members if inspect.isfunction(member) and name[0] != "_")


def _routes(api: type, table: Table) -> Sequence[tuple[str, Method, AnyRoute]]:
    """Return the methods of an API with their routes, or raise ValueError with all that is wrong."""
    by_name, found, faults = {route.name: route for route in table.routes}, [], []
    for name, method in _methods(api):
        route = by_name.get(f"{_LIST}{name.removeprefix(_WATCH)}" if name.startswith(_WATCH) else name)
        if route is None:
            faults.append(f"{name} is no route")
            continue
        found.append((name, method, route))
        try:
            _check(name, method, route)
        except ValueError as error:
            faults.append(f"{name} {error}")
    if faults:
        raise ValueError(f"{api.__name__} does not fit the routes of {table.service}: {'; '.join(faults)}")
    return found


def _check(name: str, method: Method, route: AnyRoute) -> None:
    if route.calls is None:
        raise ValueError("is a route without a method of the service")
    if not name.startswith(_WATCH):
        arguments, own = arguments_of(method, route.inputs()), route.arguments
        is_prefix = own.positional[: len(arguments.positional)] == arguments.positional
        if not (is_prefix and arguments.keywords.items() <= own.keywords.items()):
            raise ValueError(f"takes its arguments otherwise than {route.calls.__qualname__}")
    elif not route.is_collection:
        raise ValueError("is a list that cannot be watched")
    elif not inspect.signature(method).parameters.keys() <= {"self", _SINCE}:
        raise ValueError(f"takes arguments, and a list-watch has none but {_SINCE}")
    returned, expected = _returned(method), _result_type(name, route)
    is_ignored = returned is NoneType and inspect.iscoroutinefunction(method)
    if not is_ignored and (returned != expected or inspect.iscoroutinefunction(method) == route.is_paged):
        raise ValueError(f"returns {returned}, and should return {expected}")


@cache
def _returned(method: Method) -> Any:
    return get_type_hints(method).get("return", NoneType)


def _result_type(name: str, route: AnyRoute) -> Any:
    if not route.is_paged:
        return route.response_type
    item: Any = get_args(route.response_type)[0]
    message: Any = WatchMessage
    generator: Any = AsyncGenerator
    return generator[message[item] if name.startswith(_WATCH) else item]


def _local_method(name: str, method: Method, route: AnyRoute, services: object, watch: LocalWatch) -> Method:
    assert route.calls is not None, "it is checked before"
    call = getattr(service_for(route, services), route.calls.__name__)
    call = call if inspect.iscoroutinefunction(route.calls) else _awaited(call)
    if name.startswith(_WATCH):
        return _local_watch(call, route, watch)
    if route.is_paged:
        return _local_list(call, route)
    return _without_result(call) if _returned(method) is NoneType else _with_result(call, route)


class _Schemas:
    """Schemas of the objects that one route has returned lately: most callers read the same few."""

    def __init__(self) -> None:
        self._of_view: dict[EtagView[Any, Any], IdentityMemo[Any, Any]] = {}

    def read(self, view: EtagView[Any, Any], found: Resource) -> Any:
        """Return the schema of an object, converted once while the object is the same."""
        known = self._of_view.get(view)
        if known is None:
            known = self._of_view[view] = IdentityMemo(view.read, limit=_MAX_SCHEMAS)
        return known(found)


def _with_result(call: Method, route: AnyRoute) -> Method:
    view, decode, schemas = route.view, _decoder(route), _Schemas()

    async def invoke(*arguments: Any, **keywords: Any) -> Any:
        result = await call(*arguments, **keywords)
        match result:
            case Resource() if view is not None:
                context: Context = arguments[0] if arguments else keywords["context"]
                return schemas.read(view.of(context.principal, result), result)
            case Viewed():
                return result.schema()
            case Rendered():
                return decode(result.body)
            case _:
                return result

    return invoke


def _without_result(call: Method) -> Method:
    async def invoke(*arguments: Any, **keywords: Any) -> None:
        await call(*arguments, **keywords)

    return invoke


def _local_list(call: Method, route: AnyRoute) -> Method:
    decode = _decoder(route)

    async def invoke(*arguments: Any, **keywords: Any) -> AsyncGenerator[Any]:
        collection: Collection[Any, Any] = await call(*arguments, **keywords)
        read, after = item_reader(collection, decode), None
        while True:
            page = await collection.store.list(collection.kind, **collection.listed, limit=_PAGE, after=after)
            for each in page.items:
                if collection.visible is None or collection.visible(each):
                    yield read(each)
            if page.next is None:
                return
            after = page.next
            await yield_to_loop()

    return invoke


def _local_watch(call: Method, route: AnyRoute, watch: LocalWatch) -> Method:
    decode, query = _decoder(route), (route.query_type(),) if "query" in route.arguments.positional else ()
    return lambda since="": watch.messages(lambda context: call(context, *query), decode, since)


def _awaited(call: Method) -> Method:
    async def invoke(*arguments: Any, **keywords: Any) -> Any:
        return call(*arguments, **keywords)

    return invoke


def _decoder(route: AnyRoute) -> Callable[[bytes], Any]:
    """Return the function that decodes a rendered response, or a rendered item of a list."""
    response = get_args(route.response_type)[0] if route.is_collection else route.response_type
    return msgspec.json.Decoder(response, dec_hook=hide).decode


def _remote_method(name: str, method: Method, route: AnyRoute, client: "Client", watch: RemoteWatch) -> Method:
    if name.startswith(_WATCH):
        return lambda since="": watch.messages(route, since)
    signature = inspect.signature(method)

    def request(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
        bound = signature.bind(None, *arguments, **keywords)
        bound.apply_defaults()
        given = bound.arguments
        return {
            "context": given.get("context"),
            "path": _parameters(route.path_type, given),
            "query": given.get("query") or _parameters(route.query_type, given),
        } | ({"body": given["body"]} if "body" in given else {})

    if route.is_paged:

        async def items(*arguments: Any, **keywords: Any) -> AsyncGenerator[Any]:
            async for page in client.pages(route, **request(arguments, keywords)):
                for each in page:
                    yield each

        return items

    async def send(*arguments: Any, **keywords: Any) -> Any:
        return await client.send(route, **request(arguments, keywords))

    return send


def _parameters(kind: type[msgspec.Struct], given: Mapping[str, Any]) -> Any:
    return kind(**{name: given[name] for name in kind.__struct_fields__ if name in given})
