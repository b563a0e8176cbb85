"""Rules of the write operations: the store contract applied to a batch.

A rule first validates and then writes, so that a rejected request leaves nothing in the batch. The consequences of a
write (children of a deleted owner, targets of a removed referrer) are scheduled in the batch and done in the same
commit.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRejected, ReferenceRejected
from remuda.kernel.ids import random_id
from remuda.store.kinds import Kind
from remuda.store.lifecycle import (
    check_precondition,
    deleting_owners,
    has_other_owner,
    new_resource,
    with_desired,
    with_finalizers,
    with_status,
    without_owner,
)
from remuda.store.logs import Record
from remuda.store.objects import FOREGROUND, IN_USE, OwnerReference, Resource, ResourceT
from remuda.store.sqlite.batch import Batch
from remuda.store.validation import check_metadata, check_object_limit, check_spec, check_status

_CASCADE_STEP = 20


def create(batch: Batch, kind: Kind[ResourceT], desired: ResourceT, log: Sequence[Record]) -> ResourceT:
    if batch.find(kind, desired.name) is not None:
        raise AlreadyExists(kind.name, desired.name)
    _check_owners(batch, kind, desired, desired.metadata.owner_references)
    _check_targets(batch, kind, desired, kind.targets(desired))
    check_object_limit(batch.registry, kind, desired, batch.count_labelled)
    batch.log(log)
    new = new_resource(batch.registry, kind, desired)
    metadata = msgspec.structs.replace(new.metadata, uid=random_id(batch.randomness), creation_timestamp=batch.second)
    return batch.put(kind, msgspec.structs.replace(new, metadata=metadata), None, is_requested=True)


def update(batch: Batch, kind: Kind[ResourceT], desired: ResourceT, log: Sequence[Record]) -> ResourceT:
    stored = _find(batch, kind, desired.name)
    check_precondition(kind, stored, uid=desired.uid, version=desired.version)
    new = with_desired(kind, stored, desired)
    old_owners, owners = stored.metadata.owner_references, new.metadata.owner_references
    old_targets, targets = kind.targets(stored), kind.targets(new)
    has_new_metadata, has_new_spec = new.metadata != stored.metadata, _spec(new) != _spec(stored)
    if has_new_metadata:
        check_metadata(new.metadata)
    if has_new_metadata or has_new_spec:
        check_spec(kind, new)
        _check_owners(batch, kind, new, [owner for owner in owners if owner not in old_owners])
        _check_targets(batch, kind, new, targets - old_targets)
    batch.log(log)
    if not (has_new_metadata or has_new_spec or batch.needs_sealing(kind, stored)):
        return stored
    if has_new_spec:
        metadata = msgspec.structs.replace(new.metadata, generation=new.metadata.generation + 1)
        new = msgspec.structs.replace(new, metadata=metadata)
    if new.is_deleting and not new.metadata.finalizers:
        return _drop(batch, kind, new, stored)
    written = batch.put(kind, new, stored, is_requested=True)
    if owners != old_owners or targets != old_targets:
        lost = [owner for owner in old_owners if owner not in owners]
        _recheck_finalizers(batch, owners=lost, targets=old_targets - targets)
    return written


def update_status(batch: Batch, kind: Kind[ResourceT], desired: ResourceT, log: Sequence[Record]) -> ResourceT:
    stored = _find(batch, kind, desired.name)
    check_precondition(kind, stored, uid=desired.uid, version=desired.version)
    check_status(kind, desired)
    batch.log(log)
    new = with_status(kind, stored, desired)
    return stored if new == stored else batch.put(kind, new, stored, is_requested=True)


def delete(
    batch: Batch,
    kind: Kind[ResourceT],
    name: str,
    uid: str,
    version: str | None,
    log: Sequence[Record],
    *,
    unused: bool,
) -> Callable[[], ResourceT | None]:
    """Start the deletion of an object and of everything it owns; remove at once what has no finalizers.

    The result must be called at the end of the batch: only then is it known whether the object still exists.
    """
    stored = _find(batch, kind, name)
    check_precondition(kind, stored, uid=uid, version=version)
    if unused and not stored.is_deleting and _is_in_use(batch, kind, stored):
        raise Conflict(kind.name, name)
    batch.log(log)
    if not stored.is_deleting:
        _start_deletion(batch, kind, stored)
    return lambda: batch.state_of(kind, stored)


def _start_deletion(batch: Batch, kind: Kind[ResourceT], stored: ResourceT) -> None:
    has_children = any(True for _ in batch.children(stored, limit=1))
    remaining = [FOREGROUND] if has_children else []
    remaining += [f for f in stored.metadata.finalizers if f != IN_USE or _is_in_use(batch, kind, stored)]
    deleting = with_finalizers(stored, remaining, deleted_at=batch.second)
    if remaining:
        batch.put(kind, deleting, stored)
        if has_children:
            batch.cascade(lambda batch: _delete_children(batch, stored, ""))
        # The references of an owner to its children do not block their removal once it is being deleted.
        _recheck_finalizers(batch, owners=(), targets=kind.targets(stored))
    else:
        _drop(batch, kind, deleting, stored)


def _delete_children(batch: Batch, owner: Resource, after: str) -> None:
    """Delete the next few children of each kind, and continue in another step while there are more."""
    children = list(batch.children(owner, after=after, limit=_CASCADE_STEP))
    for kind, name in children:
        # Each child is a step of its own: one with thousands of index entries takes as long as thousands of others.
        batch.cascade(lambda batch, kind=kind, name=name: _delete_child(batch, owner, kind, name))  # type: ignore[misc]  # mypy cannot infer a default
    if children:
        # All kinds advance together by name: the next step starts at the smallest last name of a full one.
        full = [names[-1] for names in _by_kind(children) if len(names) == _CASCADE_STEP]
        if full:
            batch.cascade(lambda batch: _delete_children(batch, owner, min(full)))


def _delete_child(batch: Batch, owner: Resource, kind: Kind[Any], name: str) -> None:
    child = batch.find(kind, name)
    if child is None or child.is_deleting:
        return
    if has_other_owner(batch.registry, child, owner, batch.find):
        batch.put(kind, without_owner(child, owner), child)
        _recheck_finalizers(batch, owners=child.metadata.owner_references, targets=())
    else:
        _start_deletion(batch, kind, child)


def _by_kind(children: Iterable[tuple[Kind[Any], str]]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for kind, name in children:
        groups.setdefault(kind.qualified, []).append(name)
    return list(groups.values())


def _remove_store_finalizers(batch: Batch, kind: Kind[Any], name: str) -> None:
    """Remove the store's finalizers that no longer apply to a deleting object, and it with its last one."""
    stored = batch.find(kind, name)
    if stored is None or not stored.is_deleting:
        return
    remaining = [f for f in stored.metadata.finalizers if not _is_removable(batch, kind, stored, f)]
    if len(remaining) == len(stored.metadata.finalizers):
        return
    freed = with_finalizers(stored, remaining)
    if remaining:
        batch.put(kind, freed, stored)
    else:
        _drop(batch, kind, freed, stored)


def _is_removable(batch: Batch, kind: Kind[Any], stored: Resource, finalizer: str) -> bool:
    if finalizer == FOREGROUND:
        return not any(True for _ in batch.children(stored, limit=1))
    return finalizer == IN_USE and not _is_in_use(batch, kind, stored)


def _drop(batch: Batch, kind: Kind[ResourceT], last: ResourceT, stored: ResourceT) -> ResourceT:
    gone = batch.drop(kind, last, stored)
    _recheck_finalizers(batch, owners=stored.metadata.owner_references, targets=kind.targets(stored))
    return gone


def _recheck_finalizers(batch: Batch, *, owners: Iterable[OwnerReference], targets: Iterable[tuple[str, str]]) -> None:
    affected = [(batch.registry.named(target), name) for target, name in sorted(targets)]
    for owner in owners:
        kind = batch.registry.owning(owner)
        affected += [(kind, owner.name)] if kind else []
    for kind, name in affected:
        remove = partial(_remove_store_finalizers, kind=kind, name=name)
        batch.after_cascades(kind, name, remove)


def _is_in_use(batch: Batch, kind: Kind[Any], target: Resource) -> bool:
    """Return whether a referrer blocks the removal of `target`, apart from its deleting owners, which wait for it."""
    deleting = None
    for referrer in batch.referrers(kind, target.name):
        if deleting is None:
            deleting = deleting_owners(batch.registry, target, batch.find)
        if (referrer.kind.qualified, referrer.name) not in deleting:
            return True
    return False


def _check_owners(batch: Batch, kind: Kind[Any], child: Resource, owners: Iterable[OwnerReference]) -> None:
    for reference in owners:
        owning = batch.registry.owning(reference)
        owner = batch.find(owning, reference.name) if owning else None
        if owner is None or owner.uid != reference.uid or owner.is_deleting:
            raise OwnerRejected(kind.name, child.name, owner=f"{reference.kind} {reference.name}")


def _check_targets(batch: Batch, kind: Kind[Any], referrer: Resource, targets: Iterable[tuple[str, str]]) -> None:
    for qualified, name in sorted(targets):
        target_kind = batch.registry.named(qualified)
        target = batch.find(target_kind, name)
        if target is None or target.is_deleting:
            raise ReferenceRejected(kind.name, referrer.name, target_kind=target_kind.name, target=name)


def _find(batch: Batch, kind: Kind[ResourceT], name: str) -> ResourceT:
    stored = batch.find(kind, name)
    if stored is None:
        raise NotFound(kind.name, name)
    return stored


def _spec(resource: Resource) -> object:
    return getattr(resource, "spec", None)
