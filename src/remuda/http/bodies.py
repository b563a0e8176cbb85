"""A request's body becomes the type that its route declares.

msgspec decodes and judges in one pass, and stops at the first fault. Only when it found one does a JSON-Schema
validator go over the same schema to name every fault at once; of a body that is longer than any that people write only
that one is told, since nobody else is served meanwhile. Neither ever tells what was sent: a body may hold a password in
the wrong place.

Two parsers that read one text differently are a hole to slip through. So what JSON leaves open is refused: a name that
comes twice in an object, a number that is no number or does not fit 64 bits, half a surrogate, endless nesting.
"""

import json
import re
from functools import cached_property
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from remuda.http.ids import Change, in_small_letters
from remuda.http.problems import Explainer, pointer
from remuda.kernel.errors import Malformed
from remuda.kernel.secrets import Secret, hide

BodyT = TypeVar("BodyT")

_JSON_TYPE = re.compile(rb"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_AT = re.compile(r"at `\$([^`]*)`$")
_NEWLINE_AT_END = re.compile(rb'\\(?:n|u000[aA])"')
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
"""Any number of fewer digits fits 64 bits."""
_EXPLAINED = 64 * 1024
"""How many bytes a body may have whose faults are all named."""


class BodyReader(Generic[BodyT]):
    """Reads the bodies of one route."""

    def __init__(self, body: type[BodyT]) -> None:
        self._type = body
        self._decode = msgspec.json.Decoder(body, dec_hook=hide).decode

    def read(self, body: bytes, content_type: bytes | None) -> BodyT:
        """Return the body as its type, or raise Malformed with every place that is wrong."""
        if not body:
            raise _unreadable()
        if content_type is None or not _JSON_TYPE.fullmatch(content_type.strip()):
            raise Malformed("the request body has another content type: send application/json")
        fault: msgspec.ValidationError | None = None
        value: BodyT | None = None
        try:
            value = self._decode(body)
        except msgspec.ValidationError as error:
            fault = error
        except (ValueError, RecursionError):
            raise _unreadable() from None
        if fault is not None and len(body) > _EXPLAINED:
            raise invalid_body([(_pointer_of(fault), "is not valid")])
        document = _parse(body)
        if fault is not None:
            raise self._told(document, fault)
        # Python's `$` matches before a newline at the end, which a JSON schema's does not: so ask the other judge, too.
        if _NEWLINE_AT_END.search(body) and not self._fits(document):
            raise invalid_body(self._problems(document) or [("", "is not valid")])
        if self._lower is not None:
            value = self._lower(value)
        return value  # type: ignore[return-value]  # without a fault it is what was decoded

    def _told(self, document: Any, fault: msgspec.ValidationError) -> Malformed:
        return invalid_body(self._problems(document) or [(_pointer_of(fault), "is not valid")])

    def _problems(self, document: Any) -> list[tuple[str, str]]:
        try:
            return self._explainer.problems(document)
        except (ValueError, RecursionError):  # nested too deeply, or half a surrogate
            raise _unreadable() from None

    def _fits(self, document: Any) -> bool:
        try:
            return self._explainer.fits(document)
        except ValueError:  # as above
            raise _unreadable() from None

    @cached_property
    def _lower(self) -> Change | None:
        return in_small_letters(self._type)

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(msgspec.json.schema(self._type, schema_hook=wire_schema))


def wire_schema(kind: type) -> dict[str, Any]:
    """Return the schema of a type on the wire that msgspec does not know: a secret, or anything at all."""
    if kind is Secret:
        return {"type": "string", "format": "password"}
    if kind is object:
        return {"description": "Anything."}
    raise NotImplementedError


def _parse(body: bytes) -> Any:
    parse_int = _of_64_bits if _LONG_NUMBER.search(body) else None
    try:
        return json.loads(
            body.decode(), object_pairs_hook=_without_doubles, parse_int=parse_int, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        raise _unreadable() from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _of_64_bits(digits: str) -> int:
    number = int(digits)
    if not _SMALLEST <= number <= _LARGEST:
        raise ValueError
    return number


def _refuse(_constant: str) -> NoReturn:
    raise ValueError


def _unreadable() -> Malformed:
    return Malformed("the request body is missing or malformed")


def invalid_body(problems: list[tuple[str, str]]) -> Malformed:
    """Return the error for a body that is wrong in these places."""
    told = ", ".join(f'"{where}" {why}' for where, why in problems)
    return Malformed(f"the request body is not valid: {told}", problems)


def _pointer_of(fault: msgspec.ValidationError) -> str:
    """Return the place msgspec names, as far as it does: it does not tell which item of a list."""
    named = _AT.search(str(fault))
    fixed = named[1].partition("[")[0] if named else ""
    return pointer(fixed.split(".")[1:])
