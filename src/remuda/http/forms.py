"""A form that a browser or an OAuth2 client sends becomes the type that its route declares.

Every field is text, and a secret is one from the start. A field without a value is as good as not sent, as OAuth2 has
it. A field that comes twice is refused, since two readers could take different ones, unless its type takes several;
fields we do not know are ignored. As with JSON bodies all faults are told at once, and never what was sent.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec

from remuda.http.bodies import invalid_body, wire_schema
from remuda.http.problems import Explainer, pointer
from remuda.kernel.errors import Malformed
from remuda.kernel.secrets import hide

FORM = "application/x-www-form-urlencoded"
"""The content type of a form."""

FormT = TypeVar("FormT", bound=msgspec.Struct)

_FORM_TYPE = re.compile(FORM.encode() + rb"\s*(?:;.*)?", re.IGNORECASE)
_MOST = 100


class FormReader(Generic[FormT]):
    """Reads the forms of one route."""

    def __init__(self, form: type[FormT]) -> None:
        self._type = form
        fields = msgspec.structs.fields(form)
        self._names = {field.encode_name for field in fields}
        self._several = {field.encode_name for field in fields if _takes_several(field)}

    def read(self, body: bytes, content_type: bytes | None) -> FormT:
        """Return the form as its type, or raise Malformed with every field that is wrong."""
        if body and (content_type is None or not _FORM_TYPE.fullmatch(content_type.strip())):
            raise Malformed(f"the request body has another content type: send {FORM}")
        found = self._fields(body)
        try:
            value = msgspec.convert(found, self._type, dec_hook=hide)
        except msgspec.ValidationError:
            raise self._told(found) from None
        # Python's `$` matches before a newline at the end, which a JSON schema's does not: so ask the other judge, too.
        if b"%0a" in body.lower() and not self._explainer.fits(found):
            raise self._told(found)
        return value

    def _fields(self, body: bytes) -> Mapping[str, Any]:
        sent: dict[str, list[str]] = {}
        for name, value in _pairs(body):
            if name in self._names:
                sent.setdefault(name, []).append(value)
        twice = [name for name, values in sent.items() if len(values) > 1 and name not in self._several]
        if twice:
            raise invalid_body([(pointer([name]), "is there more than once") for name in twice])
        filled = {name: [value for value in values if value] for name, values in sent.items()}
        return {name: values if name in self._several else values[0] for name, values in filled.items() if values}

    def _told(self, found: Mapping[str, Any]) -> Malformed:
        return invalid_body(self._explainer.problems(found) or [("", "is not valid")])

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(form_schema(self._type))


def form_schema(form: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a form: what is not sent is not there, so nothing in it is null."""
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
    if get_origin(kind) in {Union, UnionType}:
        kind = next(each for each in get_args(kind) if each is not NoneType)
    return get_origin(kind) is tuple


def _pairs(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST)
    except ValueError:
        raise Malformed("the request body is malformed: send a form of at most 100 fields, in UTF-8") from None
