"""What is wrong with a document, place by place, in words that hold nothing of the document.

The reasons are fixed texts: they name what the schema publishes anyway (a type, a bound, a format, a pattern, the
values that are allowed), which is the remedy, and never what was sent. A pattern that has examples is told by these.
Where a value fits none of several forms, the form it comes nearest to is explained.

The validator finds every fault before it tells of the first, and a body can be made of a million. So it is shown no
more than the beginning of a long document; a fault that lies behind that is left to whoever found that there is one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from jsonschema_rs import Draft202012Validator, ValidationError

_MOST_PROBLEMS = 50
_MOST_VALUES = 1_000
_LONGEST_STEP = 64
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
    "uniqueItems": lambda _: "has an item twice: name each once",
    "additionalProperties": lambda _: "has a field that is not known: leave it out",
}


class Explainer:
    """Names the faults of documents under one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._validator = Draft202012Validator(schema, validate_formats=True)
        self._forms = {each["pattern"]: each for each in _patterned(schema)}

    def fits(self, document: Any) -> bool:
        """Tell whether a document has no fault."""
        return self._validator.is_valid(document)

    def problems(self, document: Any) -> list[tuple[str, str]]:
        """Return the pointer and the reason of each fault, or of many of them if there are very many."""
        excerpt = _Excerpt(_MOST_VALUES).of(document)
        found = (fault for error in self._validator.iter_errors(excerpt) for fault in _nearest(error))
        faults = [(_place(fault), fault.kind, rivals) for fault, rivals in islice(found, _MOST_PROBLEMS)]
        formatted = {place for place, kind, _ in faults if kind.name == "format"}
        problems = (
            (place, self._reason(kind, rivals))
            for place, kind, rivals in faults
            if kind.name != "pattern" or place not in formatted  # the format says the same, and says it better
        )
        return list(dict.fromkeys(problems))

    def _reason(self, kind: Any, rivals: Sequence[ValidationError]) -> str:
        """Say what is wrong; with what does not match, how to write it: as the schema's examples are, if it has any."""
        form = self._forms.get(kind.pattern, {}) if kind.name == "pattern" else {}
        if "examples" not in form:
            return _reason(kind, rivals)
        about = f", {form['description'].rstrip('.')}" if "description" in form else ""
        return f"does not match the required pattern: write it like {_one_of(form['examples'])}{about}"


class _Excerpt:
    """The beginning of a document: its lists end when so many values have been seen."""

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
    """Yield the parts of a schema that have a pattern."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from _patterned(each)


def pointer(steps: Iterable[str | int]) -> str:
    """Return the JSON pointer of a place. A step may be a name that the sender chose, so a long one is cut."""
    return "".join(f"/{str(step)[:_LONGEST_STEP].replace('~', '~0').replace('/', '~1')}" for step in steps)


def _place(fault: ValidationError) -> str:
    missing = fault.kind.as_dict()["property"] if fault.kind.name == "required" else None
    return pointer(fault.instance_path if missing is None else [*fault.instance_path, missing])


def _nearest(
    error: ValidationError, rivals: Sequence[ValidationError] = ()
) -> Iterator[tuple[ValidationError, Sequence[ValidationError]]]:
    """Yield the faults of the form that a value comes nearest to, or its own if it comes near none.

    With each comes what other forms that are as near say of the same place.
    """
    forms: Sequence[Sequence[ValidationError]] = getattr(error.kind, "context", ())
    near = [form for form in forms if not _is_another_type(form, error)]
    if not near:
        yield error, rivals
        return
    for fault in min(near, key=len):
        yield from _nearest(
            fault, [each for form in near for each in form if each.instance_path == fault.instance_path]
        )


def _is_another_type(form: Sequence[ValidationError], error: ValidationError) -> bool:
    return any(fault.kind.name == "type" and fault.instance_path == error.instance_path for fault in form)


def _reason(kind: Any, rivals: Sequence[ValidationError]) -> str:
    if kind.name != "enum":
        return _REASONS.get(kind.name, _invalid)(kind)
    # The word that tells forms apart is in each of them the only one that is allowed.
    others = (option for each in rivals if each.kind.name == "enum" for option in each.kind.as_dict()["options"])
    return f"is not one of the allowed values: use {_one_of([*kind.options, *others])}"


def _invalid(kind: Any) -> str:
    faults = [fault for form in getattr(kind, "context", ()) for fault in form]
    types = [name for fault in faults for name in getattr(fault.kind, "types", ())]
    return f"must be {_either(types)}" if types else "is not valid"


def _one_of(values: Iterable[Any]) -> str:
    return " or ".join(dict.fromkeys(msgspec.json.encode(value).decode() for value in values))


def _either(types: Sequence[str]) -> str:
    return " or ".join(_TYPES[name] for name in dict.fromkeys(types))
