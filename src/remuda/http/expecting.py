"""What a parameter has to be, in words: the remedy for whoever sent something else, and never what was sent.

It is read from the type that a route declares, and says no more than its document publishes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import inspect


def expected(annotation: Any) -> str:
    """Return what may be sent for a parameter of this type, such as `a whole number, at least 1 and at most 1000`."""
    return _describe(inspect.type_info(annotation))


def _describe(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.Metadata):
        named = (kind.extra_json_schema or {}).get("format")
        return _describe(kind.type) if named is None else f'text of the format "{named}"'
    if isinstance(kind, inspect.UnionType):
        (kind,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
        return _describe(kind)
    return _WORDS[type(kind)](kind)


def _number(kind: Any, words: str) -> str:
    return _bounded(words, {"at least": kind.ge, "more than": kind.gt, "at most": kind.le, "less than": kind.lt})


def _text(kind: inspect.StrType) -> str:
    if kind.pattern is not None:
        return f"text that matches {kind.pattern}"
    bounds = {"at least": kind.min_length, "at most": kind.max_length}
    return _bounded("text without control characters", bounds, " characters")


def _several(kind: Any) -> str:
    bounds = {"at least": kind.min_length or None, "at most": kind.max_length}
    return _bounded(_describe(kind.item_type), bounds, " times")


def _bounded(words: str, bounds: Mapping[str, float | None], unit: str = "") -> str:
    told = [f"{which} {bound}{unit}" for which, bound in bounds.items() if bound is not None]
    return f"{words}, {' and '.join(told)}" if told else words


def _one_of(values: tuple[Any, ...]) -> str:
    return " or ".join(map(str, values))


_WORDS: Mapping[type, Callable[[Any], str]] = {
    inspect.BoolType: lambda _: "true or false",
    inspect.DateTimeType: lambda _: "a time such as 2026-01-31T12:00:00Z",
    inspect.EnumType: lambda kind: _one_of(tuple(each.value for each in kind.cls)),
    inspect.FloatType: lambda kind: _number(kind, "a number such as 4.5"),
    inspect.FrozenSetType: _several,
    inspect.IntType: lambda kind: _number(kind, "a whole number"),
    inspect.ListType: _several,
    inspect.LiteralType: lambda kind: _one_of(kind.values),
    inspect.StrType: _text,
    inspect.VarTupleType: _several,
}
