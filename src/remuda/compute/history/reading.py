"""An entry of a timeline as clients read it: what happened, what caused it, and to which incarnation.

Operations and requests say who asked. A controller says which generation it worked on: the first thing that it tells of
a new one goes back to that wish, and the rest to its own work, but for what it only observed.

An entry of an operation may not know the uid of what it makes. It counts to the incarnation of the next entry that has
one: an operation makes or changes what is told of after it. One that only asked for a name that was taken is nothing to
the instance that has it, and is left out; how it ended is known from its last entry, which is read first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from remuda.compute.history.operating import TAKEN
from remuda.compute.history.schema import CauseRead, EventRead
from remuda.compute.history.timeline import sentence_of
from remuda.store.logs import Entry

_OBSERVED = {"Healthy", "Drifted"}
"""Conditions that say how things were found to be."""
_OBSERVATIONS = {"MadeAgain", "AddressesChanged", "AmbiguousServer", "NetworkDeleted", "LeftoverRemoved", "Finding"}
"""Events that say the same."""
_PLACED = {
    "event",
    "uid",
    "generation",
    "controller",
    "reconcileId",
    "cause",
    "actor",
    "traceId",
    "operation",
    "reason",
}
"""Facts that have a place of their own."""
_INTERNAL = {"finalizer", "labels"}
"""Facts that are for us."""


class _Said(msgspec.Struct, frozen=True, rename="camel"):
    """What entries of all kinds say, as far as they do."""

    event: str = ""
    uid: str = ""
    generation: int = 0
    reconcile_id: str = ""
    actor: str = ""
    trace_id: str = ""
    operation: str = ""
    reason: str = ""
    type: str = ""
    saga: str = ""
    error: Any = None
    image: Any = None

    @property
    def is_refusal(self) -> bool:
        """Whether it is the end of an operation that only asked for a name that was taken."""
        code = self.error.get("code") if isinstance(self.error, dict) else None
        return self.event == "OperationUndone" and (self.saga, code) == TAKEN


_decode = msgspec.json.Decoder(_Said, strict=False).decode
_facts = msgspec.json.Decoder(dict[str, Any]).decode


def incarnation_of(entry: Entry) -> str:
    """Return the uid that an entry names, if it names one."""
    return _decode(entry.data).uid


def refused_in(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the operations that ended because the name that they asked for was taken."""
    yield from (said.operation for said in (_decode(each.data) for each in entries) if said.is_refusal)


def without_refused(entries: Iterable[Entry], refused: set[str]) -> list[Entry]:
    """Return entries, the latest first, without those of refused operations; those that end here are added to these."""
    kept = []
    for each in entries:
        said = _decode(each.data)
        if said.is_refusal:
            refused.add(said.operation)
        if not said.operation or said.operation not in refused:
            kept.append(each)
    return kept


def images_in(entries: Iterable[Entry]) -> set[str]:
    return {image for image in (_decode(each.data).image for each in entries) if isinstance(image, str)}


def read_entries(
    entries: Sequence[Entry], *, newer: str, older: Entry | None, images: Mapping[str, str] | None = None
) -> Iterator[EventRead]:
    """Yield entries, the latest first, as clients read them.

    `newer` is the incarnation of what came right after them; `older` is the entry right before them, if there is one.
    `images` are the names of images, as far as they are known.
    """
    named = images or {}
    said = [_decode(each.data) for each in entries]
    before = [*said[1:], _Said() if older is None else _decode(older.data)]
    incarnation = newer
    for entry, now, last in zip(entries, said, before, strict=True):
        incarnation = now.uid or incarnation
        facts = _facts(entry.data)
        yield EventRead(
            time=entry.time,
            event=now.event,
            reason=now.reason,
            sentence=sentence_of(now.event, _named(facts, named)),
            cause=_cause(now, is_new=_is_newer(now, last)),
            incarnation=incarnation,
            facts={name: value for name, value in facts.items() if name not in _PLACED | _INTERNAL},
        )


def _named(facts: dict[str, Any], images: Mapping[str, str]) -> dict[str, Any]:
    """Return facts for people, who know images by their names."""
    image = facts.get("image")
    return {**facts, "image": images[image]} if isinstance(image, str) and image in images else facts


def _is_newer(now: _Said, last: _Said) -> bool:
    """Tell whether a controller speaks of another generation than what came before. An operation speaks of none."""
    return bool(now.reconcile_id) and (now.uid, now.generation) != (last.uid, last.generation)


def _cause(said: _Said, *, is_new: bool) -> CauseRead:
    if said.actor or said.operation:
        return CauseRead(
            type="request",
            actor=said.actor,
            trace_id=said.trace_id,
            operation_id=said.operation,
            generation=said.generation,
        )
    if said.event in _OBSERVATIONS or said.type in _OBSERVED:
        return CauseRead(type="observation", generation=said.generation, reconcile_id=said.reconcile_id)
    return CauseRead(
        type="generation" if is_new else "reconcile",
        generation=said.generation,
        reconcile_id=said.reconcile_id,
    )
