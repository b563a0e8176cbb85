"""What clients read of the past of an instance, and of why it is as it is."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from remuda.http.schema import Wire
from remuda.operations.kinds import Phase

CauseType = Literal["request", "generation", "reconcile", "observation"]
"""What an event goes back to: somebody's request, a new wish that a controller has taken up, its work on that, or how
things were found to be."""

StepState = Literal["done", "undone", "failed", "unknown", "not begun"]
"""How a step of an operation ended; `unknown` while it is under way, since only how the whole ends is written down."""

Who = Literal["itself", "user", "operator"]
"""Who can unblock something: nobody needs to, whoever may change the instance, or whoever runs the platform."""


class CauseRead(Wire, frozen=True):
    """What caused an event."""

    type: CauseType
    actor: Annotated[str, msgspec.Meta(description="Who asked for it.")] = ""
    trace_id: Annotated[str, msgspec.Meta(description="Names the request in logs, traces and the audit.")] = (
        msgspec.field(default="", name="traceID")
    )
    operation_id: Annotated[str, msgspec.Meta(description="The operation that it was part of.")] = msgspec.field(
        default="", name="operationID"
    )
    generation: Annotated[int, msgspec.Meta(description="Which of the wishes for the instance was worked on.")] = 0
    reconcile_id: Annotated[str, msgspec.Meta(description="Names the controller's pass in logs.")] = msgspec.field(
        default="", name="reconcileID"
    )


class EventRead(Wire, frozen=True, kw_only=True):
    """Something that happened to an instance."""

    time: datetime
    event: Annotated[str, msgspec.Meta(description="What happened, in one word for programs.")]
    reason: Annotated[str, msgspec.Meta(description="Why, in one word for programs, where there is one.")] = ""
    sentence: Annotated[str, msgspec.Meta(description="What happened, for people.")]
    cause: CauseRead
    incarnation: Annotated[
        str,
        msgspec.Meta(
            description="Which of the instances that have had this id, by its uid. What happened before one was there "
            "counts to the next one; absent if none followed."
        ),
    ] = ""
    facts: Annotated[dict[str, Any], msgspec.Meta(description="Everything else that is known of it.")] = msgspec.field(
        default_factory=dict
    )


class FailureRead(Wire, frozen=True):
    """Why something failed."""

    code: str
    sentence: str


class StepRead(Wire, frozen=True):
    """A step of an operation."""

    name: str
    state: StepState


class OperationRead(Wire, frozen=True, kw_only=True):
    """Something that was done to an instance all or not at all."""

    id: str
    saga: Annotated[str, msgspec.Meta(description="What was done, such as the creation of an instance.")]
    phase: Phase
    actor: Annotated[str, msgspec.Meta(description="For whom it was done.")]
    trace_id: Annotated[str, msgspec.Meta(description="Names the request in logs and traces.")] = msgspec.field(
        default="", name="traceID"
    )
    incarnation: Annotated[
        str,
        msgspec.Meta(
            description="Which of the instances that have had this id it made or changed, by its uid; absent while "
            "that is not known, and where it came to none."
        ),
    ] = ""
    started: datetime
    closed: datetime | None = None
    steps: Annotated[
        tuple[StepRead, ...], msgspec.Meta(description="In their order; absent if this release does not know them.")
    ] = ()
    error: Annotated[FailureRead, msgspec.Meta(description="Why it was taken back.")] | None = None
    undo_attempts: Annotated[int, msgspec.Meta(description="How often taking it back has failed.")] = 0
    undo_error: Annotated[FailureRead, msgspec.Meta(description="Why that failed the last time.")] | None = None
    next_try: Annotated[datetime, msgspec.Meta(description="When that is tried again.")] | None = None
    abandoned_by: Annotated[str, msgspec.Meta(description="The operator who gave it up.")] = ""
    abandoned_because: str = ""


class WaitRead(Wire, frozen=True, kw_only=True):
    """Something that an instance waits for."""

    reason: Annotated[str, msgspec.Meta(description="What keeps it, in one word for programs.")]
    sentence: Annotated[str, msgspec.Meta(description="What it waits for, for people.")]
    since: datetime | None = None
    next_try: Annotated[datetime, msgspec.Meta(description="When it is tried again, where that is known.")] | None = (
        None
    )
    retry_within: Annotated[
        int,
        msgspec.Meta(description="Seconds between two tries at most; sooner when what it waits for is there."),
    ] = msgspec.field(default=0, name="retryWithinSeconds")
    who: Annotated[
        Who,
        msgspec.Meta(
            description="Who can unblock it: nobody needs to (`itself`), whoever may change the instance (`user`), or "
            "the operator of the platform."
        ),
    ]
    remedy: Annotated[str, msgspec.Meta(description="What that one can do.")]


class ExplanationRead(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Why an instance is as it is."""

    state: Annotated[str, msgspec.Meta(description="How it stands, in one word for programs.")]
    sentences: Annotated[tuple[str, ...], msgspec.Meta(description="All of it, for people, in the order to read it.")]
    waits: Annotated[tuple[WaitRead, ...], msgspec.Meta(description="What it waits for, what matters most first.")] = ()
    asked_at: Annotated[datetime, msgspec.Meta(description="When this was so.")]
    incarnation: Annotated[str, msgspec.Meta(description="Of which of the instances that have had this id.")] = ""
