"""What an operation has in hand: an object that it changes, and may yet put back as it was.

While an object is in hand no other change gets in, and no controller acts on it. Nothing has to be let go in the end: a
hand closes with its operation, however that ends.

Every time an object is taken in hand, and when what was done to it is taken back, begins another turn. Whoever tells
the ledger what it costs says in which turn that was read, so that who sleeps through a turn is refused when it wakes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.quota.reservation import is_being_made
from remuda.resources.conventions import DESCRIPTION, MODIFIED, MODIFIER, NAME
from remuda.store.contract import Store
from remuda.store.objects import Resource, ResourceT

IN_HAND = "remuda/in-hand"
"""Annotation: the operation that changed an object last together with its cost, and has it in hand while it is open."""

TAKEN_BACK = "remuda/taken-back"
"""Annotation: the operation that has an object in hand in order to put it back as it was."""
TURN = "remuda/turn"
"""Annotation: how often an object was taken in hand, or that taken back."""

_SAID = (DESCRIPTION, MODIFIER, MODIFIED)
SpecT = TypeVar("SpecT")


class Before(msgspec.Struct, Generic[SpecT], frozen=True, kw_only=True):
    """An object as it was judged, and as it is again if the operation is undone."""

    name: str
    said: Mapping[str, str]
    """The annotations of what was said about it."""
    spec: SpecT


def before_of(resource: Resource) -> Before[Any]:
    """Return what there is to put back of an object."""
    metadata, spec = resource.metadata, resource.spec  # type: ignore[attr-defined]  # every kind that costs has one
    said = {key: metadata.annotations[key] for key in _SAID if key in metadata.annotations}
    return Before(name=metadata.labels[NAME], said=said, spec=spec)


async def is_in_hand(store: Store, resource: Resource) -> bool:
    """Tell whether an operation changes an object just now."""
    return await is_being_made(store, hand_of(resource))


async def refuse_while_in_hand(store: Store, resource: Resource, made_by: str) -> None:
    """Raise Conflict while the operation that made an object, or one that changes it, may yet take that back."""
    if await is_in_hand(store, resource) or await is_being_made(store, made_by):
        raise Conflict(type(resource).__name__, resource.name)


def hand_of(resource: Resource) -> str:
    """Return the operation that has an object in hand, or had it last."""
    return resource.metadata.annotations.get(IN_HAND, "")


def in_hand_of(resource: ResourceT, operation: str) -> ResourceT:
    """Return an object in the hand of an operation, which is another turn; or in the hand of nobody, if it is empty."""
    said = {IN_HAND: operation, TURN: str(turn_of(resource) + 1)} if operation else {}
    return _annotated(resource, without=(IN_HAND, TAKEN_BACK), **said)


def taken_back(resource: ResourceT) -> ResourceT:
    """Return an object that is put back as it was by who has it in hand: another turn, whenever anybody begins that."""
    return _annotated(resource, **{TAKEN_BACK: hand_of(resource), TURN: str(turn_of(resource) + 1)})


def is_taken_back(resource: Resource) -> bool:
    """Tell whether who has an object in hand puts it back as it was."""
    return TAKEN_BACK in resource.metadata.annotations


def turn_of(resource: Resource) -> int:
    """Return how often an object was taken in hand, or that taken back."""
    said = resource.metadata.annotations.get(TURN, "")
    return int(said) if said.isdecimal() else 0


def _annotated(resource: ResourceT, /, *, without: Sequence[str] = (), **said: str) -> ResourceT:
    kept = {key: value for key, value in resource.metadata.annotations.items() if key not in without}
    return replace(resource, metadata=replace(resource.metadata, annotations=kept | said))


def restored(resource: ResourceT, before: Before[Any]) -> ResourceT:
    """Return an object as it was, in whose hand it may be."""
    metadata = resource.metadata
    kept = {key: value for key, value in metadata.annotations.items() if key not in _SAID}
    labels = dict(metadata.labels) | {NAME: before.name}
    metadata = replace(metadata, labels=labels, annotations=kept | dict(before.said))
    return replace(resource, metadata=metadata, spec=before.spec)
