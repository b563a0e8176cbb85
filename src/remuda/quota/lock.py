"""Operation lock on a stored object, with a fencing token.

An operation that updates an object together with its quota holds this lock, an annotation with the operation's id.
While it is held, no other update is accepted, and no controller acts on the object. It needs no release: it ends with
its operation, whatever the outcome.

Each acquisition and each rollback increments the fencing token. Quota updates carry the token they were computed with,
and the ledger rejects an older one, so a process that was suspended cannot overwrite a newer allocation.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.operations.kinds import OPEN_PHASES, Operation, Phase
from remuda.resources.conventions import DESCRIPTION, MODIFIED, MODIFIER, MODIFIER_NAME, NAME
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Resource, ResourceT

LOCK = "remuda/locked-by"
"""Annotation: the operation that last changed an object with its quota; it holds the lock while it is open."""

REVERTING = "remuda/reverting"
"""Annotation: the operation that holds the lock and restores the previous state of the object."""
FENCING_TOKEN = "remuda/fencing-token"  # noqa: S105  an annotation, no secret

_ANNOTATIONS = (DESCRIPTION, MODIFIER, MODIFIER_NAME, MODIFIED)
SpecT = TypeVar("SpecT")


class PreviousState(msgspec.Struct, Generic[SpecT], frozen=True, kw_only=True):
    """The state of an object when an update was validated, restored if the operation is undone."""

    name: str
    annotations: Mapping[str, str]
    """The annotations that users see."""
    spec: SpecT


def previous_state(resource: Resource) -> PreviousState[Any]:
    """Return the state of an object that an update could change."""
    metadata, spec = resource.metadata, resource.spec  # type: ignore[attr-defined]  # every kind that costs has one
    annotations = {key: metadata.annotations[key] for key in _ANNOTATIONS if key in metadata.annotations}
    return PreviousState(name=metadata.labels[NAME], annotations=annotations, spec=spec)


async def operation_phase(store: Store, operation: str) -> Phase:
    """Return the phase of an operation; one without a record was done long ago."""
    found = await find(store, Operation, operation) if operation else None
    return "done" if found is None else found.phase


async def is_operation_open(store: Store, operation: str) -> bool:
    return await operation_phase(store, operation) in OPEN_PHASES


async def is_locked(store: Store, resource: Resource) -> bool:
    return await is_operation_open(store, lock_holder(resource))


async def require_unlocked(store: Store, resource: Resource, create_operation: str) -> None:
    """Raise Conflict while the operation that created an object, or one that updates it, may be rolled back."""
    if await is_locked(store, resource) or await is_operation_open(store, create_operation):
        raise Conflict(type(resource).__name__, resource.name)


def lock_holder(resource: Resource) -> str:
    """Return the operation that holds the lock of an object, or held it last."""
    return resource.metadata.annotations.get(LOCK, "")


def locked(resource: ResourceT, operation: str) -> ResourceT:
    """Return an object that is locked by an operation, with the next token; or unlocked, if the operation is empty."""
    annotations = {LOCK: operation, FENCING_TOKEN: str(fencing_token(resource) + 1)} if operation else {}
    return _annotated(resource, without=(LOCK, REVERTING), **annotations)


def reverting(resource: ResourceT) -> ResourceT:
    """Return an object whose lock holder restores it, with the next token."""
    return _annotated(resource, **{REVERTING: lock_holder(resource), FENCING_TOKEN: str(fencing_token(resource) + 1)})


def is_reverting(resource: Resource) -> bool:
    return REVERTING in resource.metadata.annotations


def fencing_token(resource: Resource) -> int:
    token = resource.metadata.annotations.get(FENCING_TOKEN, "")
    return int(token) if token.isdecimal() else 0


def _annotated(resource: ResourceT, /, *, without: Sequence[str] = (), **annotations: str) -> ResourceT:
    kept = {key: value for key, value in resource.metadata.annotations.items() if key not in without}
    return replace(resource, metadata=replace(resource.metadata, annotations=kept | annotations))


def restored(resource: ResourceT, before: PreviousState[Any]) -> ResourceT:
    """Return an object with its previous state, and the lock unchanged."""
    metadata = resource.metadata
    kept = {key: value for key, value in metadata.annotations.items() if key not in _ANNOTATIONS}
    labels = dict(metadata.labels) | {NAME: before.name}
    metadata = replace(metadata, labels=labels, annotations=kept | dict(before.annotations))
    return replace(resource, metadata=metadata, spec=before.spec)
