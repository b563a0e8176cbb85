"""Signatures of service methods, compared with the routes that call them.

A route names an unbound method of a service. Its arguments are bound by name: `context`, each field of the path (the
last of them also as `id`), `body`, and either `query` as a whole or its fields. Everything here runs once, when a table
is built, so that a request costs no introspection and a method that does not fit its route is found at start-up.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from remuda.access.principal import Context
from remuda.http.page_reads import PageRead
from remuda.http.responses import Collection, HtmlPage, OtherResponse, Redirect, Rendered, Viewed
from remuda.http.schema import NamedListQuery, NameQuery
from remuda.store.objects import Resource

Method = Callable[..., Any]
"""An unbound method of a service class."""

_BOUND_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_LIST_FIELDS = frozenset({"limit", "continue_", "watch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Values that a route has for its method."""

    path: type
    query: type
    body: Any = None
    """The type of the body; None if the route has none."""
    needs_context: bool = False
    """The method has to take the context, because it checks a permission."""
    needs_all: bool = True
    """The method has to take every field of path and query, and the body."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Attributes of a call, such as `path.network`, in the way that a method takes them."""

    positional: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)


@cache  # every API and in-process client of a table asks again, and introspection is slow
def arguments_of(method: Method, inputs: Inputs) -> Arguments:
    """Return the arguments that a method takes, or raise ValueError that says which one does not fit."""
    sources, hints = _sources(inputs), _hints(method)
    positional: list[str] = []
    keywords: dict[str, str] = {}
    taken, is_gapless = set(), True
    for parameter in tuple(inspect.signature(method).parameters.values())[1:]:  # without self
        source = sources.get(parameter.name)
        if source is None:
            _check_optional(parameter)
            is_gapless = False
            continue
        attribute, given = source
        _check_type(parameter.name, hints.get(parameter.name, Any), given)
        taken.add(parameter.name)
        if is_gapless and parameter.kind in _BOUND_BY_POSITION:
            positional.append(attribute)
        else:
            keywords[parameter.name] = attribute
    _check_complete(taken, inputs)
    return Arguments(tuple(positional), keywords)


def check_result(method: Method, *, response: Any, other: Any, has_view: bool) -> None:
    """Raise ValueError unless what a method returns can be the response of its route."""
    if response is NoneType:
        return
    returned = _members(_hints(method).get("return", Any))
    for each in returned:
        if not _is_response(each, response, other, has_view=has_view):
            raise ValueError(f"returns {_name(each)}, and the route responds with {_name(response)}{_remedy(each)}")
    if has_view and not any(_is_stored(each) or _is_open(each) for each in returned):
        raise ValueError("returns no stored object, and the route has a view")


def returns_nothing(method: Method) -> bool:
    """Tell whether a method is annotated to return None."""
    return _hints(method).get("return", Any) is NoneType


def _sources(inputs: Inputs) -> dict[str, tuple[str, Any]]:
    """Return the attribute of a call and its type, by the name of the argument."""
    path, query = get_type_hints(inputs.path), get_type_hints(inputs.query)
    found: dict[str, tuple[str, Any]] = {"context": ("context", Context)}
    if inputs.body is not None:
        found["body"] = ("body", inputs.body)
    if query:
        found["query"] = ("query", inputs.query)
    for name, kind in path.items():
        _add(found, name, f"path.{name}", kind)
    for name, kind in query.items():
        _add(found, name, f"query.{name}", kind)
    if (last := _last_field(inputs)) is not None:
        found.setdefault("id", found[last])
    return found


def _last_field(inputs: Inputs) -> str | None:
    """Return the field of the path that names the object, for a method that many kinds of objects share."""
    return next(reversed(get_type_hints(inputs.path)), None)


def _add(found: dict[str, tuple[str, Any]], name: str, attribute: str, kind: Any) -> None:
    if name in found:
        raise ValueError(f"cannot tell {attribute} from {found[name][0]}, since both are the argument {name}")
    found[name] = (attribute, kind)


@cache
def _hints(method: Method) -> Mapping[str, Any]:
    try:
        return get_type_hints(method)
    except NameError as error:
        raise ValueError(f"has annotations that cannot be read: {error}") from None


def _check_optional(parameter: inspect.Parameter) -> None:
    if parameter.kind in _VARIABLE:
        raise ValueError(f"takes {parameter}, which cannot be bound by name")
    if parameter.default is inspect.Parameter.empty:
        raise ValueError(f"takes the argument {parameter.name}, which the route does not have")


def _check_type(name: str, expected: Any, given: Any) -> None:
    if not _accepts(expected, given):
        raise ValueError(f"takes {name} as {_name(expected)}, and the route has {_name(given)}")


def _check_complete(taken: set[str], inputs: Inputs) -> None:
    query = set(get_type_hints(inputs.query))
    if "query" in taken and taken & query:
        raise ValueError(f"takes query and its field {min(taken & query)}, of which it can take only one")
    if "id" in taken:
        taken = taken | {_last_field(inputs) or "id"}
    needed = {"context"} if inputs.needs_context else set()
    if inputs.needs_all:
        needed |= set(get_type_hints(inputs.path))
        needed |= set() if "query" in taken else query - _applied_fields(inputs.query)
        needed |= set() if inputs.body is None else {"body"}
    if missing := sorted(needed - taken):
        raise ValueError(f"does not take the argument {', '.join(missing)}")


def _applied_fields(query: type) -> frozenset[str]:
    """Return the fields of a query that the request pipeline applies to a list."""
    return _LIST_FIELDS | {"name"} if issubclass(query, NameQuery | NamedListQuery) else _LIST_FIELDS


def _accepts(expected: Any, given: Any) -> bool:
    """Tell whether a value of one type can be given where another one is expected, as far as routes need it."""
    if expected in (object, given) or _is_open(expected) or _is_open(given):
        return True
    if _is_union(given):
        return all(_accepts(expected, each) for each in get_args(given))
    if _is_union(expected):
        return any(_accepts(each, given) for each in get_args(expected))
    if get_origin(given) is Literal:
        if get_origin(expected) is Literal:
            return set(get_args(given)) <= set(get_args(expected))
        return all(_accepts(expected, type(each)) for each in get_args(given))
    return _is_subtype(expected, given)


def _is_subtype(expected: Any, given: Any) -> bool:
    upper, lower = get_origin(expected) or expected, get_origin(given) or given
    if not (isinstance(upper, type) and isinstance(lower, type) and issubclass(lower, upper)):
        return False
    return all(_accepts(*pair) for pair in zip(get_args(expected), get_args(given), strict=False))


def _is_response(returned: Any, response: Any, other: Any, *, has_view: bool) -> bool:
    origin, arguments = get_origin(returned), get_args(returned)
    if _is_open(returned):
        return True
    if _is_stored(returned):
        return has_view
    if origin in {Collection, PageRead, Rendered, Viewed}:
        return _accepts(response, arguments[-1])
    if origin is OtherResponse:
        return other is not None and _accepts(other, arguments[0])
    if returned in {HtmlPage, Redirect}:
        return True
    return _accepts(Sequence[get_args(response)] if get_origin(response) is list else response, returned)  # type: ignore[misc]  # made at run time


def _is_stored(returned: Any) -> bool:
    return isinstance(returned, type) and issubclass(returned, Resource)


def _is_open(hint: Any) -> bool:
    """Tell whether an annotation leaves the type open, as that of a method that a generic class has."""
    return hint is Any or isinstance(hint, TypeVar)


def _remedy(returned: Any) -> str:
    return "; a stored object needs a view" if _is_stored(returned) else ""


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if _is_union(hint) else (hint,)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in {Union, UnionType}


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
