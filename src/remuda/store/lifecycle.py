"""The parts of an object's life that every backend decides alike, as pure functions of its states."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from remuda.kernel.errors import Conflict, Invalid
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import IN_USE, OURS, Resource, ResourceT


def newborn(registry: Registry, kind: Kind[ResourceT], wanted: ResourceT) -> ResourceT:
    """Return what a create stores: no status and no uid of the caller's, and our finalizer if it can be referred to."""
    finalizers = [IN_USE] if registry.is_target(kind) else []
    finalizers += [finalizer for finalizer in wanted.metadata.finalizers if finalizer not in OURS]
    metadata = replace(
        wanted.metadata,
        uid="",
        generation=1,
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
        finalizers=tuple(dict.fromkeys(finalizers)),
    )
    return _with(kind, wanted, metadata=metadata, status=kind.blank_status)


def check_precondition(kind: Kind[Any], found: ResourceT, *, uid: str, version: str | None) -> None:
    """Raise Conflict unless `found` is the incarnation, and the version if one is given, that was read."""
    if (uid and uid != found.uid) or (version is not None and version != found.version):
        raise Conflict(kind.name, found.name)


def with_intent(kind: Kind[ResourceT], stored: ResourceT, wanted: ResourceT) -> ResourceT:
    """Return `stored` with the metadata a caller may write, and the spec, of `wanted`."""
    if stored.is_marked:
        _check_no_new_finalizer(stored.metadata.finalizers, wanted.metadata.finalizers)
    metadata = replace(
        stored.metadata,
        labels=wanted.metadata.labels,
        annotations=wanted.metadata.annotations,
        owner_references=wanted.metadata.owner_references,
        finalizers=_keeping_ours(stored.metadata.finalizers, wanted.metadata.finalizers),
    )
    return _with(kind, wanted, metadata=metadata, status=getattr(stored, "status", None))


def with_status(kind: Kind[ResourceT], stored: ResourceT, wanted: ResourceT) -> ResourceT:
    """Return `stored` with the status of `wanted`."""
    return _with(kind, stored, metadata=stored.metadata, status=getattr(wanted, "status", None))


def with_finalizers(resource: ResourceT, finalizers: Iterable[str], *, marked_at: datetime | None = None) -> ResourceT:
    """Return an object with these finalizers, and marked for deletion if it was not and a time is given."""
    metadata = replace(resource.metadata, finalizers=tuple(finalizers))
    if marked_at is not None and not resource.is_marked:
        metadata = replace(metadata, deletion_timestamp=marked_at, generation=metadata.generation + 1)
    return replace(resource, metadata=metadata)


def dying_owners(
    registry: Registry, resource: Resource, find: Callable[[Kind[Any], str], Resource | None]
) -> set[tuple[str, str]]:
    """Return (qualified kind, name) of every owner, near or far, that is marked and so waits for `resource` to go."""
    seen: set[str] = set()
    dying: set[tuple[str, str]] = set()
    pending = list(resource.metadata.owner_references)
    while pending:
        reference = pending.pop()
        kind = registry.owning(reference)
        owner = find(kind, reference.name) if kind else None
        if kind and owner and owner.uid == reference.uid and owner.uid not in seen:
            seen.add(owner.uid)
            pending += owner.metadata.owner_references
            if owner.is_marked:
                dying.add((kind.qualified, owner.name))
    return dying


def has_other_owner(
    registry: Registry, child: Resource, owner: Resource, find: Callable[[Kind[Any], str], Resource | None]
) -> bool:
    """Tell whether a child of `owner` has another owner that stays: then it stays as well."""
    for reference in child.metadata.owner_references:
        kind = registry.owning(reference)
        other = find(kind, reference.name) if kind and reference.uid != owner.uid else None
        if other is not None and other.uid == reference.uid and not other.is_marked:
            return True
    return False


def disowned(child: ResourceT, owner: Resource) -> ResourceT:
    """Return a child that no longer names `owner`."""
    left = tuple(reference for reference in child.metadata.owner_references if reference.uid != owner.uid)
    return replace(child, metadata=replace(child.metadata, owner_references=left))


def _with(kind: Kind[ResourceT], resource: ResourceT, *, metadata: Any, status: Any) -> ResourceT:
    if kind.blank_status is None:
        return replace(resource, metadata=metadata)
    return replace(resource, metadata=metadata, status=status)


def _keeping_ours(stored: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the wanted finalizers, with ours exactly where the store has put them."""
    if stored == wanted:
        return stored
    ours = [finalizer for finalizer in stored if finalizer in OURS]
    others = [finalizer for finalizer in dict.fromkeys(wanted) if finalizer not in OURS]
    return (*ours, *others)


def _check_no_new_finalizer(stored: Iterable[str], wanted: Iterable[str]) -> None:
    added = set(wanted) - set(stored) - OURS
    if added:
        problem = "cannot be added to an object that is being deleted"
        raise Invalid(f"metadata.finalizers[{min(added)}]", problem, remedy="finish the deletion first")
