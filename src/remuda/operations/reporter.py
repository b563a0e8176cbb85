"""Reporters: who hears what becomes of operations.

A reporter is asked for `records` before each write that brings an Operation into a phase, and they are kept in that
very write; the other methods tell what has happened already. None of them may wait or fail.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from remuda.operations.kinds import Failure, Operation, Phase, subject_key
from remuda.store.logs import Record

__all__ = ["OpenCounts", "Reporter", "Reporters", "Silent", "Timeline", "TimelineEntry"]

OpenCounts = Mapping[tuple[str, Phase], int]
"""How many operations are open, by saga and phase."""


class Reporter(Protocol):
    """Hears of operations."""

    def records(self, operation: Operation) -> Sequence[Record]:
        """Return what to keep in the write that brings the operation into its present phase."""
        ...

    def started(self, operation: Operation) -> None:
        """The record is there, and the first step is next."""
        ...

    def step_done(self, operation: Operation, step: str) -> None:
        """A step has done its effect."""
        ...

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """A step failed, and undoing is next; `step` is empty if it was none of them."""
        ...

    def undone(self, operation: Operation, step: str) -> None:
        """A step's effect is taken back."""
        ...

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """A step's effect could not be taken back this time; `step` is empty if it was none of them."""
        ...

    def closed(self, operation: Operation) -> None:
        """It is done, undone or abandoned."""
        ...

    def stuck(self, operation: Operation) -> None:
        """Undoing failed so often that somebody should look."""
        ...

    def open(self, counts: OpenCounts) -> None:
        """Recovery has looked, and so many are open."""
        ...


class Silent:
    """Tells nobody. The base of reporters that care for a part only."""

    def records(self, operation: Operation) -> Sequence[Record]:  # noqa: ARG002
        """Keep nothing."""
        return ()

    def started(self, operation: Operation) -> None:
        """Say nothing."""

    def step_done(self, operation: Operation, step: str) -> None:
        """Say nothing."""

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Say nothing."""

    def undone(self, operation: Operation, step: str) -> None:
        """Say nothing."""

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Say nothing."""

    def closed(self, operation: Operation) -> None:
        """Say nothing."""

    def stuck(self, operation: Operation) -> None:
        """Say nothing."""

    def open(self, counts: OpenCounts) -> None:
        """Say nothing."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the timeline of a subject says of an operation."""

    operation: str
    saga: str
    phase: Phase
    actor: str
    trace_id: str = ""
    failed_step: str = ""
    error: Failure | None = None


class Timeline(Silent):
    """Keeps every phase of an operation in the timeline of its subject, in the Operation's own writes."""

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()

    def records(self, operation: Operation) -> Sequence[Record]:
        """Return the entry for the operation's phase."""
        spec, status = operation.spec, operation.status
        entry = TimelineEntry(
            operation=operation.name,
            saga=spec.saga,
            phase=status.phase,
            actor=spec.actor,
            trace_id=spec.trace_id,
            failed_step=status.failed_step,
            error=status.error,
        )
        data = msgspec.Raw(self._encoder.encode(entry))
        return (Record(stream="timeline", subject=subject_key(spec.subject_kind, spec.subject), data=data),)


class Reporters:
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
