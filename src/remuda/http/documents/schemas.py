"""A JSON schema as rows that a person can read: one row for each field, however deep."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]

_DEEPEST = 6
_PREFIX = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field."""

    name: str
    """With the names of what it lies in: `spec.rules[].port`."""
    type: str
    is_required: bool
    about: str


def field_rows(schema: Node, components: Mapping[str, Node], prefix: str = "", depth: int = 0) -> Iterator[FieldRow]:
    """Yield the fields of an object, or of each item of an array, with those of the objects in them."""
    node = _resolved(schema, components)
    if depth > _DEEPEST:
        return
    if node.get("type") == "array":
        yield from field_rows(node.get("items") or {}, components, f"{prefix}[]", depth)
    required = node.get("required", ())
    for name, field in node.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        about = _resolved(field, components).get("description", "") if "$ref" not in field else ""
        yield FieldRow(path, type_text(field, components), name in required, about)
        yield from field_rows(field, components, path, depth + 1)
    for option in _options(node):
        yield from field_rows(option, components, prefix, depth + 1)


def type_text(schema: Node, components: Mapping[str, Node]) -> str:
    """Return a type in a few words, with the bounds it has."""
    node = _resolved(schema, components)
    if options := _options(node):
        return " or ".join(dict.fromkeys(type_text(option, components) for option in options))
    if "enum" in node:
        return " | ".join(str(value) for value in node["enum"])
    kind = str(node.get("type", "any"))
    if kind == "array":
        return f"array of {type_text(node.get('items') or {}, components)}"
    return ", ".join([kind, *_bounds(node)])


def _bounds(node: Node) -> Iterator[str]:
    words = {
        "format": "{}",
        "minimum": "from {}",
        "maximum": "up to {}",
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
    }
    yield from (text.format(node[key]) for key, text in words.items() if key in node)
    if "pattern" in node and "format" not in node:
        yield f"matching {node['pattern']}"


def _options(node: Node) -> list[Node]:
    """Return the forms a value can have; that it may be null as well is told by its not being required."""
    return [option for option in node.get("anyOf", ()) if option != {"type": "null"}]


def _resolved(schema: Node, components: Mapping[str, Node]) -> Node:
    while "$ref" in schema:
        schema = components[schema["$ref"].removeprefix(_PREFIX)]
    options = _options(schema)
    if len(options) == 1:
        return {**{key: value for key, value in schema.items() if key != "anyOf"}, **_resolved(options[0], components)}
    return schema
