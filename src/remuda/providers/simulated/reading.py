"""A dataclass from a table of TOML, with a sentence that names the field and the remedy where it does not fit."""

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from remuda.kernel.errors import Invalid
from remuda.kernel.text import nearest

T = TypeVar("T")

_FORMS: Mapping[Any, tuple[type | tuple[type, ...], str, str]] = {
    str: (str, "a text", "put it in quotes"),
    bool: (bool, "a boolean", "write true or false, without quotes"),
    int: (int, "a whole number", "write one such as 10, without quotes"),
    float: ((int, float), "a number", "write one such as 0.5, without quotes"),
    tuple: (list, "a list", "put what it holds in [ and ], with commas between"),
    Mapping: (dict, "a table", 'write one such as { name = "value" }'),
}


def read_table(table: type[T], raw: Any, place: str) -> T:
    """Return what a table of TOML says, or raise Invalid. `place` is what the table is called in the file."""
    _check_form(Mapping, raw, place)
    annotations = get_type_hints(table)
    for name in raw:
        if name not in annotations:
            found = nearest(name, annotations)
            remedy = f"write {found}" if found else f"there are {', '.join(annotations)}"
            raise Invalid(_at(place, name), "is not known here", remedy=remedy)
    values = {name: _value(annotations[name], each, _at(place, name)) for name, each in raw.items()}
    for field in dataclasses.fields(table):  # type: ignore[arg-type]  # a dataclass is meant
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name not in values and not has_default:
            raise Invalid(_at(place, field.name), "is missing", remedy=f"write {_needed(annotations[field.name])}")
    return table(**values)


def _value(annotation: Any, raw: Any, place: str) -> Any:
    if get_origin(annotation) is UnionType:
        (annotation,) = [each for each in get_args(annotation) if each is not NoneType]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        if raw not in arguments:
            raise Invalid(place, "is not one of those there are", remedy=f"use one of {', '.join(arguments)}")
        return raw
    if dataclasses.is_dataclass(annotation):
        return read_table(annotation, raw, place)  # type: ignore[arg-type]  # it is a class, not a value of one
    _check_form(origin or annotation, raw, place)
    if origin is tuple:
        return tuple(_value(arguments[0], each, f"{place}[{at}]") for at, each in enumerate(raw))
    if origin is Mapping:
        return {name: _value(arguments[1], each, f"{place}.{name}") for name, each in raw.items()}
    if isinstance(raw, int | float) and not isinstance(raw, bool) and raw < 0:
        raise Invalid(place, "is negative", remedy="write 0 or more")
    return float(raw) if annotation is float else raw


def _check_form(form: Any, raw: Any, place: str) -> None:
    needed, expected, remedy = _FORMS[form]
    if not isinstance(raw, needed) or (isinstance(raw, bool) and needed is not bool):
        raise Invalid(place or "The file", f"is not {expected}", remedy=remedy)


def _needed(annotation: Any) -> str:
    form = get_origin(annotation) or annotation
    return _FORMS.get(str if form is Literal else form, _FORMS[Mapping])[1]


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
