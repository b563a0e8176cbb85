"""What a change is to a reader who sees only some of the objects.

An object can come into sight and leave it while it lives on: to this reader it was added, or deleted. Whether it was in
sight before is told from its state before, which the store gives where labels or declared indexes have changed.
"""

from typing import Any

from remuda.http.replies import Collection
from remuda.store.contract import Change


def in_sight(collection: Collection[Any, Any], change: Change[Any]) -> tuple[str, Any] | None:
    """Return what a change is to those who see only some objects, and the state to show."""
    before = change.resource if change.before is None else change.before
    was = change.type != "added" and _is_seen(collection, before)
    now = change.type != "deleted" and _is_seen(collection, change.resource)
    if now:
        return ("modified" if was else "added"), change.resource
    return ("deleted", before) if was else None


def _is_seen(collection: Collection[Any, Any], resource: Any) -> bool:
    if collection.index is not None:
        name, value = collection.index
        indexes = collection.store.registry.of(collection.kind).indexes
        if not any(value in index.values(resource) for index in indexes if index.name == name):
            return False
    return collection.visible is None or collection.visible(resource)
