"""Operation: the stored record of one run of a saga.

It is written before the first effect, again when its phase becomes `undoing`, and when it is closed::

   running ──► done
      │
      ▼
   undoing ──► undone
      │          ▲
      ▼          │
    stuck ───────┘
      │
      ▼
  abandoned

`running` is the phase of a new record. An open operation (running, undoing, stuck) whose process is gone is undone by
recovery. A closed one never opens again: a second attempt is a second record (see `attempt_id`). No field that can be
read contains a secret: an input with a secret is sealed, and of an error only the code and the message are stored.
"""

from datetime import datetime
from typing import Literal, get_args

import msgspec

from remuda.kernel.errors import RemudaError
from remuda.kernel.ids import derived_id
from remuda.kernel.secrets import Secret
from remuda.store.kinds import Index, Kind
from remuda.store.logs import subject_of
from remuda.store.objects import Resource, StoredStruct

Phase = Literal["running", "undoing", "done", "undone", "stuck", "abandoned"]
"""The phase of an operation."""

OPEN_PHASES: tuple[Phase, ...] = ("running", "undoing", "stuck")
"""The phases in which work remains."""

CLOSED_PHASES: tuple[Phase, ...] = ("done", "undone", "abandoned")
"""The final phases."""

OPEN = ("state", "open")
"""The index and value of open operations."""

CLOSED = ("state", "closed")
"""The index and value of closed operations."""

Obstacle = Literal["unreadable", "unreadable_input", "unknown_saga"]
"""The reason why a process cannot undo an operation: an unreadable record or input, or an unknown saga."""

OBSTACLES: tuple[Obstacle, ...] = get_args(Obstacle)
"""All obstacles."""

_ATTEMPTS = "f3b1c5de-0d5c-4f0e-9a55-6f1d6f0a7c11"  # our own namespace, for the ids of later attempts


class Failure(StoredStruct, frozen=True):
    """The cause of a failure, readable for all users."""

    code: str
    message: str


class OperationSpec(StoredStruct, frozen=True):
    """The request, its actor, and the process that runs it until a deadline."""

    saga: str
    subject_kind: str
    """The qualified plural of the object it is about."""
    subject: str
    actor: str
    input: str
    """The saga's input, as JSON; empty if it contains a secret."""
    deadline: datetime
    """The process that runs it stops by then."""
    process: str
    """The `Operations` instance that runs it, of one start of a process."""
    actor_name: str = ""
    """The display name of an actor that is a service account, at the time of the request."""
    request: str = ""
    """The id that the caller gave; also that of the record, unless an earlier attempt was undone."""
    trace_id: str = ""
    sealed_input: Secret | None = None
    """The saga's input if it contains a secret."""


class OperationStatus(StoredStruct, frozen=True):
    """The progress and outcome."""

    phase: Phase = "running"
    attempts: int = 1
    """The number of the latest attempt, in the record of the first one."""
    incarnation: str = ""
    """The uid of the object that it created or changed, once that is known."""
    failed_step: str = ""
    error: Failure | None = None
    """The reason why it is undone."""
    undo_attempts: int = 0
    undo_error: Failure | None = None
    """The error of the last one."""
    next_attempt: datetime | None = None
    undo_started: datetime | None = None
    """The time when it turned to undoing."""
    closed: datetime | None = None
    abandoned_by: str = ""
    abandoned_because: str = ""


class Operation(Resource, frozen=True):
    """One run of a saga. Steps name the objects they create after its name."""

    spec: OperationSpec
    status: OperationStatus = OperationStatus()

    @property
    def phase(self) -> Phase:
        """The phase."""
        return self.status.phase

    @property
    def is_open(self) -> bool:
        """Whether work remains."""
        return self.status.phase in OPEN_PHASES

    def moved(self, phase: Phase, **changes: object) -> "Operation":
        """Return the operation in another phase."""
        return msgspec.structs.replace(self, status=msgspec.structs.replace(self.status, phase=phase, **changes))


OPERATION = Kind(
    type=Operation,
    group="core.remuda",
    version="v1alpha1",
    plural="operations",
    uncounted="removed after its retention",
    indexes=(
        Index(name="state", values=lambda operation: ("open" if operation.is_open else "closed",)),
        Index(
            name="subject", values=lambda operation: (subject_of(operation.spec.subject_kind, operation.spec.subject),)
        ),
    ),
    columns={
        "Saga": ".spec.saga",
        "Subject": ".spec.subject",
        "Phase": ".status.phase",
        "Failed step": ".status.failedStep",
    },
)
"""The stored kind: open ones are found by `OPEN`, those of an object by `("subject", subject_of(kind, name))`."""


def attempt_id(request: str, attempt: int) -> str:
    """Return the name of the record of an attempt, counted from 1.

    The first is the caller's own id. A later attempt has another name, and so has everything that its steps create:
    what an undone attempt left, such as a released allocation that keeps its name, cannot be mistaken for the new
    one's.
    """
    return request if attempt == 1 else derived_id(_ATTEMPTS, f"{request}/{attempt}")


def failure_of(error: BaseException) -> Failure:
    """Return the readable part of an error: of one that is not ours only its type, since its text may be secret."""
    if isinstance(error, RemudaError):
        return Failure(code=error.code, message=error.message)
    return Failure(code="internal", message=f"The operation failed unexpectedly ({type(error).__name__}): see the log.")
