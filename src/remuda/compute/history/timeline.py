"""What is said of an event in a timeline: one plain sentence.

An event that is not known here, such as one of a later release, is told by its own word and facts. Facts come from
outside this service, too, so nothing in them is taken for granted. People are known by their addresses; who is known by
an id alone, as service accounts are, is called an account.

An operation as clients read it: who had what done, how far it is, and why it failed.

The record says at which step it failed and how it ended, and the saga which steps there are: what is in between follows
from that, since steps run in order and are taken back in the other one.

An entry of a timeline as clients read it: what happened, what caused it, and to which incarnation.

Operations and requests say who asked. A controller says which generation it worked on: the first thing that it tells of
a new one goes back to that wish, and the rest to its own work, but for what it only observed.

An entry of an operation may not know the uid of what it makes. It counts to the incarnation of the next entry that has
one: an operation makes or changes what is told of after it. One that only asked for a name that was taken is nothing to
the instance that has it, and is left out; how it ended is known from its last entry, which is read first.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from remuda.compute.history.schema import CauseRead, EventRead, FailureRead, OperationRead, StepRead, StepState
from remuda.compute.instances.sagas import CREATE_INSTANCE
from remuda.kernel.errors import AlreadyExists
from remuda.kernel.ids import is_id
from remuda.operations.kinds import Failure, Operation
from remuda.operations.saga import Sagas
from remuda.store.logs import Entry

Facts = Mapping[str, Any]

_WORD = re.compile(r"(?<!^)(?=[A-Z])")

_SAID: Mapping[str, str] = {
    "FinalizerAdded": "A controller has taken it into its care.",
    "FinalizerRemoved": "It is gone: everything that it had was removed.",
    "CreateRolledBack": "It is removed, because the operation that made it was taken back.",
    "DeletionRequested": "{actor} asked for its deletion.",
    "Started": "{actor} started it.",
    "Stopped": "{actor} stopped it.",
    "SnapshotMade": "{actor} had a snapshot made of it: the image {image}.",
    "KeyHandedOut": "{actor} was given the private SSH key that opens it.",
    "ConsoleOpened": "{actor} was given the address of its console, by which it can be used.",
    "NetworkDeleted": "Its network {network} is being deleted, and takes it along.",
    "ServerMade": "Its server is there.",
    "ServerChanged": "Its server is changed as it was asked for: {fields}.",
    "LeftoverRemoved": "A server that an earlier instance of its name left behind was removed.",
    "Rebuilding": "Its server is being rebuilt from the image {image}: what was on its disk is lost.",
    "Replacing": "Another server takes its server's place, with the same addresses: what is on its disk is lost.",
    "TakenBack": "Its server stays as it is: the one that was to take its place is not wanted any more.",
    "Rebuilt": "Its server was made anew.",
    "RebuildFailed": "Its server could not be made anew: {message}.",
    "AmbiguousServer": "It is not clear which server is its own, so nothing is done to any: {servers}.",
    "Finding": "The monitor found something odd: {message}.",
    "Repaired": "The monitor mended something: {message}.",
    "MassDeletionStopped": "Too much would go at once that nobody asked to go, so nothing more is removed.",
    "DeletedWithoutRequest": "Something of it was removed that nobody asked to remove.",
    "OperationStarted": "{actor} asked for {what}.",
    "OperationDone": "What {actor} asked for, {what}, is agreed to.",
    "OperationUndone": "What {actor} asked for, {what}, was taken back, and left nothing behind.",
    "OperationAbandoned": "An operator gave up what {actor} asked for, {what}: the rest is cleaned up by hand.",
}


def sentence_of(event: str, facts: Facts) -> str:
    """Return what happened, for people."""
    if event in EVENTS:
        return _sentence(event, {**facts, "actor": account(str(facts.get("actor") or ""))})
    words = _WORD.sub(" ", event).lower() or "something happened"
    known = [f"{name} {value}" for name, value in sorted(facts.items()) if isinstance(value, str | int)]
    return f"{words[0].upper()}{words[1:]}{': ' if known else ''}{', '.join(known)}."


def account(actor: str) -> str:
    """Return who somebody is, as far as that is known."""
    return f"account {actor}" if is_id(actor) else actor or "somebody"


def _sentence(event: str, facts: Facts) -> str:
    if event in _TOLD:
        return _TOLD[event](facts)
    listed = {name: _listed(value) for name, value in facts.items()}
    return _SAID[event].format_map(_Known(listed | {"what": _what(facts)}))


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class _Known(dict[str, Any]):
    """Facts, and a word for those that are not there."""

    def __missing__(self, _key: str) -> str:
        return "unknown"


def _condition(facts: Facts) -> str:
    kind, status = str(facts.get("type", "")), str(facts.get("status", ""))
    message = str(facts.get("message", ""))
    said = _CONDITIONS.get((kind, status)) or _CONDITIONS.get((kind, ""))
    if kind == "Available" and facts.get("reason") == "Deprovisioning":
        said = "It is being deleted: {message}."
    if (kind, status) == ("Healthy", "True"):
        said = _WELL.get(message, said)
    said = said or "{kind} is {status}: {message}."
    if not message:
        said = said.replace(": {message}", "")
    return said.format(kind=kind, status=status, message=message)


_CONDITIONS: Mapping[tuple[str, str], str] = {
    ("Available", "True"): "It is as it was asked to be.",
    ("Available", ""): "It is not as it was asked to be: {message}.",
    ("Stalled", "True"): "It has not moved for too long: {message}.",
    ("Stalled", ""): "It moves again.",
    ("Healthy", "True"): "It is healthy.",
    ("Healthy", "Unknown"): "How it is doing is not known: {message}.",
    ("Healthy", ""): "It is not healthy: {message}.",
    ("Drifted", "True"): "At its provider it is not what it was made any more, and is left so: {message}.",
    ("Drifted", ""): "At its provider it is again what it was made.",
    ("Rebuilding", "True"): "Its server is being made anew: {message}.",
    ("Rebuilding", ""): "Making its server anew is over: {message}.",
    ("QuotaConfirmed", "True"): "What it costs is held in its quota.",
    ("QuotaConfirmed", ""): "It costs less than before: {message}.",
}
"""By the type of a condition and what it says; without the latter, what is said of all others."""

_WELL = {"server is stopped": "It is off.", "server is healthy": "It runs, and is healthy."}
"""What is said of one with which all is well, by what region says of its server."""


_ASKED = {"instance.create": "an instance", "instance.update": "a change that costs more or less"}
"""What each operation is for."""


def _what(facts: Facts) -> str:
    """Return what an operation is for, with the name that logs have for it."""
    saga = str(facts.get("saga", "unknown"))
    return f"{_ASKED[saga]} ({saga})" if saga in _ASKED else saga


def _undoing(facts: Facts) -> str:
    return f"What {facts['actor']} asked for, {_what(facts)}, failed{_at(facts)} and is taken back{_why(facts)}."


def _stuck(facts: Facts) -> str:
    return f"What {facts['actor']} asked for, {_what(facts)}, cannot be taken back: an operator has to look."


def _at(facts: Facts) -> str:
    step = facts.get("failedStep")
    return f" at {step}" if step else ""


def _why(facts: Facts) -> str:
    error = facts.get("error")
    sentence = str(error.get("message", "")).rstrip(".") if isinstance(error, dict) else ""
    return f", because: {sentence}" if sentence else ""


def _rebooted(facts: Facts) -> str:
    return f"{facts['actor']} rebooted it{', the hard way' if facts.get('hard') else ''}."


def _changed(facts: Facts) -> str:
    changes = facts.get("changes")
    what = " ".join(map(str, changes)) if isinstance(changes, list) else ""
    return f"{facts['actor']} asked for a change{': ' if what else '.'}{what}"


def _made_again(facts: Facts) -> str:
    power = " It was off, and is started with that." if facts.get("was") == "Stopped" else ""
    why = facts.get("why", "nobody says why")
    return f"Its server is made again, because {why}. What was on its disk is lost.{power}"


def _moved(facts: Facts) -> str:
    changes = facts.get("changes")
    known = changes if isinstance(changes, dict) else {}
    said = [
        f"its {word} was {each.get('was', 'unknown')} and is {each.get('now', 'unknown')}"
        for name, word in _ADDRESSES.items()
        if isinstance(each := known.get(name), dict)
    ]
    return f"It has other addresses than before{': ' if said else ''}{', '.join(said)}."


_ADDRESSES = {"privateIP": "private IP", "macAddress": "MAC address", "publicIP": "public IP"}

_TOLD: Mapping[str, Callable[[Facts], str]] = {
    "AddressesChanged": _moved,
    "ConditionChanged": _condition,
    "OperationUndoing": _undoing,
    "OperationStuck": _stuck,
    "ChangeRequested": _changed,
    "MadeAgain": _made_again,
    "Rebooted": _rebooted,
}

EVENTS = frozenset({*_SAID, *_TOLD})
"""All that have a sentence of their own."""


TAKEN = (CREATE_INSTANCE.name, AlreadyExists.code)
"""The saga and the error of what only asked for a name that was taken."""


class OperationView:
    """Renders operations of these sagas. It is its own key in the store's cache, so make one, not one per call."""

    __slots__ = ("_sagas",)

    def __init__(self, sagas: Sagas) -> None:
        self._sagas = sagas

    def __call__(self, operation: Operation) -> bytes:
        """Render one."""
        return msgspec.json.encode(read_operation(operation, self._sagas))


def read_operation(operation: Operation, sagas: Sagas) -> OperationRead:
    """Return an operation as clients read it."""
    spec, status, metadata = operation.spec, operation.status, operation.metadata
    assert metadata.creation_timestamp is not None, "a stored object has a creation time"
    return OperationRead(
        id=operation.name,
        saga=spec.saga,
        phase=status.phase,
        actor=spec.actor,
        trace_id=spec.trace_id,
        incarnation=status.incarnation,
        started=metadata.creation_timestamp,
        closed=status.closed,
        steps=tuple(_steps(operation, sagas)),
        error=_failure(status.error),
        undo_attempts=status.undo_attempts,
        undo_error=_failure(status.undo_error),
        next_try=status.next_attempt,
        abandoned_by=status.abandoned_by,
        abandoned_because=status.abandoned_because,
    )


def is_refusal(operation: Operation) -> bool:
    """Tell whether an operation only asked for a name that was taken: it is nothing to the instance that has it."""
    spec, status = operation.spec, operation.status
    return status.phase == "undone" and status.error is not None and (spec.saga, status.error.code) == TAKEN


def _failure(failure: Failure | None) -> FailureRead | None:
    return None if failure is None else FailureRead(code=failure.code, sentence=failure.message)


def _steps(operation: Operation, sagas: Sagas) -> Iterator[StepRead]:
    saga = sagas.get(operation.spec.saga)
    names = [] if saga is None else [step.name for step in saga.steps]
    failed = operation.status.failed_step
    reached = names.index(failed) if failed in names else None
    for place, name in enumerate(names):
        yield StepRead(name=name, state=_state(operation, place, reached))


def _state(operation: Operation, place: int, reached: int | None) -> StepState:
    """Return how a step ended; `reached` is the place of the one that failed, if one did."""
    if operation.phase == "done":
        return "done"
    if reached is None:
        return "undone" if operation.phase == "undone" else "unknown"
    if place > reached:
        return "not begun"
    if place == reached:
        return "failed"
    return "undone" if operation.phase == "undone" else "unknown"


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
