"""Routes of a resource that is listed, created, read, updated and deleted.

`crud` declares the five routes that most resources have in common, each calling the service's method of that name. What
differs in one of them is given in `overrides`; a route that is not one of the five is declared by itself.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from remuda.access.principal import Permission, Verb
from remuda.http.responses import EtagView
from remuda.http.routes import AnyRoute, Route, Scope
from remuda.http.schema import ListQuery, Nothing, Parameters

Operation = Literal["list", "create", "get", "update", "delete"]
"""One of the five. It is the name of the service's method, and begins the name of the route."""

_VERBS: Mapping[Operation, Verb] = {
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
    query: type[ListQuery] = ListQuery,
    parent: type[Parameters] = Nothing,
    scope: Scope = "project",
    names: str = "",
    plural_noun: str = "",
    without: tuple[Operation, ...] = (),
    descriptions: Mapping[Operation, str] | None = None,
    overrides: Mapping[Operation, Mapping[str, Any]] | None = None,
) -> list[AnyRoute]:
    """Return the routes of a resource, in the order list, create, get, update, delete.

    `path` is the collection's. `item` has the parameters of one object: those of `parent`, and its own, which is the
    last segment of its path. `name` ends the routes' names (`network` in `create_network`). `noun` goes into the
    summaries, with its article (`a network`). `names` and `plural_noun` are their plurals, made with an s if left out.

    Without a body type for `create` or `update` there is no such route, and none for what is named in `without`.
    `overrides` are fields of `Route`, by operation.
    """
    plural = plural_noun or f"{noun.removeprefix('a ').removeprefix('an ')}s"
    many = {"path": path, "path_type": parent}
    one = {"path": f"{path}/{{{_own_parameter(item, parent)}}}", "path_type": item}
    viewed = {"response_type": read, "view": view}
    accepted = {"success": 202, "is_conditional": True}
    found: dict[Operation, dict[str, Any]] = {
        "list": {**many, "method": "GET", "summary": f"List the {plural} that the caller may see"},
        "create": {**many, **viewed, "method": "POST", "summary": f"Create {noun}", "body_type": create},
        "get": {**one, **viewed, "method": "GET", "summary": f"Read {noun}"},
        "update": {**one, **viewed, **accepted, "method": "PUT", "summary": f"Update {noun}", "body_type": update},
        "delete": {**one, **accepted, "method": "DELETE", "summary": f"Delete {noun}"},
    }
    found["list"] |= {"name": f"list_{names or f'{name}s'}", "query_type": query, "response_type": _list_of(read)}
    found["create"] |= {"success": 201, "errors": (404,)}
    texts, changed = descriptions or {}, overrides or {}
    return [
        Route(
            **{
                "name": f"{operation}_{name}",
                "service": service,
                "calls": getattr(service, operation),
                "scope": scope,
                "permission": permission(_VERBS[operation]),
                "description": texts.get(operation, ""),
                **fields,
                **changed.get(operation, {}),
            }
        )
        for operation, fields in found.items()
        if operation not in without and fields.get("body_type", read) is not None
    ]


def _own_parameter(item: type[Parameters], parent: type[Parameters]) -> str:
    """Return the parameter of an object's path that its collection's path does not have."""
    above = parent.__struct_encode_fields__
    own = [each for each in item.__struct_encode_fields__ if each not in above]
    if len(own) != 1:
        raise ValueError(f"{item.__name__} needs one parameter beside those of {parent.__name__}, and has {own}")
    return own[0]


def _list_of(item: type) -> Any:
    return list[item]  # type: ignore[valid-type]  # a type that is made at run time
