"""Path and query become the types that a route declares.

This happens before anybody is authenticated, so it says which parameter is wrong and what it has to be, and never what
was sent. The text of a parameter is turned into what its type needs and judged by msgspec like everything else on the
wire. A parameter that takes several values is repeated; one that takes a single value must not be. Unknown query
parameters are ignored.
"""

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec

from remuda.http.expecting import expected
from remuda.http.ids import is_id
from remuda.http.routes import Parameters
from remuda.kernel.errors import Malformed

ParametersT = TypeVar("ParametersT", bound=Parameters)

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_BOOLEANS = {"true": True, "false": False}
_NAMED = re.compile(r"`\$?\.?([^`\[]+?)(?:\[(?:\.\.\.|\d+)\])?`$")
_MISSING = "Object missing required field"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MOST = 100


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: Callable[[str], Any]
    is_array: bool
    is_required: bool
    is_id: bool
    type: Any


class Binder(Generic[ParametersT]):
    """Binds the parameters of one route."""

    def __init__(
        self, parameters: type[ParametersT], order: Iterable[str] = (), *, refused: Iterable[str] = ()
    ) -> None:
        """Take the type, for a path the names in their order, and for a query the names that are refused."""
        self._type = parameters
        self._fields = _fields(parameters)
        self._in_path = tuple(self._fields[name] for name in order)
        self._refused = frozenset(refused)
        self._nothing = None if any(each.is_required for each in self._fields.values()) else parameters()

    def bind_path(self, values: tuple[str, ...]) -> ParametersT:
        """Return the parameters of a path from its values."""
        if not values and self._nothing is not None:
            return self._nothing
        found = {}
        for field, value in zip(self._in_path, values, strict=True):
            if not value:
                raise _wrong(field, "is missing")
            # Almost every parameter is plain text, and to see that here saves a read a call for each.
            text = value.lower() if field.is_id else value
            found[field.name] = text if field.read is str and text.isprintable() else _read(field, text)
        return self._convert(found)

    def bind_query(self, query: bytes) -> ParametersT:
        """Return the parameters of a query string."""
        if not query and self._nothing is not None:
            return self._nothing
        found: dict[str, Any] = {}
        for name, value in _pairs(query):
            if name in self._refused:
                raise Malformed(f'invalid path/query element: "{name}" is not supported here')
            field = self._fields.get(name)
            if field is None:
                continue
            if field.is_array:
                found.setdefault(name, []).append(_read(field, value))
            elif name in found:
                raise Malformed(f'invalid path/query element: "{name}" is there more than once: send it once')
            else:
                found[name] = _read(field, value)
        return self._convert(found)

    def _convert(self, found: Mapping[str, Any]) -> ParametersT:
        try:
            return msgspec.convert(found, self._type)
        except msgspec.ValidationError as error:
            told = str(error)
            named = _NAMED.search(told)
            assert named is not None, "what is wrong with a parameter is said of a parameter"
            what = "is missing" if told.startswith(_MISSING) else "is not valid"
            raise _wrong(self._fields[named[1]], what) from None


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST)
    except ValueError:
        raise Malformed(
            f"invalid path/query element: the query is not UTF-8, or too long: "
            f"send at most {_MOST} parameters, percent-encoded as UTF-8"
        ) from None


def _wrong(field: _Field, what: str = "is not valid") -> Malformed:
    return Malformed(f'invalid path/query element: "{field.name}" {what}: send {expected(field.type)}')


def _read(field: _Field, value: str) -> Any:
    if _CONTROL.search(value):
        raise _wrong(field)
    try:
        return field.read(value.lower() if field.is_id else value)
    except (KeyError, ValueError):
        raise _wrong(field) from None


@cache  # many routes share a few types, and msgspec works the fields of a type out anew each time
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
    """Take constraints and None off a type."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, UnionType}:
        (annotation,) = (_plain(each) for each in get_args(annotation) if each is not NoneType)
    return annotation


def _reader(plain: Any) -> Callable[[str], Any]:
    if get_origin(plain) is Literal or (isinstance(plain, type) and issubclass(plain, str | enum.Enum | datetime)):
        return str
    readers: dict[Any, Callable[[str], Any]] = {int: _whole, float: _number, bool: _BOOLEANS.__getitem__}
    if plain not in readers:
        raise TypeError(f"a parameter cannot be a {plain}")
    return readers[plain]


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return float(text)
