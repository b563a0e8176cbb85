"""Ids in the one way in which they are kept: in small letters. Who sends a UUID in capitals means the same one.

A parameter is turned into small letters where it is bound. For a body it is worked out once, by its type, where its ids
are, so that little is done for each.
"""

from collections.abc import Callable, Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from remuda.http.routes import Id

Change = Callable[[Any], Any]
"""Returns a value with its ids in small letters: the very same one, where they are."""

_, _OF_ID = get_args(Id)


def is_id(annotation: Any) -> bool:
    """Tell whether a type is an id, or one that may be left out."""
    return any(_OF_ID in metadata for _, metadata in _alternatives(annotation))


def in_small_letters(annotation: Any) -> Change | None:
    """Return what brings the ids in values of a type into small letters; None if there is none in it."""
    if is_id(annotation):
        return _lowered
    found = [change for kind, _ in _alternatives(annotation) if (change := _within(kind)) is not None]
    return None if not found else found[0] if len(found) == 1 else _one_after_another(found)


def _alternatives(annotation: Any, metadata: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield what a type may be, each with what was said about it."""
    if get_origin(annotation) is Annotated:
        yield from _alternatives(annotation.__origin__, (*metadata, *annotation.__metadata__))
    elif get_origin(annotation) in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _alternatives(each, metadata)
    else:
        yield annotation, metadata


def _within(kind: Any) -> Change | None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _of_struct(kind)
    if get_origin(kind) in {tuple, list, frozenset}:
        change = in_small_letters(get_args(kind)[0])
        return None if change is None else _of_each(get_origin(kind), change)
    return None


def _lowered(value: Any) -> Any:
    if not isinstance(value, str):
        return value  # left out
    low = value.lower()
    return value if low == value else low


@cache  # msgspec works the fields of a type out anew each time, and types share types
def _of_struct(kind: type[msgspec.Struct]) -> Change | None:
    within = [(each.name, change) for each in msgspec.structs.fields(kind) if (change := in_small_letters(each.type))]

    def change_struct(value: Any) -> Any:
        if not isinstance(value, kind):
            return value  # another of those that it may be
        changes = {name: new for name, change in within if (new := change(old := getattr(value, name))) is not old}
        return msgspec.structs.replace(value, **changes) if changes else value

    return change_struct if within else None


def _of_each(kind: Any, change: Change) -> Change:
    def change_each(value: Any) -> Any:
        if not isinstance(value, kind):
            return value
        changed = [change(each) for each in value]
        return kind(changed) if any(new is not old for new, old in zip(changed, value, strict=True)) else value

    return change_each


def _one_after_another(changes: list[Change]) -> Change:
    def change_all(value: Any) -> Any:
        for change in changes:
            value = change(value)
        return value

    return change_all
