"""Events and operations of an instance as clients read them.

The cause of an event is a request if it has an actor or an operation, an observation if it only reports what was
found, and otherwise the work of the controller: its first event of a new generation goes back to that generation.

An event without a uid, such as one of a create operation, belongs to the incarnation of the next event that has one.
Events of a create that was rejected because the name was taken are left out: they have nothing to do with the instance
that has the name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from remuda.compute.history.schema import CauseRead, EventRead, FailureRead, OperationRead, OperationStepRead, StepState
from remuda.compute.instances.sagas import CREATE_INSTANCE
from remuda.kernel.errors import AlreadyExists
from remuda.kernel.ids import is_id
from remuda.operations.kinds import Failure, Operation
from remuda.operations.saga import Sagas
from remuda.store.logs import Entry

Facts = Mapping[str, Any]

_WORD = re.compile(r"(?<!^)(?=[A-Z])")

_MESSAGES: Mapping[str, str] = {
    "FinalizerAdded": "The controller started managing the instance.",
    "FinalizerRemoved": "The instance was deleted.",
    "CreateRolledBack": "The instance is being deleted because its create operation was rolled back.",
    "DeletionRequested": "Deletion was requested by {actor}.",
    "Started": "The instance was started by {actor}.",
    "Stopped": "The instance was stopped by {actor}.",
    "SnapshotCreated": "Snapshot {image} was created by {actor}.",
    "KeyRead": "The private SSH key was read by {actor}.",
    "ConsoleOpened": "The address of the console was read by {actor}.",
    "NetworkDeleted": "Network {network} is being deleted, and the instance with it.",
    "ServerCreated": "The server was created.",
    "ServerChanged": "The server was updated: {fields}.",
    "PreviousServerDeleted": "The server of an earlier instance of this name was deleted.",
    "RebuildRequested": "A rebuild from image {image} was requested by {actor}.",
    "Rebuilding": "The server is being rebuilt from image {image}. Data on its root disk is lost.",
    "Replacing": "The server is being replaced by one with the same addresses. Data on its root disk is lost.",
    "ReplacementCancelled": "The replacement of the server was cancelled. The server stays as it is.",
    "Rebuilt": "The server was rebuilt.",
    "Replaced": "The server was replaced.",
    "RebuildFailed": "The server could not be rebuilt: {message}.",
    "ReplacementFailed": "The server could not be replaced: {message}.",
    "AmbiguousServer": "It is not clear which server belongs to the instance, so none is changed: {servers}.",
    "Finding": "The monitor found an inconsistency: {message}.",
    "Repaired": "The monitor repaired an inconsistency: {message}.",
    "MassDeletionStopped": "Deletion is paused: too many objects would be deleted without a request.",
    "DeletedWithoutRequest": "A resource of the instance was deleted without a request.",
    "OperationUndone": "{what} requested by {actor} failed and was rolled back.",
    "OperationStuck": "{what} requested by {actor} cannot be rolled back. Contact the operator.",
    "OperationAbandoned": "{what} requested by {actor} was abandoned by an operator, who has to clean up manually.",
}


def event_message(event: str, facts: Facts) -> str:
    """Return the description of an event for users; of an unknown event, its name and facts."""
    if event in EVENTS:
        return _message(event, {**facts, "actor": named_actor(_text(facts, "actor"), _text(facts, "actorName"))})
    words = _WORD.sub(" ", event).lower() or "unknown event"
    known = [f"{name} {value}" for name, value in sorted(facts.items()) if isinstance(value, str | int)]
    return f"{words[0].upper()}{words[1:]}{': ' if known else ''}{', '.join(known)}."


def _text(facts: Facts, name: str) -> str:
    return str(facts.get(name) or "")


def named_actor(actor: str, name: str) -> str:
    """Return an actor as texts name it: users have an address, service accounts an id and, if it is known, a name."""
    if name or is_id(actor):
        return f"the service account {name or actor}"
    return actor or "an unknown caller"


def _message(event: str, facts: Facts) -> str:
    if event in _RENDERED:
        return _RENDERED[event](facts)
    listed = {name: _listed(value) for name, value in facts.items()}
    return _MESSAGES[event].format_map(_KnownFacts(listed | {"what": _what(facts)}))


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class _KnownFacts(dict[str, Any]):
    """Facts of an event; a missing one is `unknown`."""

    def __missing__(self, _key: str) -> str:
        return "unknown"


def _condition(facts: Facts) -> str:
    kind, status = str(facts.get("type", "")), str(facts.get("status", ""))
    message = str(facts.get("message", ""))
    text = _CONDITIONS.get((kind, status)) or _CONDITIONS.get((kind, ""))
    if kind == "Available" and facts.get("reason") == "Deprovisioning":
        text = "The instance is being deleted: {message}."
    if (kind, status) == ("Healthy", "True"):
        text = _HEALTHY.get(message, text)
    text = text or "{kind} is {status}: {message}."
    if not message:
        text = text.replace(": {message}", "")
    return text.format(kind=kind, status=status, message=message)


_CONDITIONS: Mapping[tuple[str, str], str] = {
    ("Available", "True"): "The instance is provisioned.",
    ("Available", ""): "The instance is not provisioned: {message}.",
    ("Stalled", "True"): "The instance makes no progress: {message}.",
    ("Stalled", ""): "The instance makes progress again.",
    ("Healthy", "True"): "The instance is healthy.",
    ("Healthy", "Unknown"): "The health of the instance is unknown: {message}.",
    ("Healthy", ""): "The instance is not healthy: {message}.",
    ("Drifted", "True"): "The server was changed at the provider: {message}.",
    ("Drifted", ""): "The server at the provider is as requested again.",
    ("Rebuilding", "True"): "The server is being rebuilt or replaced: {message}.",
    ("Rebuilding", ""): "The rebuild or replacement of the server ended: {message}.",
    ("QuotaConfirmed", "True"): "The quota of the instance is confirmed.",
    ("QuotaConfirmed", ""): "The instance uses less quota: {message}.",
}
"""By type and status of a condition; an empty status stands for all others."""

_HEALTHY = {"server is stopped": "The instance is stopped.", "server is healthy": "The instance is running."}
"""By the message that region reports for a healthy server."""


_OPERATIONS = {"instance.create": "Creation of the instance", "instance.update": "Update of the instance and its quota"}


def _what(facts: Facts) -> str:
    saga = str(facts.get("saga", "unknown"))
    return _OPERATIONS.get(saga, f"Operation {saga}")


def _started(facts: Facts) -> str:
    what = "The instance" if facts.get("saga") == CREATE_INSTANCE.name else _what(facts)
    return f"{what} was requested by {facts['actor']}."


def _done(facts: Facts) -> str:
    return _DONE.get(str(facts.get("saga")), f"{_what(facts)} requested by {facts['actor']} was completed.")


_DONE = {
    "instance.create": "Quota was reserved and the instance was stored. Its server is created next.",
    "instance.update": "The update of the instance and its quota was stored. Its server is updated next.",
}


def _undoing(facts: Facts) -> str:
    step, error = facts.get("failedStep"), facts.get("error")
    position = f" at step {step}" if step else ""
    message = str(error.get("message", "")).rstrip(".") if isinstance(error, dict) else ""
    cause = f": {message}" if message else ""
    return f"{_what(facts)} requested by {facts['actor']} failed{position} and is being rolled back{cause}."


def _rebooted(facts: Facts) -> str:
    return f"The instance was rebooted{' (hard)' if facts.get('hard') else ''} by {facts['actor']}."


def _changed(facts: Facts) -> str:
    changes = facts.get("changes")
    what = " ".join(map(str, changes)) if isinstance(changes, list) else ""
    return f"An update was requested by {facts['actor']}{': ' if what else '.'}{what}"


def _created_again(facts: Facts) -> str:
    power = " The instance was stopped and is started." if facts.get("was") == "Stopped" else ""
    reason = f": {facts['reason']}" if facts.get("reason") else ""
    return f"The server is being created again{reason}. Data on its root disk is lost.{power}"


def _addresses_changed(facts: Facts) -> str:
    changes = facts.get("changes")
    known = changes if isinstance(changes, dict) else {}
    listed = [
        f"{name} from {each.get('was', 'unknown')} to {each.get('now', 'unknown')}"
        for key, name in _ADDRESSES.items()
        if isinstance(each := known.get(key), dict)
    ]
    return f"The addresses of the instance changed{': ' if listed else ''}{', '.join(listed)}."


_ADDRESSES = {"privateIP": "private IP", "macAddress": "MAC address", "publicIP": "public IP"}

_RENDERED: Mapping[str, Callable[[Facts], str]] = {
    "AddressesChanged": _addresses_changed,
    "ConditionChanged": _condition,
    "OperationStarted": _started,
    "OperationDone": _done,
    "OperationUndoing": _undoing,
    "ChangeRequested": _changed,
    "ServerRecreated": _created_again,
    "Rebooted": _rebooted,
}

EVENTS = frozenset({*_MESSAGES, *_RENDERED})
"""Events that have a message of their own."""


NAME_CONFLICT = (CREATE_INSTANCE.name, AlreadyExists.code)
"""Saga and error code of a create that was rejected because the name was taken."""


class OperationView:
    """Renders operations of these sagas. It is its own key in the store's cache: create one, not one per call."""

    __slots__ = ("_sagas",)

    def __init__(self, sagas: Sagas) -> None:
        self._sagas = sagas

    def __call__(self, operation: Operation) -> bytes:
        return msgspec.json.encode(read_operation(operation, self._sagas))


def read_operation(operation: Operation, sagas: Sagas) -> OperationRead:
    """Return an operation as clients read it. The states of its steps follow from the step that failed."""
    spec, status, metadata = operation.spec, operation.status, operation.metadata
    assert metadata.creation_timestamp is not None, "a stored object has a creation time"
    return OperationRead(
        id=operation.name,
        saga=spec.saga,
        phase=status.phase,
        actor=spec.actor,
        actor_name=spec.actor_name,
        trace_id=spec.trace_id,
        incarnation=status.incarnation,
        started=metadata.creation_timestamp,
        closed=status.closed,
        steps=tuple(_steps(operation, sagas)),
        error=_failure(status.error),
        undo_attempts=status.undo_attempts,
        undo_error=_failure(status.undo_error),
        next_attempt=status.next_attempt,
        abandoned_by=status.abandoned_by,
        abandoned_because=status.abandoned_because,
    )


def is_name_conflict(operation: Operation) -> bool:
    """Return whether an operation is a create that was rejected because the name was taken."""
    spec, status = operation.spec, operation.status
    return status.phase == "undone" and status.error is not None and (spec.saga, status.error.code) == NAME_CONFLICT


def _failure(failure: Failure | None) -> FailureRead | None:
    return None if failure is None else FailureRead(code=failure.code, message=failure.message)


def _steps(operation: Operation, sagas: Sagas) -> Iterator[OperationStepRead]:
    saga = sagas.get(operation.spec.saga)
    names = [] if saga is None else [step.name for step in saga.steps]
    failed = operation.status.failed_step
    reached = names.index(failed) if failed in names else None
    for index, name in enumerate(names):
        yield OperationStepRead(name=name, state=_state(operation, index, reached))


def _state(operation: Operation, index: int, failed: int | None) -> StepState:
    if operation.phase == "done":
        return "done"
    if failed is None:
        return "undone" if operation.phase == "undone" else "unknown"
    if index > failed:
        return "not started"
    if index == failed:
        return "failed"
    return "undone" if operation.phase == "undone" else "unknown"


_OBSERVED_CONDITIONS = {"Healthy", "Drifted"}
_OBSERVATIONS = {
    "ServerRecreated",
    "AddressesChanged",
    "AmbiguousServer",
    "NetworkDeleted",
    "PreviousServerDeleted",
    "Finding",
}
"""Events that report what was observed."""
_NAMED_FACTS = {
    "event",
    "uid",
    "generation",
    "controller",
    "reconcileId",
    "cause",
    "actor",
    "actorName",
    "traceId",
    "operation",
    "reason",
}
"""Facts that have a field of their own."""
_INTERNAL_FACTS = {"finalizer", "labels"}


class _EventData(msgspec.Struct, frozen=True, rename="camel"):
    """Facts of events of all kinds, empty where they are missing."""

    event: str = ""
    uid: str = ""
    generation: int = 0
    reconcile_id: str = ""
    actor: str = ""
    actor_name: str = ""
    trace_id: str = ""
    operation: str = ""
    reason: str = ""
    type: str = ""
    saga: str = ""
    error: Any = None
    image: Any = None

    @property
    def is_name_conflict(self) -> bool:
        """Whether it ends a create that was rejected because the name was taken."""
        code = self.error.get("code") if isinstance(self.error, dict) else None
        return self.event == "OperationUndone" and (self.saga, code) == NAME_CONFLICT


_decode = msgspec.json.Decoder(_EventData, strict=False).decode
_facts = msgspec.json.Decoder(dict[str, Any]).decode


def incarnation_of(entry: Entry) -> str:
    return _decode(entry.data).uid


def rejected_operations(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the operations that were rejected because the name was taken."""
    yield from (data.operation for data in (_decode(each.data) for each in entries) if data.is_name_conflict)


def without_rejected(entries: Iterable[Entry], rejected: set[str]) -> list[Entry]:
    """Return entries, the latest first, without those of rejected operations; add those that end here to `rejected`."""
    kept = []
    for each in entries:
        data = _decode(each.data)
        if data.is_name_conflict:
            rejected.add(data.operation)
        if not data.operation or data.operation not in rejected:
            kept.append(each)
    return kept


def images_in(entries: Iterable[Entry]) -> set[str]:
    return {image for image in (_decode(each.data).image for each in entries) if isinstance(image, str)}


def read_entries(
    entries: Sequence[Entry], *, newer: str, older: Entry | None, images: Mapping[str, str] | None = None
) -> Iterator[EventRead]:
    """Yield entries, the latest first, as clients read them.

    `newer` is the incarnation of the entry right after them; `older` is the entry right before them, if there is one.
    `images` maps ids of images to their names, as far as they are known.
    """
    named = images or {}
    incarnation = newer
    decoded = (_EventData() if each is None else _decode(each.data) for each in [*entries, older])
    for entry, (now, last) in zip(entries, pairwise(decoded), strict=True):
        incarnation = now.uid or incarnation
        facts = _facts(entry.data)
        yield EventRead(
            time=entry.time,
            event=now.event,
            reason=now.reason,
            message=event_message(now.event, _named(facts, named)),
            cause=_cause(now, is_new=_is_newer(now, last)),
            incarnation=incarnation,
            facts={name: value for name, value in facts.items() if name not in _NAMED_FACTS | _INTERNAL_FACTS},
        )


def _named(facts: dict[str, Any], images: Mapping[str, str]) -> dict[str, Any]:
    image = facts.get("image")
    return {**facts, "image": images[image]} if isinstance(image, str) and image in images else facts


def _is_newer(now: _EventData, last: _EventData) -> bool:
    """Return whether an event of a controller is the first of its generation."""
    return bool(now.reconcile_id) and (now.uid, now.generation) != (last.uid, last.generation)


def _cause(data: _EventData, *, is_new: bool) -> CauseRead:
    if data.actor or data.operation:
        return CauseRead(
            type="request",
            actor=data.actor,
            actor_name=data.actor_name,
            trace_id=data.trace_id,
            operation_id=data.operation,
            generation=data.generation,
        )
    if data.event in _OBSERVATIONS or data.type in _OBSERVED_CONDITIONS:
        return CauseRead(type="observation", generation=data.generation, reconcile_id=data.reconcile_id)
    return CauseRead(
        type="generation" if is_new else "reconcile", generation=data.generation, reconcile_id=data.reconcile_id
    )
