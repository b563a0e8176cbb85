"""The Operation: the record of one run of a saga.

It is written before the first effect, again if the run turns to undoing, and when it closes::

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

`running` is the status of a record that was just created. An open operation (running, undoing, stuck) whose process is
gone is undone by recovery. A closed one never opens again: a second attempt is a second record (see `attempt_id`).
Nothing in a record is there to be read that is secret: an input that holds one is sealed, and of an error only code and
sentence are kept.
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
"""Where an operation stands."""

OPEN_PHASES: tuple[Phase, ...] = ("running", "undoing", "stuck")
"""Somebody still has to do something."""

CLOSED_PHASES: tuple[Phase, ...] = ("done", "undone", "abandoned")
"""Nobody touches it any more."""

OPEN = ("state", "open")
"""The index and value under which open operations are found."""

CLOSED = ("state", "closed")
"""The index and value under which closed operations are found."""

Obstacle = Literal["unreadable", "unreadable_input", "unknown_saga"]
"""Why a process cannot undo an operation: it cannot read the record, or its input, or does not know the saga."""

OBSTACLES: tuple[Obstacle, ...] = get_args(Obstacle)
"""All obstacles."""

_ATTEMPTS = "f3b1c5de-0d5c-4f0e-9a55-6f1d6f0a7c11"  # a namespace of our own for ids of later attempts


class Failure(StoredStruct, frozen=True):
    """Why something failed, fit for everybody's eyes."""

    code: str
    sentence: str


class OperationSpec(StoredStruct, frozen=True):
    """What was asked, by whom, and who works on it until when."""

    saga: str
    subject_kind: str
    """The qualified plural of what it is about."""
    subject: str
    """The name of what it is about."""
    actor: str
    input: str
    """The saga's input, as JSON; empty where it holds a secret."""
    deadline: datetime
    """The process that runs it stops by then."""
    process: str
    """Who runs it: an `Operations` of one boot of a process."""
    request: str = ""
    """The id the caller gave; that of the record too, unless an earlier attempt was undone."""
    trace_id: str = ""
    sealed_input: Secret | None = None
    """The saga's input where it holds a secret."""


class OperationStatus(StoredStruct, frozen=True):
    """What became of it."""

    phase: Phase = "running"
    incarnation: str = ""
    """The uid of the subject that it made or changed, as far as its steps came to one."""
    failed_step: str = ""
    error: Failure | None = None
    """Why it is undone."""
    undo_attempts: int = 0
    """How often undoing failed."""
    undo_error: Failure | None = None
    """Why undoing failed the last time."""
    next_try: datetime | None = None
    """When undoing is tried again."""
    turned: datetime | None = None
    """When it turned to undoing."""
    closed: datetime | None = None
    abandoned_by: str = ""
    abandoned_because: str = ""


class Operation(Resource, frozen=True):
    """One run of a saga. Its name is what the steps name their results after."""

    spec: OperationSpec
    status: OperationStatus = OperationStatus()

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        return self.status.phase

    @property
    def is_open(self) -> bool:
        """Somebody still has to do something."""
        return self.status.phase in OPEN_PHASES

    def moved(self, phase: Phase, **changes: object) -> "Operation":
        """Return it in another phase."""
        return msgspec.structs.replace(self, status=msgspec.structs.replace(self.status, phase=phase, **changes))


OPERATION = Kind(
    type=Operation,
    group="core.remuda",
    version="v1alpha1",
    plural="operations",
    indexes=(
        Index(name="state", values=lambda operation: ("open" if operation.is_open else "closed",)),
        Index(
            name="subject",
            values=lambda operation: (subject_of(operation.spec.subject_kind, operation.spec.subject),),
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

    The first is the caller's own id. A later attempt gets a name of its own, and with it all that its steps make: a
    trace that an undone attempt left, such as a released row that keeps its name, cannot be taken for the new one's.
    """
    return request if attempt == 1 else derived_id(_ATTEMPTS, f"{request}/{attempt}")


def failure_of(error: BaseException) -> Failure:
    """Return what may be told of an error: of one that is not ours only its type, since its text may hold anything."""
    if isinstance(error, RemudaError):
        return Failure(code=error.code, sentence=error.sentence)
    return Failure(code="internal", sentence=f"It failed unexpectedly ({type(error).__name__}): see the log.")
