"""Lifecycle rules that all backends share, as pure functions of an object's states."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from remuda.kernel.errors import Conflict, Invalid
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import IN_USE, STORE_FINALIZERS, Resource, ResourceT


def new_resource(registry: Registry, kind: Kind[ResourceT], desired: ResourceT) -> ResourceT:
    """Return the object that a create stores, without the caller's status and uid, with the store's finalizer."""
    finalizers = [IN_USE] if registry.is_target(kind) else []
    finalizers += [finalizer for finalizer in desired.metadata.finalizers if finalizer not in STORE_FINALIZERS]
    metadata = replace(
        desired.metadata,
        uid="",
        generation=1,
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
        finalizers=tuple(dict.fromkeys(finalizers)),
    )
    return _with(kind, desired, metadata=metadata, status=kind.blank_status)


def check_precondition(kind: Kind[Any], found: ResourceT, *, uid: str, version: str | None) -> None:
    """Raise Conflict unless `found` is the incarnation, and the version if one is given, that was read."""
    if (uid and uid != found.uid) or (version is not None and version != found.version):
        raise Conflict(kind.name, found.name)


def with_desired(kind: Kind[ResourceT], stored: ResourceT, desired: ResourceT) -> ResourceT:
    """Return `stored` with the spec, and the metadata a caller may write, of `desired`."""
    if stored.is_deleting:
        _check_no_new_finalizer(stored.metadata.finalizers, desired.metadata.finalizers)
    metadata = replace(
        stored.metadata,
        labels=desired.metadata.labels,
        annotations=desired.metadata.annotations,
        owner_references=desired.metadata.owner_references,
        finalizers=_with_store_finalizers(stored.metadata.finalizers, desired.metadata.finalizers),
    )
    return _with(kind, desired, metadata=metadata, status=getattr(stored, "status", None))


def with_status(kind: Kind[ResourceT], stored: ResourceT, desired: ResourceT) -> ResourceT:
    return _with(kind, stored, metadata=stored.metadata, status=getattr(desired, "status", None))


def with_finalizers(resource: ResourceT, finalizers: Iterable[str], *, deleted_at: datetime | None = None) -> ResourceT:
    """Return an object with these finalizers, and with a deletion time if one is given and it has none."""
    metadata = replace(resource.metadata, finalizers=tuple(finalizers))
    if deleted_at is not None and not resource.is_deleting:
        metadata = replace(metadata, deletion_timestamp=deleted_at, generation=metadata.generation + 1)
    return replace(resource, metadata=metadata)


def deleting_owners(
    registry: Registry, resource: Resource, find: Callable[[Kind[Any], str], Resource | None]
) -> set[tuple[str, str]]:
    """Return (qualified kind, name) of all owners, direct or not, that are being deleted and wait for `resource`."""
    seen: set[str] = set()
    deleting: set[tuple[str, str]] = set()
    pending = list(resource.metadata.owner_references)
    while pending:
        reference = pending.pop()
        kind = registry.owning(reference)
        owner = find(kind, reference.name) if kind else None
        if kind and owner and owner.uid == reference.uid and owner.uid not in seen:
            seen.add(owner.uid)
            pending += owner.metadata.owner_references
            if owner.is_deleting:
                deleting.add((kind.qualified, owner.name))
    return deleting


def has_other_owner(
    registry: Registry, child: Resource, owner: Resource, find: Callable[[Kind[Any], str], Resource | None]
) -> bool:
    """Return whether a child of `owner` has another owner that is not being deleted, and so is kept."""
    for reference in child.metadata.owner_references:
        kind = registry.owning(reference)
        other = find(kind, reference.name) if kind and reference.uid != owner.uid else None
        if other is not None and other.uid == reference.uid and not other.is_deleting:
            return True
    return False


def without_owner(child: ResourceT, owner: Resource) -> ResourceT:
    left = tuple(reference for reference in child.metadata.owner_references if reference.uid != owner.uid)
    return replace(child, metadata=replace(child.metadata, owner_references=left))


def _with(kind: Kind[ResourceT], resource: ResourceT, *, metadata: Any, status: Any) -> ResourceT:
    if kind.blank_status is None:
        return replace(resource, metadata=metadata)
    return replace(resource, metadata=metadata, status=status)


def _with_store_finalizers(stored: tuple[str, ...], desired: tuple[str, ...]) -> tuple[str, ...]:
    """Return the desired finalizers, but the store's own exactly as they are stored."""
    if stored == desired:
        return stored
    ours = [finalizer for finalizer in stored if finalizer in STORE_FINALIZERS]
    others = [finalizer for finalizer in dict.fromkeys(desired) if finalizer not in STORE_FINALIZERS]
    return (*ours, *others)


def _check_no_new_finalizer(stored: Iterable[str], desired: Iterable[str]) -> None:
    added = set(desired) - set(stored) - STORE_FINALIZERS
    if added:
        problem = "cannot be added to an object that is being deleted"
        raise Invalid(f"metadata.finalizers[{min(added)}]", problem, remedy="finish the deletion first")
