"""Validation of names, labels, references and sizes, the same for every backend.

The rules are those of a Kubernetes API server. They are checked before the backend, so that an object that one backend
accepts is accepted by all.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from remuda.kernel.errors import Invalid, TooManyObjects
from remuda.store.kinds import KeyTree, Kind, Registry
from remuda.store.objects import Metadata, ResourceT

DOCUMENT_LIMIT = 1 << 20
"""Maximum bytes of a document: less than etcd's limit by what the API server adds."""

_ANNOTATIONS_LIMIT = 256 * 1024
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_LIMIT = 253
_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PART_LIMIT = 63


def check_resource(kind: Kind[ResourceT], resource: ResourceT) -> None:
    """Raise Invalid, naming the field, unless every backend would accept this object."""
    check_metadata(resource.metadata)
    check_spec(kind, resource)


def check_metadata(metadata: Metadata) -> None:
    """Raise Invalid, naming the field, unless every backend would accept this metadata."""
    _check_name("metadata.name", metadata.name)
    _check_labels("metadata.labels", metadata.labels)
    _check_annotations(metadata)
    for finalizer in metadata.finalizers:
        check_qualified("metadata.finalizers", finalizer)
    _check_owners(metadata)


def check_spec(kind: Kind[ResourceT], resource: ResourceT) -> None:
    """Raise Invalid, naming the field, unless every backend would accept this object's spec."""
    for target, name in kind.targets(resource):
        _check_name(f"the reference to {target}", name)
    _check_keys("spec", getattr(resource, "spec", None), kind.list_keys.below.get("spec"))


def check_status(kind: Kind[ResourceT], resource: ResourceT) -> None:
    """Raise Invalid, naming the field, unless every backend would accept this object's status."""
    _check_keys("status", getattr(resource, "status", None), kind.list_keys.below.get("status"))


def is_label_value(value: str) -> bool:
    """Return whether a label can have this value."""
    return not value or (len(value) <= _PART_LIMIT and _is_part(value))


@lru_cache(maxsize=4096)
def _is_part(text: str) -> bool:
    """Return whether a short text is a valid one. Cached, because objects share organizations and the like."""
    return _PART.fullmatch(text) is not None


def check_limit(limit: int | None) -> None:
    """Raise Invalid unless this is a valid number of items for a page."""
    if limit is not None and limit < 1:
        raise Invalid("limit", "is less than one", remedy="request at least one item, or leave it out")


def check_selector(labels: Mapping[str, str]) -> None:
    """Raise Invalid unless `labels` is a valid label selector."""
    _check_labels("the label selector", labels)


def check_size(document: bytes, *, before: int = 0) -> None:
    """Raise Invalid if the document is too large and larger than before: one that shrinks is accepted."""
    if len(document) > max(DOCUMENT_LIMIT, before):
        raise Invalid("the object", f"takes {len(document)} bytes", remedy=f"keep it under {DOCUMENT_LIMIT} bytes")


def check_object_limit(
    registry: Registry,
    kind: Kind[ResourceT],
    new: ResourceT,
    count: Callable[[Kind[Any], str, str, int], int],
) -> None:
    """Raise TooManyObjects if a new object would exceed the limit of its kind. `count` counts by label, up to a limit.

    Objects that are being deleted count until they are removed.
    """
    limit = registry.object_limit(kind, new)
    if limit is not None and count(kind, limit.label, limit.value, limit.most) >= limit.most:
        raise TooManyObjects(kind.plural, scope=limit.label.rpartition("/")[2], limit=limit.most)


def _check_name(field: str, name: str) -> None:
    if len(name) > _NAME_LIMIT or not _NAME.fullmatch(name):
        raise Invalid(
            field, "is not a valid name", remedy=f"use at most {_NAME_LIMIT} lower-case letters, digits, '-' and '.'"
        )


def _check_labels(field: str, labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        check_qualified(field, key)
        if not is_label_value(value):
            remedy = f"use at most {_PART_LIMIT} letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            raise Invalid(f"{field}[{key}]", "has an invalid value", remedy=remedy)


def _check_annotations(metadata: Metadata) -> None:
    for key in metadata.annotations:
        check_qualified("metadata.annotations", key)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        raise Invalid(
            "metadata.annotations", f"take {size} bytes", remedy=f"keep them under {_ANNOTATIONS_LIMIT} bytes"
        )


def _check_owners(metadata: Metadata) -> None:
    field, owners = "metadata.ownerReferences", metadata.owner_references
    for owner in owners:
        if not (owner.uid and owner.name and owner.kind and owner.api_version):
            raise Invalid(field, "names its owner incompletely", remedy="give apiVersion, kind, name and uid")
        if not owner.block_owner_deletion:
            raise Invalid(field, "would remove the owner first", remedy="set blockOwnerDeletion")
    if sum(owner.controller for owner in owners) > 1:
        raise Invalid(field, "names two controllers", remedy="set controller on one owner only")


def _check_keys(field: str, value: Any, tree: KeyTree | None) -> None:
    """Raise Invalid if a keyed list at or below `value` has two items with one key, as an API server would."""
    if tree is None or not value:
        return
    items: Sequence[Any] = (value,) if tree.key is None else value
    kind: type[msgspec.Struct] = type(items[0])
    if tree.key is not None and len(set(map(_reader(kind, tree.key), items))) != len(items):
        raise Invalid(field, f"has two items with the same {tree.key}", remedy="keep one of them")
    for name, below in tree.below.items():
        path, read = f"{field}.{name}", _reader(kind, name)
        is_deep = below.below or below.each is not None
        for item in items:
            child = read(item)
            if child and (is_deep or len(child) > 1):  # a list of one has no duplicate key
                _check_keys(path, child, below)
    for item in items if tree.each is not None else ():
        for name, child in item.items():
            _check_keys(f"{field}.{name}", child, tree.each)


@lru_cache(maxsize=1024)
def _reader(kind: type[msgspec.Struct], name: str) -> Callable[[Any], Any]:
    """Return a getter of the field with this name in JSON. Cached, because it is used for every item of a list."""
    return attrgetter(kind.__struct_fields__[kind.__struct_encode_fields__.index(name)])


def check_qualified(field: str, text: str) -> None:
    """Raise Invalid, naming the field, unless a text is a valid finalizer, label key or annotation key."""
    found = _problem_of(text)
    if found is not None:
        problem, remedy = found
        raise Invalid(f"{field}[{text}]", problem, remedy=remedy)


@lru_cache(maxsize=1024)
def _problem_of(text: str) -> tuple[str, str] | None:
    """Return the problem of a qualified name and its remedy. Cached, because objects share a few keys."""
    prefix, slash, part = text.rpartition("/")
    if slash and (len(prefix) > _NAME_LIMIT or not _NAME.fullmatch(prefix)):
        return "has a prefix that is not a DNS name", "use a prefix such as example.org/"
    if len(part) > _PART_LIMIT or not _PART.fullmatch(part):
        return "is not a qualified name", f"use at most {_PART_LIMIT} letters, digits, '-', '_' and '.' after the slash"
    return None
