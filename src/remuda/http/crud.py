"""Routes of a resource that is listed, created, read, updated and deleted.

`crud` declares the five routes that most resources have in common, each calling the service's method of that name. What
differs in one of them is given in `overrides`; a route that is not one of the five is declared by itself.
"""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal

from remuda.access.principal import Permission, Verb
from remuda.http.responses import EtagView
from remuda.http.routes import AnyRoute, Route, Scope
from remuda.http.schema import NamedListQuery, Nothing, Parameters
from remuda.http.signatures import returns_nothing

CrudOperation = Literal["list", "create", "get", "update", "delete"]
"""One of the five. It is the name of the service's method, and begins the name of the route."""

_VERBS: Mapping[CrudOperation, Verb] = {
    "list": "read",
    "create": "create",
    "get": "read",
    "update": "update",
    "delete": "delete",
}


def crud(
    service: type,
    *,
    path: str,
    item: type[Parameters],
    name: str,
    noun: str,
    permission: Callable[[Verb], Permission],
    read: type,
    view: EtagView[Any, Any] | None = None,
    create: type | None = None,
    update: type | None = None,
    query: type[Parameters] = NamedListQuery,
    parent: type[Parameters] = Nothing,
    scope: Scope = "project",
    names: str = "",
    plural_noun: str = "",
    without: tuple[CrudOperation, ...] = (),
    accepted: tuple[CrudOperation, ...] = ("update", "delete"),
    is_conditional: bool = True,
    summaries: Mapping[CrudOperation, str] | None = None,
    descriptions: Mapping[CrudOperation, str] | None = None,
    overrides: Mapping[CrudOperation, Mapping[str, Any]] | None = None,
) -> list[AnyRoute]:
    """Return the routes of a resource, in the order list, create, get, update, delete.

    `path` is the collection's. `item` has the parameters of one object: those of `parent`, and its own, which is the
    last segment of its path. `name` ends the routes' names (`network` in `create_network`). `noun` goes into the
    summaries, with its article (`a network`). `names` and `plural_noun` are their plurals, made with an s if left out.

    Without a body type for `create` or `update` there is no such route, and none for what is named in `without`. What
    is `accepted` responds 202, since a controller completes it. If the method that creates or updates returns nothing,
    so does the route. `summaries`, `descriptions` and `overrides` (any fields of `Route`) are by operation.
    """
    plural = plural_noun or f"{noun.removeprefix('a ').removeprefix('an ')}s"
    many = {"path": path, "path_type": parent}
    one = {"path": f"{path}/{{{_own_parameter(item, parent)}}}", "path_type": item}
    viewed, conditional = {"response_type": read, "view": view}, {"is_conditional": is_conditional}
    found: dict[CrudOperation, dict[str, Any]] = {
        "list": {**many, "method": "GET", "summary": f"List the {plural} that the caller may see"},
        "create": {**many, **viewed, "method": "POST", "summary": f"Create {noun}", "body_type": create},
        "get": {**one, **viewed, "method": "GET", "summary": f"Read {noun}"},
        "update": {**one, **viewed, **conditional, "method": "PUT", "summary": f"Update {noun}", "body_type": update},
        "delete": {**one, **conditional, "method": "DELETE", "summary": f"Delete {noun}"},
    }
    found["list"] |= {"name": f"list_{names or f'{name}s'}", "query_type": query, "response_type": _list_of(read)}
    found["create"] |= {"success": 201, "errors": (404,)}
    for operation in accepted:
        found[operation]["success"] = 202
    for operation, summary in (summaries or {}).items():
        found[operation]["summary"] = summary
    routes = []
    for operation, fields in found.items():
        if operation in without or fields.get("body_type", read) is None:
            continue
        own = (overrides or {}).get(operation, {})
        calls = own.get("calls") or getattr(service, operation)
        if operation in ("create", "update") and returns_nothing(calls):
            fields |= {"response_type": NoneType, "view": None}
        common = {
            "name": f"{operation}_{name}",
            "service": service,
            "calls": calls,
            "scope": scope,
            "permission": permission(_VERBS[operation]),
            "description": (descriptions or {}).get(operation, ""),
        }
        routes.append(Route(**{**common, **fields, **own}))
    return routes


def _own_parameter(item: type[Parameters], parent: type[Parameters]) -> str:
    """Return the parameter of an object's path that its collection's path does not have."""
    above = parent.__struct_encode_fields__
    own = [each for each in item.__struct_encode_fields__ if each not in above]
    if len(own) != 1:
        raise ValueError(f"{item.__name__} needs one parameter beside those of {parent.__name__}, and has {own}")
    return own[0]


def _list_of(item: type) -> Any:
    return list[item]  # type: ignore[valid-type]  # a type that is made at run time
