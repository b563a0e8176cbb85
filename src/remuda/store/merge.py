"""Writing what we know without losing what we do not.

A write is a three-way merge: the *stored* document, what our types *understood* of it, and what is *wanted* now. What
was understood and is no longer wanted goes; what is wanted is set; what was never understood stays. Lists are replaced
whole unless they have a declared key, in which case their items are merged one by one.
"""

from collections.abc import Mapping
from typing import Any

from remuda.store.schema import KeyTree

_NOWHERE = KeyTree()


def merge(stored: Any, understood: Any, wanted: Any, *, keys: KeyTree = _NOWHERE) -> Any:
    """Return `stored` with the difference between `understood` and `wanted` applied to it."""
    if understood == wanted:
        return stored
    if isinstance(stored, dict) and isinstance(understood, dict) and isinstance(wanted, dict):
        return _merge_maps(stored, understood, wanted, keys)
    if keys.key and isinstance(stored, list) and isinstance(wanted, list):
        return _merge_items(stored, understood or [], wanted, keys)
    return wanted


def _merge_maps(
    stored: Mapping[str, Any], understood: Mapping[str, Any], wanted: Mapping[str, Any], keys: KeyTree
) -> dict[str, Any]:
    kept = {name: value for name, value in stored.items() if name in wanted or name not in understood}
    for name, value in wanted.items():
        below = keys.below.get(name) or keys.each or _NOWHERE
        if name in stored:
            kept[name] = merge(stored[name], understood.get(name), value, keys=below)
        else:
            kept[name] = value
    return kept


def _merge_items(stored: list[Any], understood: list[Any], wanted: list[Any], keys: KeyTree) -> list[Any]:
    assert keys.key is not None
    inner = KeyTree(below=keys.below, each=keys.each)
    stored_by_key = {item.get(keys.key): item for item in stored}
    understood_by_key = {item.get(keys.key): item for item in understood}
    merged = []
    for item in wanted:
        name = item.get(keys.key)
        if name in stored_by_key and name in understood_by_key:
            merged.append(merge(stored_by_key[name], understood_by_key[name], item, keys=inner))
        else:
            merged.append(item)
    return merged
