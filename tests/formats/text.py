"""Golden text: values as JSON whose short parts are on one line, so that a difference shows where it is."""

import json
from typing import Any

_WIDTH = 110
_TEXTS = frozenset({"summary", "description", "title", "example", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "headers", "responses", "parameters", "schemas", "$defs"})
"""Members of a document below which every key is a name and none is a text."""


def shown(value: Any, indent: str = "") -> str:
    """Return a value as JSON. Keys keep their order: it is part of some formats."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    deeper = f"{indent} "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {shown(each, deeper)}" for key, each in value.items()]
        first, last = "{}"
    else:
        parts = [shown(each, deeper) for each in value]
        first, last = "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{last}"


def without_texts(document: Any, *, is_named: bool = False) -> Any:
    """Return a JSON schema or an OpenAPI document without what is for users."""
    if isinstance(document, list):
        return [without_texts(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {
        key: without_texts(each, is_named=not is_named and key in _NAMED)
        for key, each in document.items()
        if is_named or key not in _TEXTS
    }


def inlined(document: Any, whole: Any, below: str, within: tuple[str, ...] = ()) -> Any:
    """Return a document with each reference below a prefix replaced by what it refers to.

    The names of what is referred to are the names of classes. Where a reference leads back to itself, the number of
    references between the two stands instead.
    """
    if isinstance(document, list):
        return [inlined(each, whole, below, within) for each in document]
    if not isinstance(document, dict):
        return document
    reference = document.get("$ref")
    if not isinstance(reference, str) or not reference.startswith(below):
        return {key: inlined(each, whole, below, within) for key, each in document.items()}
    if reference in within:
        return {"recursive": len(within) - within.index(reference)}
    target = whole
    for part in reference.removeprefix("#/").split("/"):
        target = target[part]
    return inlined(target, whole, below, (*within, reference))
