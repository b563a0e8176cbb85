"""An operation as clients read it: who had what done, how far it is, and why it failed.

The record says at which step it failed and how it ended, and the saga which steps there are: what is in between follows
from that, since steps run in order and are taken back in the other one.
"""

from collections.abc import Iterator

import msgspec

from remuda.compute.history.schema import FailureRead, OperationRead, StepRead, StepState
from remuda.compute.instances.sagas import CREATE_INSTANCE
from remuda.kernel.errors import AlreadyExists
from remuda.operations.kinds import Failure, Operation
from remuda.operations.saga import Sagas

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
        next_try=status.next_try,
        abandoned_by=status.abandoned_by,
        abandoned_because=status.abandoned_because,
    )


def is_refusal(operation: Operation) -> bool:
    """Tell whether an operation only asked for a name that was taken: it is nothing to the instance that has it."""
    spec, status = operation.spec, operation.status
    return status.phase == "undone" and status.error is not None and (spec.saga, status.error.code) == TAKEN


def _failure(failure: Failure | None) -> FailureRead | None:
    return None if failure is None else FailureRead(code=failure.code, sentence=failure.sentence)


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
