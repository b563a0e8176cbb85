"""What an entry of a timeline reads as: sentence, cause and incarnation."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from remuda.compute.history.schema import EventRead
from remuda.compute.history.timeline import event_message, read_entries, read_operation
from remuda.operations.kinds import Failure, Operation, OperationSpec, OperationStatus, Phase
from remuda.operations.saga import Saga, Sagas, Step, Work
from remuda.store.logs import Entry
from remuda.store.objects import Metadata

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
ROBOT = "d0000000-0000-4000-8000-000000000001"


def entry(position: int, **said: Any) -> Entry:
    return Entry(position=position, time=NOW, data=msgspec.Raw(msgspec.json.encode(said)))


def controller(position: int, event: str, uid: str = "a", generation: int = 1, **facts: Any) -> Entry:
    told = {"controller": "instances", "reconcileId": "r1", "cause": "event", "uid": uid, "generation": generation}
    return entry(position, event=event, **told, **facts)


def operation(position: int, event: str, name: str = "op-1") -> Entry:
    told = {"saga": "instance.create", "phase": "done", "actor": "ann@acme.com", "traceId": "t1"}
    return entry(position, event=event, operation=name, **told)


def read(*in_order: Entry, newer: str = "") -> list[EventRead]:
    """Read entries that are given in the order they were written; the latest comes first."""
    return list(read_entries(in_order[::-1], newer=newer, older=None))


def test_an_operation_goes_back_to_a_request_and_says_whose() -> None:
    (event,) = read(operation(1, "OperationStarted"), newer="a")
    assert event.message == "The instance was requested by ann@acme.com."
    cause = event.cause
    assert (cause.type, cause.actor, cause.trace_id, cause.operation_id) == ("request", "ann@acme.com", "t1", "op-1")
    assert event.facts == {"saga": "instance.create", "phase": "done"}


def test_a_controller_goes_back_to_a_request_then_to_its_own_work() -> None:
    events = read(
        operation(1, "OperationDone"),
        controller(2, "ConditionChanged", type="Available", status="False", reason="Building", message="being made"),
        controller(3, "ServerCreated"),
        controller(4, "ConditionChanged", generation=2, type="Available", status="False", reason="X", message="again"),
    )
    assert [each.cause.type for each in events] == ["generation", "reconcile", "generation", "request"]
    assert [each.cause.generation for each in events] == [2, 1, 1, 0]
    assert events[2].reason == "Building"
    assert events[2].message == "The instance is not provisioned: being made."


def test_what_was_only_seen_is_an_observation() -> None:
    healthy: dict[str, Any] = {"type": "Healthy", "status": "False", "reason": "Errored", "message": "it crashed"}
    (event, _) = read(controller(1, "ServerCreated"), controller(2, "ConditionChanged", **healthy))
    assert (event.cause.type, event.cause.reconcile_id) == ("observation", "r1")
    assert event.message == "The instance is not healthy: it crashed."


def test_what_has_no_uid_counts_to_the_incarnation_that_came_next() -> None:
    events = read(
        operation(1, "OperationStarted", "op-1"),
        controller(2, "ConditionChanged", uid="a"),
        controller(3, "FinalizerRemoved", uid="a", labels={}),
        operation(4, "OperationStarted", "op-2"),
        controller(5, "ConditionChanged", uid="b"),
        operation(6, "OperationDone", "op-3"),
        newer="b",
    )
    assert [each.incarnation for each in events] == ["b", "b", "b", "a", "a", "a"]


def test_after_the_last_incarnation_what_makes_no_other_counts_to_none() -> None:
    (attempt, gone) = read(controller(1, "FinalizerRemoved", uid="a"), operation(2, "OperationUndone"))
    assert (attempt.incarnation, gone.incarnation) == ("", "a")


@pytest.mark.parametrize(
    ("event", "facts", "sentence"),
    [
        ("DeletionRequested", {"actor": "ann"}, "Deletion was requested by ann."),
        ("Rebooted", {"actor": "ann", "hard": True}, "The instance was rebooted (hard) by ann."),
        ("Rebooted", {"actor": "ann"}, "The instance was rebooted by ann."),
        ("Stopped", {}, "The instance was stopped by an unknown caller."),
        ("Stopped", {"actor": ROBOT}, f"The instance was stopped by the service account {ROBOT}."),
        (
            "Stopped",
            {"actor": ROBOT, "actorName": "scripts"},
            "The instance was stopped by the service account scripts.",
        ),
        ("FinalizerRemoved", {"labels": {}}, "The instance was deleted."),
        (
            "OperationUndoing",
            {"saga": "s", "actor": "ann", "failedStep": "allocate", "error": {"code": "x", "message": "No capacity."}},
            "Operation s requested by ann failed at step allocate and is being rolled back: No capacity.",
        ),
        ("ServerSeenTwice", {"count": 2, "uid": "a"}, "Server seen twice: count 2, uid a."),
        ("NobodyKnows", {}, "Nobody knows."),
        ("", {}, "Unknown event."),
        ("ConditionChanged", {"type": "Stalled", "status": "False"}, "The instance makes progress again."),
        ("ConditionChanged", {"type": "Odd", "status": "True", "message": "m"}, "Odd is True: m."),
        ("ConditionChanged", {"type": "Odd", "status": "True"}, "Odd is True."),
        (
            "ConditionChanged",
            {"type": "Healthy", "status": "Unknown", "message": ""},
            "The health of the instance is unknown.",
        ),
        ("AddressesChanged", {"changes": 3}, "The addresses of the instance changed."),
    ],
)
def test_every_event_is_a_sentence(event: str, facts: dict[str, Any], sentence: str) -> None:
    assert event_message(event, facts) == sentence


async def _nothing(_ports: object, _work: Work[Any]) -> None: ...


class Input(msgspec.Struct, frozen=True):
    """Nothing."""


STEPS = tuple(Step(name=name, do=_nothing, undo=_nothing) for name in ("allocate", "create", "tell"))
SAGAS = Sagas([Saga(name="instance.create", input_type=Input, subject=lambda _: ("k", "n"), steps=STEPS)])


@pytest.mark.parametrize(
    ("phase", "failed", "states"),
    [
        ("running", "", ["unknown", "unknown", "unknown"]),
        ("done", "", ["done", "done", "done"]),
        ("undoing", "create", ["unknown", "failed", "not started"]),
        ("stuck", "create", ["unknown", "failed", "not started"]),
        ("undone", "create", ["undone", "failed", "not started"]),
        ("undone", "", ["undone", "undone", "undone"]),
    ],
)
def test_the_steps_of_an_operation_follow_from_how_it_ended(phase: Phase, failed: str, states: list[str]) -> None:
    spec = OperationSpec(
        saga="instance.create", subject_kind="k", subject="n", actor="ann", input="{}", deadline=NOW, process="p"
    )
    error = Failure(code="forbidden", message="No capacity.") if failed else None
    status = OperationStatus(phase=phase, failed_step=failed, error=error)
    found = Operation(metadata=Metadata(name="op", creation_timestamp=NOW), spec=spec, status=status)
    told = read_operation(found, SAGAS)
    assert [(step.name, step.state) for step in told.steps] == list(
        zip(("allocate", "create", "tell"), states, strict=True)
    )
    assert (told.actor, told.started) == ("ann", NOW)
    assert (told.error is None) == (error is None)
    assert read_operation(found, Sagas([])).steps == ()
