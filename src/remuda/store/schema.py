"""From struct types to structural schemas, the kind of JSON Schema that a Kubernetes API server accepts.

Structural means: no `$ref`, one type at each place, no `null` among alternatives (that is `nullable`). The same schema
tells the merge which lists have a key, so a list's key is declared once, in the annotation of its field.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from remuda.kernel.secrets import Secret

Schema = dict[str, Any]
"""A JSON Schema, as plain JSON."""

_FOR_PEOPLE = ("title", "default")
_SEALED = "sealed"


def keyed(key: str) -> msgspec.Meta:
    """Annotate a list of structs whose items are told apart by `key`: such lists merge item by item."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})


def structural_schema(kind: type[msgspec.Struct]) -> Schema:
    """Return the structural schema of a struct type, with every reference inlined."""
    (root,), definitions = msgspec.json.schema_components([kind], schema_hook=_secret_schema, ref_template="{name}")
    return _inline(root, definitions)


def _secret_schema(kind: type) -> Schema:
    if kind is Secret:
        return {"type": "string", "format": _SEALED}
    raise NotImplementedError(f"{kind.__name__} cannot be stored: give it a JSON form first")


def _inline(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    if "$ref" in node:
        rest = {name: value for name, value in node.items() if name != "$ref"}
        return _inline(definitions[node["$ref"]], definitions) | _inline(rest, definitions)
    if "anyOf" in node:
        return _nullable(node, definitions)
    done: Schema = {name: value for name, value in node.items() if name not in _FOR_PEOPLE}
    if "properties" in node:
        done["properties"] = {name: _inline(child, definitions) for name, child in node["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            done[name] = _inline(node[name], definitions)
    if done.get("enum") and "type" not in done:
        done["type"] = "string"
    return done


def _nullable(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """An optional field is its one other alternative. Absent and null mean the same to us."""
    alternatives = [child for child in node["anyOf"] if child != {"type": "null"}]
    if len(alternatives) != 1:
        raise NotImplementedError("a stored field has one type; a union has no structural schema")
    return _inline(alternatives[0], definitions)


class KeyTree(msgspec.Struct, frozen=True):
    """Where in a document the keyed lists are: at this place, below it by field name, and in each value of a map."""

    key: str | None = None
    below: Mapping[str, "KeyTree"] = {}
    each: "KeyTree | None" = None


_NONE = KeyTree()


def list_keys(schema: Schema) -> KeyTree:
    """Return the keyed lists of a structural schema."""
    (key,) = schema.get("x-kubernetes-list-map-keys", [None])
    inner = schema["items"] if key else schema
    below = {name: list_keys(child) for name, child in inner.get("properties", {}).items()}
    values = inner.get("additionalProperties")
    each = list_keys(values) if isinstance(values, dict) else _NONE
    known = {name: tree for name, tree in below.items() if tree != _NONE}
    return KeyTree(key=key, below=known, each=each if each != _NONE else None)


def has_secrets(schema: Schema) -> bool:
    """Tell whether documents of this schema have fields that must be sealed."""
    if schema.get("format") == _SEALED:
        return True
    children = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(has_secrets(child) for child in children if isinstance(child, dict))
