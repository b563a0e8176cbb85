"""Request bodies: JSON and forms, read into the types that routes declare, and the problems of invalid ones.

msgspec decodes and validates in one pass and stops at the first problem. Only then a JSON-Schema validator reports
every problem at once; not for a very large body, since it would block the event loop. Problems state what the published
schema requires, and never contain what was sent. If a value matches none of several alternatives, the nearest one is
explained. Ambiguous JSON is rejected: a duplicate name, a number that is not finite, a lone surrogate, excessive
nesting; so is a whole number that does not fit 64 bits, by its location. Every field of a form is text. An empty field
counts as not sent, as in OAuth2; a repeated one is rejected unless its type takes several values; unknown fields are
ignored.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, NamedTuple, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec
from jsonschema_rs import Draft202012Validator, ValidationError

from remuda.http.binding import IdNormalizer, lower_case_ids
from remuda.kernel.errors import Malformed
from remuda.kernel.percent_encoding import read_pairs
from remuda.kernel.secrets import Secret, hide

_MAX_PROBLEMS = 50
_MAX_VALUES = 1_000
_MAX_STEP = 64
_TYPES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_REASONS: Mapping[str, Callable[[Any], str]] = {
    "type": lambda kind: f"must be {_either(kind.types)}",
    "required": lambda _: "is required",
    "const": lambda kind: f"is not the allowed value: use {_one_of([kind.expected_value])}",
    "format": lambda kind: f'does not match format "{kind.format}"',
    "pattern": lambda kind: f"does not match the required pattern: write it as {kind.pattern}",
    "minLength": lambda kind: f"must have at least {kind.limit} characters",
    "maxLength": lambda kind: f"must have at most {kind.limit} characters",
    "minItems": lambda kind: f"must have at least {kind.limit} items",
    "maxItems": lambda kind: f"must have at most {kind.limit} items",
    "minProperties": lambda kind: f"must have at least {kind.limit} fields",
    "maxProperties": lambda kind: f"must have at most {kind.limit} fields",
    "minimum": lambda kind: f"must be at least {kind.limit}",
    "maximum": lambda kind: f"must be at most {kind.limit}",
    "exclusiveMinimum": lambda kind: f"must be more than {kind.limit}",
    "exclusiveMaximum": lambda kind: f"must be less than {kind.limit}",
    "multipleOf": lambda kind: f"must be a multiple of {kind.multiple_of}",
    "uniqueItems": lambda _: "has a duplicate item: name each once",
    "additionalProperties": lambda _: "has an unknown field: leave it out",
}


class Explainer:
    """Validator that reports every problem of a document under one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._validator = Draft202012Validator(schema, validate_formats=True)
        self._forms = {each["pattern"]: each for each in _patterned(schema)}

    def is_valid(self, document: Any) -> bool:
        return self._validator.is_valid(document)

    def problems(self, document: Any) -> list[tuple[str, str]]:
        """Return the pointer and the reason of each problem, up to a limit."""
        excerpt = _Excerpt(_MAX_VALUES).of(document)
        found = (fault for error in self._validator.iter_errors(excerpt) for fault in _nearest(error))
        faults = [(_pointer(fault), fault.kind, alternatives) for fault, alternatives in islice(found, _MAX_PROBLEMS)]
        formatted = {location for location, kind, _ in faults if kind.name == "format"}
        problems = (
            (location, self._reason(kind, alternatives))
            for location, kind, alternatives in faults
            if kind.name != "pattern"
            or location not in formatted  # the message for the format says the same more clearly
        )
        return list(dict.fromkeys(problems))

    def _reason(self, kind: Any, alternatives: Sequence[ValidationError]) -> str:
        """Return the reason of a problem; for a pattern with examples, quote these."""
        form = self._forms.get(kind.pattern, {}) if kind.name == "pattern" else {}
        if "examples" not in form:
            return _reason(kind, alternatives)
        about = f", {form['description'].rstrip('.')}" if "description" in form else ""
        return f"does not match the required pattern: write it like {_one_of(form['examples'])}{about}"


class _Excerpt:
    """The beginning of a document: its lists are cut when a number of values has been seen.

    The validator finds every problem before it returns the first, and a body can contain a million.
    """

    def __init__(self, values: int) -> None:
        self._left = values

    def of(self, value: Any) -> Any:
        self._left -= 1
        if isinstance(value, dict):
            return {name: self.of(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.of(each) for each in value[: max(self._left, 0)] if self._left > 0]
        return value


def _patterned(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from _patterned(each)


def pointer(steps: Iterable[str | int]) -> str:
    """Return the JSON pointer of a location. A name may have been chosen by the sender, so a long one is cut."""
    return "".join(f"/{str(step)[:_MAX_STEP].replace('~', '~0').replace('/', '~1')}" for step in steps)


def _pointer(fault: ValidationError) -> str:
    missing = fault.kind.as_dict()["property"] if fault.kind.name == "required" else None
    return pointer(fault.instance_path if missing is None else [*fault.instance_path, missing])


def _nearest(
    error: ValidationError, alternatives: Sequence[ValidationError] = ()
) -> Iterator[tuple[ValidationError, Sequence[ValidationError]]]:
    """Yield the problems of the alternative that a value is nearest to, or its own if it is near none.

    With each comes what other equally near alternatives say of the same location.
    """
    forms: Sequence[Sequence[ValidationError]] = getattr(error.kind, "context", ())
    near = [form for form in forms if not _is_another_type(form, error)]
    if not near:
        yield error, alternatives
        return
    for fault in min(near, key=len):
        yield from _nearest(
            fault, [each for form in near for each in form if each.instance_path == fault.instance_path]
        )


def _is_another_type(form: Sequence[ValidationError], error: ValidationError) -> bool:
    return any(fault.kind.name == "type" and fault.instance_path == error.instance_path for fault in form)


def _reason(kind: Any, alternatives: Sequence[ValidationError]) -> str:
    if kind.name != "enum":
        return _REASONS.get(kind.name, _invalid)(kind)
    # The field that distinguishes alternatives allows one value in each of them.
    others = (option for each in alternatives if each.kind.name == "enum" for option in each.kind.as_dict()["options"])
    return f"is not one of the allowed values: use {_one_of([*kind.options, *others])}"


def _invalid(kind: Any) -> str:
    faults = [fault for form in getattr(kind, "context", ()) for fault in form]
    types = [name for fault in faults for name in getattr(fault.kind, "types", ())]
    return f"must be {_either(types)}" if types else "is not valid"


def _one_of(values: Iterable[Any]) -> str:
    return " or ".join(dict.fromkeys(msgspec.json.encode(value).decode() for value in values))


def _either(types: Sequence[str]) -> str:
    return " or ".join(_TYPES[name] for name in dict.fromkeys(types))


BodyT = TypeVar("BodyT")

_JSON_TYPE = re.compile(rb"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_AT = re.compile(r"at `\$([^`]*)`$")
_NEWLINE_AT_END = re.compile(rb'\\(?:n|u000[aA])"')
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
"""A number of fewer digits fits 64 bits."""
_MAX_DIGITS = 40
"""Digits up to which a number is converted: the time that it takes grows with their square."""
_MAX_DEPTH = 16
"""Steps to a value up to which its location is reported."""
_EXPLAINED = 64 * 1024
"""Size in bytes up to which every problem of a body is reported."""


class BodyReader(Generic[BodyT]):
    """Reader of the JSON bodies of one route."""

    def __init__(self, body: type[BodyT]) -> None:
        self._type = body
        self._decode = msgspec.json.Decoder(body, dec_hook=hide).decode

    def read(self, body: bytes, content_type: bytes | None) -> BodyT:
        """Return the body as its type, or raise Malformed with every problem."""
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
            raise self._invalid(document, fault)
        # Python's `$` matches before a final newline, that of JSON Schema does not: so use its validator, too.
        if _NEWLINE_AT_END.search(body) and not self._fits(document):
            raise invalid_body(self._problems(document) or [("", "is not valid")])
        if self._lower is not None:
            value = self._lower(value)
        return value  # type: ignore[return-value]  # it was decoded, since there is no fault

    def _invalid(self, document: Any, fault: msgspec.ValidationError) -> Malformed:
        # To JSON Schema 1e300 is a whole number, so it finds no problem where msgspec does.
        problems = self._problems(document) or _too_large(document)
        return invalid_body(problems or [(_pointer_of(fault), "is not valid")])

    def _problems(self, document: Any) -> list[tuple[str, str]]:
        try:
            return self._explainer.problems(document)
        except (ValueError, RecursionError):  # nested too deeply, or a lone surrogate
            raise _unreadable() from None

    def _fits(self, document: Any) -> bool:
        try:
            return self._explainer.is_valid(document)
        except ValueError:
            raise _unreadable() from None

    @cached_property
    def _lower(self) -> IdNormalizer | None:
        return lower_case_ids(self._type)

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(msgspec.json.schema(self._type, schema_hook=wire_schema))


def wire_schema(kind: type) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not know: a secret, or any JSON."""
    if kind is Secret:
        return {"type": "string", "format": "password"}
    if kind is object:
        return {"description": "Anything."}
    raise NotImplementedError


def _parse(body: bytes) -> Any:
    numbers = _WholeNumbers()
    try:
        document = json.loads(
            body.decode(),
            object_pairs_hook=_without_duplicates,
            parse_int=numbers.read if _LONG_NUMBER.search(body) else None,
            parse_constant=_reject_constant,
        )
    except (ValueError, RecursionError):
        raise _unreadable() from None
    if numbers.all_fit:
        return document
    if len(body) > _EXPLAINED:
        raise _unreadable()
    raise invalid_body(_too_large(document, [int]))


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


class _WholeNumbers:
    """Reader of the whole numbers of a document, which notes whether all fit 64 bits."""

    def __init__(self) -> None:
        self.all_fit = True

    def read(self, digits: str) -> int:
        """Return the number; one with very many digits as another one that does not fit either."""
        number = int(digits) if len(digits) <= _MAX_DIGITS else _LARGEST + 1
        self.all_fit &= _SMALLEST <= number <= _LARGEST
        return number


class _Located(NamedTuple):
    """A value in a document, and where it is: its step in its container."""

    value: Any
    step: str | int = ""
    container: "_Located | None" = None

    def pointer(self) -> str:
        """Return the JSON pointer, or raise Malformed if no schema is as deep or it cannot be sent."""
        steps, located = list[str | int](), self
        while located.container is not None:
            steps.append(located.step)
            located = located.container
        found = pointer(reversed(steps))
        if len(steps) > _MAX_DEPTH or any("\ud800" <= letter <= "\udfff" for letter in found):
            raise _unreadable()
        return found


def _too_large(document: Any, kinds: Sequence[type] = (int, float)) -> list[tuple[str, str]]:
    """Return the location of each number of these kinds that is beyond 64 bits, up to a limit, and the reason."""
    found, left = list[_Located](), [_Located(document)]
    while left and len(found) < _MAX_PROBLEMS:
        located = left.pop()
        if isinstance(located.value, dict):
            left.extend(_Located(value, name, located) for name, value in located.value.items())
        elif isinstance(located.value, list):
            left.extend(_Located(value, number, located) for number, value in enumerate(located.value))
        elif type(located.value) in kinds and not _SMALLEST <= located.value <= _LARGEST:
            found.append(located)
    reason = f"does not fit 64 bits: use a number from {_SMALLEST} to {_LARGEST}"
    return [(located.pointer(), reason) for located in reversed(found)]


def _reject_constant(_constant: str) -> NoReturn:
    raise ValueError


def _unreadable() -> Malformed:
    return Malformed("the request body is missing or malformed")


def invalid_body(problems: list[tuple[str, str]]) -> Malformed:
    listed = ", ".join(f'"{where}" {why}' for where, why in problems)
    return Malformed(f"the request body is not valid: {listed}", problems)


def _pointer_of(fault: msgspec.ValidationError) -> str:
    """Return the location that msgspec names, as far as it does: it omits the index in a list."""
    named = _AT.search(str(fault))
    fixed = named[1].partition("[")[0] if named else ""
    return pointer(fixed.split(".")[1:])


FORM = "application/x-www-form-urlencoded"

FormT = TypeVar("FormT", bound=msgspec.Struct)

_FORM_TYPE = re.compile(FORM.encode() + rb"\s*(?:;.*)?", re.IGNORECASE)
_MOST = 100


class FormReader(Generic[FormT]):
    """Reader of the forms of one route."""

    def __init__(self, form: type[FormT]) -> None:
        self._type = form
        fields = msgspec.structs.fields(form)
        self._names = {field.encode_name for field in fields}
        self._several = {field.encode_name for field in fields if _takes_several(field)}

    def read(self, body: bytes, content_type: bytes | None) -> FormT:
        """Return the form as its type, or raise Malformed with every problem."""
        if body and (content_type is None or not _FORM_TYPE.fullmatch(content_type.strip())):
            raise Malformed(f"the request body has another content type: send {FORM}")
        found = self._fields(body)
        try:
            value = msgspec.convert(found, self._type, dec_hook=hide)
        except msgspec.ValidationError:
            raise self._invalid(found) from None
        # Python's `$` matches before a final newline, that of JSON Schema does not: so use its validator, too.
        if b"%0a" in body.lower() and not self._explainer.is_valid(found):
            raise self._invalid(found)
        return value

    def _fields(self, body: bytes) -> Mapping[str, Any]:
        sent: dict[str, list[str]] = {}
        for name, value in _pairs(body):
            if name in self._names:
                sent.setdefault(name, []).append(value)
        repeated = [name for name, values in sent.items() if len(values) > 1 and name not in self._several]
        if repeated:
            raise invalid_body([(pointer([name]), "is repeated") for name in repeated])
        filled = {name: [value for value in values if value] for name, values in sent.items()}
        return {name: values if name in self._several else values[0] for name, values in filled.items() if values}

    def _invalid(self, found: Mapping[str, Any]) -> Malformed:
        return invalid_body(self._explainer.problems(found) or [("", "is not valid")])

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(form_schema(self._type))


def form_schema(form: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a form. A field is absent or text, never null."""
    fields = msgspec.structs.fields(form)
    properties = {field.encode_name: _text_schema(field) for field in fields}
    required = [field.encode_name for field in fields if field.required]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _text_schema(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    schema = msgspec.json.schema(field.type, schema_hook=wire_schema)
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _takes_several(field: msgspec.structs.FieldInfo) -> bool:
    kind = field.type
    while get_origin(kind) in {Annotated, Union, UnionType}:
        kind = next(each for each in get_args(kind) if each is not NoneType)
    return get_origin(kind) is tuple


def _pairs(body: bytes) -> list[tuple[str, str]]:
    try:
        return read_pairs(body, most=_MOST)
    except ValueError:
        raise Malformed("the request body is malformed: send a form of at most 100 fields, in UTF-8") from None
