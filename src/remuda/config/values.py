"""Values from what TOML holds, and back. The type of a setting says what is needed; no sentence quotes a value."""

import dataclasses
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from remuda.config.fields import Description
from remuda.http.server.server import ListenAddress
from remuda.kernel.clock import duration_text, parse_duration
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.kernel.text import nearest

HIDDEN = "…"

_FORMS: Mapping[Any, tuple[type, str, str]] = {
    str: (str, "a text", "put it in quotes"),
    Secret: (str, "a text", "put it in quotes"),
    Path: (str, "a path", "put it in quotes"),
    ListenAddress: (str, "a text HOST:PORT", 'write one such as "127.0.0.1:8080"'),
    timedelta: (str, "a duration", 'write a text such as "90d", "1h" or "60s"'),
    bool: (bool, "a boolean", "write true or false, without quotes"),
    int: (int, "a whole number", "write one such as 10, without quotes"),
    tuple: (list, "a list", "put its values in [ and ], separated by commas"),
    Mapping: (dict, "a table", 'write one such as { name = "value" }'),
}
_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a table"}


class InvalidValue(Exception):  # noqa: N818  named like the other errors
    """Raised when a value is not what its setting needs."""

    def __init__(self, problem: str, *, inside: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        """The problem, with the remedy after a colon: `is …: write …`."""
        self.inside = inside
        """Position in the value, appended to the setting's name: `[0].roles`."""

    def within(self, position: str) -> "InvalidValue":
        return InvalidValue(self.problem, inside=position + self.inside)


def from_text(annotation: Any, text: str) -> Any:
    """Parse a text of the environment or the command line into what TOML would have."""
    form = _form(_without_none(annotation))
    if form[0] is str:
        return text
    try:
        read_as = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        read_as = {}
    if list(read_as) != ["value"]:
        raise InvalidValue(f"is not {form[1]} in TOML: {form[2]}")
    return read_as["value"]


def read(annotation: Any, raw: Any, about: Description, *, base: Path) -> Any:
    """Return the value of a setting, or raise InvalidValue. Relative paths start at `base`."""
    annotation = _without_none(annotation)
    _check_form(annotation, raw)
    arguments = get_args(annotation)
    if get_origin(annotation) is tuple:
        if about.needs_one and not raw:
            raise InvalidValue("is empty: add at least one item")
        return tuple(_each(arguments[0], item, about, base, f"[{at}]") for at, item in enumerate(raw))
    if get_origin(annotation) is Mapping:
        return {name: _each(arguments[1], item, about, base, f".{name}") for name, item in raw.items()}
    if annotation not in _FORMS:
        return _table(annotation, raw, base)
    value = _scalar(annotation, raw, base)
    if about.check is not None and (problem := about.check(value)):
        raise InvalidValue(problem)
    return value


def _check_form(annotation: Any, raw: Any) -> None:
    needed, expected, remedy = _form(annotation)
    if not isinstance(raw, needed) or (isinstance(raw, bool) and needed is not bool):
        raise InvalidValue(f"is {_KINDS.get(type(raw), 'a date')} where {expected} is needed: {remedy}")


def _each(annotation: Any, item: Any, about: Description, base: Path, position: str) -> Any:
    try:
        return read(annotation, item, about, base=base)
    except InvalidValue as wrong:
        raise wrong.within(position) from None


def _table(table: Any, raw: Mapping[str, Any], base: Path) -> Any:
    annotations = get_type_hints(table, include_extras=True)
    values = {}
    for name, item in raw.items():
        if name not in annotations:
            found = nearest(name, annotations)
            remedy = f"did you mean {found}?" if found else f"there are {', '.join(annotations)}"
            raise InvalidValue(f"is unknown: {remedy}", inside=f".{name}")
        (about,) = annotations[name].__metadata__
        values[name] = _each(annotations[name].__origin__, item, about, base, f".{name}")
    for field in dataclasses.fields(table):
        if field.name not in values and field.default is dataclasses.MISSING:
            (about,) = annotations[field.name].__metadata__
            raise InvalidValue(
                f"is missing: {about.text[0].lower()}{about.text[1:].rstrip('.')}", inside=f".{field.name}"
            )
    return table(**values)


def _scalar(annotation: Any, raw: Any, base: Path) -> Any:
    if annotation is timedelta:
        duration = parse_duration(raw)
        if duration is None:
            raise InvalidValue('is not a duration: write a text such as "90d", "1h" or "60s"')
        return duration
    if annotation is ListenAddress:
        try:
            return ListenAddress.parse(raw, field="")
        except Invalid as error:
            raise InvalidValue(error.message.strip(" .")) from None
    if annotation is Path:
        return base / _expanded(raw)
    return Secret(raw) if annotation is Secret else raw


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InvalidValue("begins with ~, but that home directory does not exist: write the whole path") from None


def plain(value: Any) -> Any:
    """Return a value as TOML has it; a secret is replaced by a placeholder."""
    if dataclasses.is_dataclass(value) and not isinstance(value, ListenAddress | type):
        fields = [(field, getattr(value, field.name)) for field in dataclasses.fields(value)]
        return {field.name: plain(each) for field, each in fields if each != field.default}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, Secret):
        return HIDDEN
    return value if isinstance(value, int) else str(value)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is UnionType:
        (annotation,) = [each for each in get_args(annotation) if each is not NoneType]
    return annotation


def _form(annotation: Any) -> tuple[type, str, str]:
    if annotation in _FORMS:
        return _FORMS[annotation]
    return _FORMS[get_origin(annotation) or Mapping]
