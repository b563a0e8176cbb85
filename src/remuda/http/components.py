"""Schemas of the types on the wire, as named components, and examples of requests.

A component has the name of its class without the suffix `Wire`, which is ours. Two classes of one name would get names
that contain the paths of modules, so they are rejected. A field is described where it is declared; one that is declared
without a description has that of its type. An example of a request is composed of the examples of its fields.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from remuda.http.bodies import wire_schema

JsonObject = dict[str, Any]

REF = "#/components/schemas/{name}"
_PREFIX = REF.format(name="")
_SUFFIX = "Wire"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NULL = {"type": "null"}
_SHOWN = ("description", "examples")
"""Members that a field has in place of its only alternative beside null."""


def components_of(types: Iterable[Any]) -> tuple[Mapping[Any, JsonObject], dict[str, JsonObject]]:
    """Return the schema of each type, and the components that they refer to. Raises ValueError for an invalid name."""
    kinds = list(dict.fromkeys(types))
    schemas, components = msgspec.json.schema_components(kinds, schema_hook=wire_schema, ref_template=REF)
    names = {name: _published(name) for name in components}
    if len(set(names.values())) < len(names):
        raise ValueError(f"two schemas have the same name: {sorted(names.values())}")
    renamed = {names[name]: _renamed(schema, names) for name, schema in components.items()}
    for name, schema in renamed.items():
        schema["title"] = name
        for field in schema.get("properties", {}).values():
            _describe(field, renamed)
    return {kind: _renamed(schema, names) for kind, schema in zip(kinds, schemas, strict=True)}, renamed


def _published(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"there are two classes of one name, which is no name of a schema: {name}")
    return name.removesuffix(_SUFFIX)


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, list):
        return [_renamed(each, names) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: REF.format(name=names[value.removeprefix(_PREFIX)]) if key == "$ref" else _renamed(value, names)
        for key, value in node.items()
    }


def _describe(field: JsonObject, components: Mapping[str, JsonObject]) -> None:
    """Move the texts of the only alternative to the field, or repeat the description of what it refers to."""
    options = [option for option in field.get("anyOf", ()) if option != _NULL]
    for key in _SHOWN:
        if len(options) == 1 and key in options[0]:
            field[key] = options[0].pop(key)
    for each in (field, *(options if len(options) == 1 else ())):
        if "$ref" in each and "description" not in field and "description" in (target := _target(each, components)):
            field["description"] = target["description"]


def example_of(schema: JsonObject, components: Mapping[str, JsonObject]) -> Any:
    """Return an example of a request: of each field that is required, or that has an example of its own.

    Raises LookupError with the path of a required field without one.
    """
    return _example(schema, components, "")


def _example(schema: JsonObject, components: Mapping[str, JsonObject], path: str) -> Any:
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return _example(_target(schema, components), components, path)
    if "properties" in schema:
        return dict(_members(schema, components, path))
    if schema.get("type") == "object" or "default" in schema:
        return schema.get("default", {})
    raise LookupError(f"the required field {path} has no example")


def _members(schema: JsonObject, components: Mapping[str, JsonObject], path: str) -> Iterator[tuple[str, Any]]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        if name in required or "examples" in field:
            yield name, _example(field, components, f"{path}.{name}" if path else name)


def _target(node: JsonObject, components: Mapping[str, JsonObject]) -> JsonObject:
    return components[node["$ref"].removeprefix(_PREFIX)]
