"""Schema of the history of an instance: events, operations and the explanation of its state."""

from typing import Annotated, Any, Literal

import msgspec

from remuda.http.schema import Moment, Wire
from remuda.operations.kinds import Phase

CauseType = Literal["request", "generation", "reconcile", "observation"]
"""A request, the first reaction of a controller to a new generation, its further work, or an observed change."""

StepState = Literal["done", "undone", "failed", "unknown", "not started"]
"""Result of a step of an operation; `unknown` while it runs, because only the result of the operation is stored."""

Resolver = Literal["controller", "user", "operator"]
"""Actor that can resolve a wait: the controller, a user who may update the instance, or the operator."""


class CauseRead(Wire, frozen=True):
    """The cause of an event."""

    type: Annotated[
        CauseType,
        msgspec.Meta(
            description="A request, the first reaction of a controller to a new generation of the spec "
            "(generation), its further work (reconcile), or an observed change (observation)."
        ),
    ]
    actor: Annotated[str, msgspec.Meta(description="The user or service that requested it.")] = ""
    actor_name: Annotated[
        str, msgspec.Meta(description="Name of the actor at that time, if it is a service account.")
    ] = ""
    trace_id: Annotated[str, msgspec.Meta(description="Id of the request in logs, traces and audit records.")] = (
        msgspec.field(default="", name="traceID")
    )
    operation_id: Annotated[str, msgspec.Meta(description="The operation that it was part of.")] = msgspec.field(
        default="", name="operationID"
    )
    generation: Annotated[int, msgspec.Meta(description="The generation of the spec that was processed.")] = 0
    reconcile_id: Annotated[str, msgspec.Meta(description="Id of the controller's reconcile in logs.")] = msgspec.field(
        default="", name="reconcileID"
    )


class EventRead(Wire, frozen=True, kw_only=True):
    """An event of an instance."""

    time: Annotated[Moment, msgspec.Meta(description="Time of the event.")]
    event: Annotated[str, msgspec.Meta(description="Name of the event, for programs.")]
    reason: Annotated[str, msgspec.Meta(description="Reason of the event, for programs, if it has one.")] = ""
    message: Annotated[str, msgspec.Meta(description="Description of the event, for users.")]
    cause: CauseRead
    incarnation: Annotated[
        str,
        msgspec.Meta(
            description="Uid of the instance, since several instances may have had this id. An event before the "
            "instance existed belongs to the next one; absent if none followed."
        ),
    ] = ""
    facts: Annotated[dict[str, Any], msgspec.Meta(description="Further facts of the event.")] = msgspec.field(
        default_factory=dict
    )


class FailureRead(Wire, frozen=True):
    """The error of an operation."""

    code: Annotated[str, msgspec.Meta(description="The error, for programs; it never changes.")]
    message: Annotated[str, msgspec.Meta(description="The error, for users.")]


class OperationStepRead(Wire, frozen=True):
    """A step of an operation."""

    name: Annotated[str, msgspec.Meta(description="Name of the step.")]
    state: Annotated[
        StepState,
        msgspec.Meta(
            description="Result of the step; unknown while the operation runs, since only its result is stored."
        ),
    ]


class OperationRead(Wire, frozen=True, kw_only=True):
    """An operation on an instance, which is executed as a whole or not at all."""

    id: Annotated[str, msgspec.Meta(description="Id of the operation.")]
    saga: Annotated[str, msgspec.Meta(description="Type of the operation, such as `instance.create`.")]
    phase: Annotated[
        Phase,
        msgspec.Meta(
            description="Whether the operation runs, is done, is being rolled back (undoing, or stuck while that "
            "fails), has been (undone), or was abandoned by an operator."
        ),
    ]
    actor: Annotated[str, msgspec.Meta(description="The user or service that requested it.")]
    actor_name: Annotated[
        str, msgspec.Meta(description="Name of the actor at that time, if it is a service account.")
    ] = ""
    trace_id: Annotated[str, msgspec.Meta(description="Id of the request in logs and traces.")] = msgspec.field(
        default="", name="traceID"
    )
    incarnation: Annotated[
        str,
        msgspec.Meta(
            description="Uid of the instance that it created or updated; absent while that is not known, and if it "
            "created none."
        ),
    ] = ""
    started: Annotated[Moment, msgspec.Meta(description="Time of its start.")]
    closed: Annotated[Moment | None, msgspec.Meta(description="Time of its end; absent while it runs.")] = None
    steps: Annotated[
        tuple[OperationStepRead, ...],
        msgspec.Meta(description="In their order; absent if this release does not know the operation."),
    ] = ()
    error: Annotated[FailureRead, msgspec.Meta(description="Why it was rolled back.")] | None = None
    undo_attempts: Annotated[int, msgspec.Meta(description="Number of failed attempts to roll it back.")] = 0
    undo_error: Annotated[FailureRead, msgspec.Meta(description="Error of the last of these attempts.")] | None = None
    next_attempt: Annotated[Moment, msgspec.Meta(description="Time of the next attempt.")] | None = None
    abandoned_by: Annotated[str, msgspec.Meta(description="The operator who abandoned it.")] = ""
    abandoned_because: Annotated[str, msgspec.Meta(description="The operator's reason.")] = ""


class WaitRead(Wire, frozen=True, kw_only=True):
    """Something that an instance waits for."""

    reason: Annotated[str, msgspec.Meta(description="Reason, for programs.")]
    message: Annotated[str, msgspec.Meta(description="What the instance waits for, for users.")]
    since: Annotated[
        Moment | None, msgspec.Meta(description="Time since which the instance waits for it, if known.")
    ] = None
    next_attempt: Annotated[Moment, msgspec.Meta(description="Time of the next attempt, if known.")] | None = None
    retry_interval: Annotated[
        int, msgspec.Meta(description="Longest time in seconds between two attempts; 0 if it is not known.")
    ] = msgspec.field(default=0, name="retryIntervalSeconds")
    resolved_by: Annotated[
        Resolver,
        msgspec.Meta(
            description="Who can resolve it: the controller (no action is needed), a user who may update the instance, "
            "or the operator of the platform."
        ),
    ]
    remedy: Annotated[str, msgspec.Meta(description="What they can do.")]


class ExplanationRead(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The explanation of the state of an instance."""

    state: Annotated[str, msgspec.Meta(description="The state, for programs.")]
    messages: Annotated[tuple[str, ...], msgspec.Meta(description="The explanation, for users.")]
    waiting_for: Annotated[
        tuple[WaitRead, ...], msgspec.Meta(description="What the instance waits for, the most important first.")
    ] = ()
    observed_at: Annotated[Moment, msgspec.Meta(description="Time of the explanation.")]
    incarnation: Annotated[str, msgspec.Meta(description="Uid of the instance.")] = ""
