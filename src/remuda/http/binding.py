"""Binding of path and query parameters to the types that a route declares.

It happens before authentication, so an error names the parameter and what is expected, as the published schema does,
and never contains what was sent. The text of a parameter is converted to what its type needs and validated by msgspec.
A parameter that takes several values is repeated; a repeated single value is rejected. Binding ignores unknown query
parameters. `reject_unknown` rejects them, for callers who are known to have made a mistake.

Ids are stored in lower case, and a UUID in upper case means the same id. A parameter is converted where it is bound.
For a body the locations of its ids are computed once from its type, so that a request costs little.
"""

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from remuda.http.schema import Id, Parameters
from remuda.kernel.errors import Malformed
from remuda.kernel.percent_encoding import read_pairs
from remuda.kernel.text import nearest


def expected(annotation: Any) -> str:
    """Return what a parameter of this type accepts, such as `a whole number, at least 1 and at most 1000`."""
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
    limits = [f"{which} {bound}{unit}" for which, bound in bounds.items() if bound is not None]
    return f"{words}, {' and '.join(limits)}" if limits else words


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


IdNormalizer = Callable[[Any], Any]
"""Converts the ids in a value to lower case; returns the same object if they are already."""

_, _OF_ID = get_args(Id)


def is_id(annotation: Any) -> bool:
    """Tell whether a type is an id or an optional id."""
    return any(_OF_ID in metadata for _, metadata in _alternatives(annotation))


def lower_case_ids(annotation: Any) -> IdNormalizer | None:
    """Return the function that converts the ids in values of a type to lower case; None if it has none."""
    if is_id(annotation):
        return _lowered
    found = [change for kind, _ in _alternatives(annotation) if (change := _within(kind)) is not None]
    return None if not found else found[0] if len(found) == 1 else _chain(found)


def _alternatives(annotation: Any, metadata: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    if get_origin(annotation) is Annotated:
        yield from _alternatives(annotation.__origin__, (*metadata, *annotation.__metadata__))
    elif get_origin(annotation) in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _alternatives(each, metadata)
    else:
        yield annotation, metadata


def _within(kind: Any) -> IdNormalizer | None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _of_struct(kind)
    if get_origin(kind) in {tuple, list, frozenset}:
        change = lower_case_ids(get_args(kind)[0])
        return None if change is None else _of_each(get_origin(kind), change)
    return None


def _lowered(value: Any) -> Any:
    if not isinstance(value, str):
        return value  # None
    low = value.lower()
    return value if low == value else low


@cache  # msgspec computes the fields of a type on each call, and types share types
def _of_struct(kind: type[msgspec.Struct]) -> IdNormalizer | None:
    fields = [(each.name, change) for each in msgspec.structs.fields(kind) if (change := lower_case_ids(each.type))]

    def change_struct(value: Any) -> Any:
        if not isinstance(value, kind):
            return value  # another alternative of a union
        changes = {}
        for name, change in fields:
            old = getattr(value, name)
            new = change(old)
            if new is not old:
                changes[name] = new
        return msgspec.structs.replace(value, **changes) if changes else value

    return change_struct if fields else None


def _of_each(kind: Any, change: IdNormalizer) -> IdNormalizer:
    def change_each(value: Any) -> Any:
        if not isinstance(value, kind):
            return value
        changed = [change(each) for each in value]
        return kind(changed) if any(new is not old for new, old in zip(changed, value, strict=True)) else value

    return change_each


def _chain(changes: list[IdNormalizer]) -> IdNormalizer:
    def change_all(value: Any) -> Any:
        for change in changes:
            value = change(value)
        return value

    return change_all


ParametersT = TypeVar("ParametersT", bound=Parameters)

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_BOOLEANS = {"true": True, "false": False}
_NAMED = re.compile(r"`\$?\.?([^`\[]+?)(?:\[(?:\.\.\.|\d+)\])?`$")
_MISSING = "Object missing required field"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MOST = 100
_SHOWN = re.compile(r"[A-Za-z0-9_.-]{1,40}")
"""Unknown names that an error may show and compare with the known ones."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: Callable[[str], Any]
    is_array: bool
    is_required: bool
    is_id: bool
    type: Any


class Binder(Generic[ParametersT]):
    """Binder of the parameters of one route."""

    def __init__(
        self, parameters: type[ParametersT], order: Iterable[str] = (), *, rejected: Iterable[str] = ()
    ) -> None:
        """Take the type; for a path the names in their order, and for a query the names that are rejected."""
        self._type = parameters
        self._fields = _fields(parameters)
        self._in_path = tuple(self._fields[name] for name in order)
        self._rejected = frozenset(rejected)
        self._nothing = None if any(each.is_required for each in self._fields.values()) else parameters()

    def bind_path(self, values: tuple[str, ...]) -> ParametersT:
        if not values and self._nothing is not None:
            return self._nothing
        found = {}
        for field, value in zip(self._in_path, values, strict=True):
            if not value:
                raise _wrong(field, "is missing")
            # Almost every parameter is plain text; checking that here saves a call for each.
            text = value.lower() if field.is_id else value
            found[field.name] = text if field.read is str and text.isprintable() else _read(field, text)
        return self._convert(found)

    def normalized(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values of a path with their ids in lower case, as they are stored."""
        together = "".join(values)
        if together == together.lower():
            return values
        return tuple(
            value.lower() if field.is_id else value for field, value in zip(self._in_path, values, strict=True)
        )

    def bind_query(self, query: bytes) -> ParametersT:
        if not query and self._nothing is not None:
            return self._nothing
        found: dict[str, Any] = {}
        for name, value in query_pairs(query):
            if name in self._rejected:
                raise Malformed(f'invalid path/query element: "{name}" is not supported here')
            field = self._fields.get(name)
            if field is None:
                continue
            if field.is_array:
                found.setdefault(name, []).append(_read(field, value))
            elif name in found:
                raise Malformed(f'invalid path/query element: "{name}" is repeated: send it once')
            else:
                found[name] = _read(field, value)
        return self._convert(found)

    def reject_unknown(self, query: bytes) -> None:
        """Raise Malformed, with the nearest known name, if a query has an unknown parameter."""
        for name, _ in query_pairs(query):
            if name not in self._fields:
                raise _unknown(name, self._fields)

    def _convert(self, found: Mapping[str, Any]) -> ParametersT:
        try:
            return msgspec.convert(found, self._type)
        except msgspec.ValidationError as error:
            message = str(error)
            named = _NAMED.search(message)
            assert named is not None, "msgspec names the parameter"
            what = "is missing" if message.startswith(_MISSING) else "is not valid"
            raise _wrong(self._fields[named[1]], what) from None


def query_pairs(query: bytes) -> list[tuple[str, str]]:
    """Return the names and values of a query, or raise Malformed."""
    try:
        return read_pairs(query, most=_MOST)
    except ValueError:
        raise Malformed(
            f"invalid path/query element: the query is not UTF-8, or too long: "
            f"send at most {_MOST} parameters, percent-encoded as UTF-8"
        ) from None


def _wrong(field: _Field, what: str = "is not valid") -> Malformed:
    return Malformed(f'invalid path/query element: "{field.name}" {what}: send {expected(field.type)}')


def _unknown(name: str, known: Iterable[str]) -> Malformed:
    names = sorted(known)
    is_shown = _SHOWN.fullmatch(name) is not None
    found = nearest(name, names) if is_shown else None
    options = f"this request takes {', '.join(names)}" if names else "this request takes no query parameters"
    what = f'"{name}" is unknown' if is_shown else "a query parameter is unknown"
    return Malformed(f"invalid path/query element: {what}: " + (f'send "{found}"' if found else options))


def _read(field: _Field, value: str) -> Any:
    if _CONTROL.search(value):
        raise _wrong(field)
    try:
        return field.read(value.lower() if field.is_id else value)
    except (KeyError, ValueError):
        raise _wrong(field) from None


@cache  # many routes share a few types, and msgspec computes the fields of a type on each call
def _fields(parameters: type[Parameters]) -> Mapping[str, _Field]:
    return {field.encode_name: _field(field) for field in msgspec.structs.fields(parameters)}


def _field(field: msgspec.structs.FieldInfo) -> _Field:
    plain = _plain(field.type)
    is_array = get_origin(plain) in {list, tuple, frozenset}
    read = _reader(_plain(get_args(plain)[0]) if is_array else plain)
    is_required = field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
    item = get_args(plain)[0] if is_array else field.type
    return _Field(
        field.encode_name, read, is_array=is_array, is_required=is_required, is_id=is_id(item), type=field.type
    )


def _plain(annotation: Any) -> Any:
    """Remove constraints and None from a type."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, UnionType}:
        (annotation,) = (_plain(each) for each in get_args(annotation) if each is not NoneType)
    return annotation


def _reader(plain: Any) -> Callable[[str], Any]:
    if get_origin(plain) is Literal or (isinstance(plain, type) and issubclass(plain, str | enum.Enum | datetime)):
        return str
    readers: dict[Any, Callable[[str], Any]] = {int: _whole, float: _decimal, bool: _BOOLEANS.__getitem__}
    if plain not in readers:
        raise TypeError(f"a parameter cannot be a {plain}")
    return readers[plain]


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def _decimal(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return float(text)
