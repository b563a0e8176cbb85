"""Parts of what is stored, as far as a read can depend on them.

Whoever keeps what was made of several reads says of which: of a kind as a whole, or of what is found under one name,
label or value of a declared index. A read by several of these depends on any one of them: whatever changes its result
is, or was, found under all.
"""

from remuda.store.objects import Resource

Term = tuple[str, str]
"""The name of an index and a value: what an object is found under."""

Part = type[Resource] | tuple[type[Resource], Term]
"""A kind as a whole, or what of it is found under one term."""

NAME_INDEX = "name"
"""The index, which needs no entries, that finds an object by its name."""


def label_index(key: str) -> str:
    """Return the index that finds objects by one label."""
    return f"label:{key}"


def field_index(name: str) -> str:
    """Return the index that a kind declares under `name`."""
    return f"field:{name}"


def named(kind: type[Resource], name: str) -> Part:
    """Return what `get` of this name depends on."""
    return kind, (NAME_INDEX, name)


def labelled(kind: type[Resource], key: str, value: str) -> Part:
    """Return what a list by this label depends on."""
    return kind, (label_index(key), value)


def indexed(kind: type[Resource], index: str, value: str) -> Part:
    """Return what a list by this value of a declared index depends on."""
    return kind, (field_index(index), value)
