"""Reporters: who hears what becomes of operations.

A reporter is asked for `records` before each write that brings an Operation into a phase, and they are kept in that
very write; the other methods tell what has happened already. None of them may wait or fail.
"""

from collections.abc import Mapping, Sequence

import msgspec

from remuda.operations.kinds import Failure, Obstacle, Operation, Phase
from remuda.operations.registry import Sagas
from remuda.store.logs import Record, subject_of

Obstructed = Mapping[str, Obstacle]
"""The open operations that recovery cannot undo, by name, and what keeps it from that."""

OpenCounts = Mapping[tuple[str, Phase], int]
"""How many operations are open, by saga and phase."""


class Reporter:
    """Hears of operations, and by itself says nothing: override what you care for."""

    def records(self, operation: Operation) -> Sequence[Record]:  # noqa: ARG002  for those who keep some
        """Return what to keep in the write that brings the operation into its present phase."""
        return ()

    def started(self, operation: Operation) -> None:
        """The record is there, and the first step is next."""

    def step_done(self, operation: Operation, step: str) -> None:
        """A step has done its effect."""

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """A step failed, and undoing is next; `step` is empty if it was none of them."""

    def undone(self, operation: Operation, step: str) -> None:
        """A step's effect is taken back."""

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """A step's effect could not be taken back this time; `step` is empty if it was none of them."""

    def closed(self, operation: Operation) -> None:
        """It is done, undone or abandoned."""

    def stuck(self, operation: Operation) -> None:
        """Undoing failed so often that somebody should look."""

    def open(self, counts: OpenCounts) -> None:
        """Recovery has looked, and so many are open."""

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:
        """Recovery of these sagas has looked, and these cannot be undone by it."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the timeline of a subject says of an operation."""

    event: str
    """`OperationStarted`, `OperationUndoing`, `OperationDone`, `OperationUndone`, `OperationStuck` or
    `OperationAbandoned`."""
    operation: str
    saga: str
    phase: Phase
    actor: str
    uid: str = ""
    """Of the subject, once that is known."""
    trace_id: str = ""
    failed_step: str = ""
    error: Failure | None = None


class Timeline(Reporter):
    """Keeps every phase of an operation in the timeline of its subject, in the Operation's own writes."""

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()

    def records(self, operation: Operation) -> Sequence[Record]:
        """Return the entry for the operation's phase."""
        spec, status = operation.spec, operation.status
        entry = TimelineEntry(
            event=_event(status.phase),
            operation=operation.name,
            saga=spec.saga,
            phase=status.phase,
            actor=spec.actor,
            uid=status.incarnation,
            trace_id=spec.trace_id,
            failed_step=status.failed_step,
            error=status.error,
        )
        data = msgspec.Raw(self._encoder.encode(entry))
        return (Record(stream="timeline", subject=subject_of(spec.subject_kind, spec.subject), data=data),)


def _event(phase: Phase) -> str:
    return "OperationStarted" if phase == "running" else f"Operation{phase.capitalize()}"


class Reporters(Reporter):
    """Several reporters as one."""

    def __init__(self, *reporters: Reporter) -> None:
        self._all = reporters

    def records(self, operation: Operation) -> Sequence[Record]:
        """Return what any of them wants kept."""
        return [record for each in self._all for record in each.records(operation)]

    def started(self, operation: Operation) -> None:
        """Tell all."""
        for each in self._all:
            each.started(operation)

    def step_done(self, operation: Operation, step: str) -> None:
        """Tell all."""
        for each in self._all:
            each.step_done(operation, step)

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Tell all."""
        for each in self._all:
            each.step_failed(operation, step, failure)

    def undone(self, operation: Operation, step: str) -> None:
        """Tell all."""
        for each in self._all:
            each.undone(operation, step)

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Tell all."""
        for each in self._all:
            each.undo_failed(operation, step, failure)

    def closed(self, operation: Operation) -> None:
        """Tell all."""
        for each in self._all:
            each.closed(operation)

    def stuck(self, operation: Operation) -> None:
        """Tell all."""
        for each in self._all:
            each.stuck(operation)

    def open(self, counts: OpenCounts) -> None:
        """Tell all."""
        for each in self._all:
            each.open(counts)

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:
        """Tell all."""
        for each in self._all:
            each.obstructed(found, sagas)
