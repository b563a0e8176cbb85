"""Reporters: who hears what becomes of operations.

A reporter is asked for `records` before each write that brings an Operation into a phase, and they are kept in that
very write; the other methods tell what has happened already. None of them may wait or fail.

Operations as Prometheus metrics. Every label value of every registered saga is there from the start, at zero.

The services of a process that have one store share them. Each has a recovery of its own, and all of these see the same
operations: what one cannot undo because it does not know the saga is nobody's only if no other knows it either.
"""

from collections import Counter as Numbers
from collections.abc import Mapping, Sequence

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge

from remuda.operations.kinds import CLOSED_PHASES, OBSTACLES, OPEN_PHASES, Failure, Obstacle, Operation, Phase
from remuda.operations.saga import AnySaga, Sagas
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


_NO_STEP = "journal"


class Metrics(Reporter):
    """Counts what operations come to, where they fail, and how many are open."""

    def __init__(self, sagas: Sagas, registry: CollectorRegistry) -> None:
        self._closed = Counter(
            "remuda_operations_closed", "Operations that ended, by outcome.", ["saga", "phase"], registry=registry
        )
        self._open = Gauge(
            "remuda_operations_open", "Operations that are open, by phase.", ["saga", "phase"], registry=registry
        )
        self._stuck = Counter(
            "remuda_operations_stuck", "Times an operation got stuck in undoing.", ["saga"], registry=registry
        )
        self._failed = Counter(
            "remuda_operation_step_failures", "Steps that failed.", ["saga", "step"], registry=registry
        )
        self._undo_failed = Counter(
            "remuda_operation_undo_failures", "Undos that failed.", ["saga", "step"], registry=registry
        )
        self._obstructed = Gauge(
            "remuda_operations_obstructed",
            "Open operations that this process cannot undo.",
            ["obstacle"],
            registry=registry,
        )
        self._shown: set[str] = set()
        self._found: dict[Sagas, Obstructed] = {}
        """What each recovery found last, by the sagas that it knows."""
        self.show(sagas)
        self._show_obstructed()

    def show(self, sagas: Sagas) -> None:
        """Show these sagas, too: those of another service of the process."""
        for saga in sagas:
            self._shown.add(saga.name)
            self._prepare(saga)

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:  # noqa: ARG002  as the port has it
        """Count it."""
        self._failed.labels(operation.spec.saga, step or _NO_STEP).inc()

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:  # noqa: ARG002  as the port has it
        """Count it."""
        self._undo_failed.labels(operation.spec.saga, step or _NO_STEP).inc()

    def closed(self, operation: Operation) -> None:
        """Count it."""
        self._closed.labels(operation.spec.saga, operation.phase).inc()

    def stuck(self, operation: Operation) -> None:
        """Count it."""
        self._stuck.labels(operation.spec.saga).inc()

    def open(self, counts: OpenCounts) -> None:
        """Show how many are open. A saga of somebody else that was shown once is shown at zero when it has none."""
        self._shown |= {saga for saga, _ in counts}
        for saga in self._shown:
            for phase in OPEN_PHASES:
                self._open.labels(saga, phase).set(counts.get((saga, phase), 0))

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:
        """Show how many cannot be undone by anybody here."""
        self._found[sagas] = dict(found)
        self._show_obstructed()

    def _show_obstructed(self) -> None:
        by_name: dict[str, list[Obstacle]] = {}
        for found in self._found.values():
            for name, obstacle in found.items():
                by_name.setdefault(name, []).append(obstacle)
        counts = Numbers(self._common(each) for each in by_name.values())
        for obstacle in OBSTACLES:
            self._obstructed.labels(obstacle).set(counts[obstacle])

    def _common(self, obstacles: Sequence[Obstacle]) -> Obstacle | None:
        """Return what keeps everybody from undoing an operation, by what each says of it who cannot."""
        known = [each for each in obstacles if each != "unknown_saga"]
        if known:
            return known[0]
        return "unknown_saga" if len(obstacles) == len(self._found) else None

    def _prepare(self, saga: AnySaga) -> None:
        for phase in CLOSED_PHASES:
            self._closed.labels(saga.name, phase)
        for phase in OPEN_PHASES:
            self._open.labels(saga.name, phase)
        self._stuck.labels(saga.name)
        for step in (*(step.name for step in saga.steps), _NO_STEP):
            self._failed.labels(saga.name, step)
            self._undo_failed.labels(saga.name, step)
