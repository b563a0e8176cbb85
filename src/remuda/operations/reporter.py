"""Reporters of operations: the port, timeline events, and Prometheus metrics.

A reporter is asked for `records` before each write that changes the phase of an Operation, and they are stored in that
write; the other methods report what has happened. None of them may wait or fail.

The services of a process that have one store share the metrics. Each has its own recovery, and all of these see the
same operations: one whose saga a recovery does not know is unknown only if no other recovery knows it.
"""

from collections import Counter as Numbers
from collections.abc import Mapping, Sequence

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge

from remuda.operations.kinds import CLOSED_PHASES, OBSTACLES, OPEN_PHASES, Failure, Obstacle, Operation, Phase
from remuda.operations.saga import AnySaga, Sagas
from remuda.store.logs import Record, timeline_event

Obstructed = Mapping[str, Obstacle]
"""The open operations that recovery cannot undo, by name, with the obstacle."""

OpenCounts = Mapping[tuple[str, Phase], int]
"""The number of open operations, by saga and phase."""


class Reporter:
    """Observes operations. Its methods do nothing: override those you need."""

    def records(self, operation: Operation) -> Sequence[Record]:  # noqa: ARG002  for subclasses
        """Return the records to store in the write that brings the operation into its phase."""
        return ()

    def started(self, operation: Operation) -> None:
        """Observe that the record exists, before the first step."""

    def step_done(self, operation: Operation, step: str) -> None:
        """Observe that a step has succeeded."""

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Observe that a step failed, before undoing; `step` is empty if it was outside of any."""

    def undone(self, operation: Operation, step: str) -> None:
        """Observe that a step was undone."""

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Observe that undoing a step failed; `step` is empty if it was outside of any."""

    def closed(self, operation: Operation) -> None:
        """Observe that an operation is done, undone or abandoned."""

    def stuck(self, operation: Operation) -> None:
        """Observe that undoing failed so often that an operator should act."""

    def open(self, counts: OpenCounts) -> None:
        """Observe the number of open operations that recovery has found."""

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:
        """Observe the operations that the recovery of these sagas cannot undo."""


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An operation in the timeline of its subject."""

    event: str
    """`OperationStarted`, `OperationUndoing`, `OperationDone`, `OperationUndone`, `OperationStuck` or
    `OperationAbandoned`."""
    operation: str
    saga: str
    phase: Phase
    actor: str
    actor_name: str = ""
    uid: str = ""
    """The uid of the subject, once it is known."""
    trace_id: str = ""
    failed_step: str = ""
    error: Failure | None = None


class Timeline(Reporter):
    """Records every phase of an operation in the timeline of its subject, in the Operation's own writes."""

    def records(self, operation: Operation) -> Sequence[Record]:
        """Return the record of the operation's phase."""
        spec, status = operation.spec, operation.status
        entry = TimelineEntry(
            event=_event(status.phase),
            operation=operation.name,
            saga=spec.saga,
            phase=status.phase,
            actor=spec.actor,
            actor_name=spec.actor_name,
            uid=status.incarnation,
            trace_id=spec.trace_id,
            failed_step=status.failed_step,
            error=status.error,
        )
        return (timeline_event(spec.subject_kind, spec.subject, entry),)


def _event(phase: Phase) -> str:
    return "OperationStarted" if phase == "running" else f"Operation{phase.capitalize()}"


class Reporters(Reporter):
    """Several reporters as one."""

    def __init__(self, *reporters: Reporter) -> None:
        self._all = reporters

    def records(self, operation: Operation) -> Sequence[Record]:
        """Return the records of all."""
        return [record for each in self._all for record in each.records(operation)]

    def started(self, operation: Operation) -> None:
        """Call all."""
        for each in self._all:
            each.started(operation)

    def step_done(self, operation: Operation, step: str) -> None:
        """Call all."""
        for each in self._all:
            each.step_done(operation, step)

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Call all."""
        for each in self._all:
            each.step_failed(operation, step, failure)

    def undone(self, operation: Operation, step: str) -> None:
        """Call all."""
        for each in self._all:
            each.undone(operation, step)

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        """Call all."""
        for each in self._all:
            each.undo_failed(operation, step, failure)

    def closed(self, operation: Operation) -> None:
        """Call all."""
        for each in self._all:
            each.closed(operation)

    def stuck(self, operation: Operation) -> None:
        """Call all."""
        for each in self._all:
            each.stuck(operation)

    def open(self, counts: OpenCounts) -> None:
        """Call all."""
        for each in self._all:
            each.open(counts)

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:
        """Call all."""
        for each in self._all:
            each.obstructed(found, sagas)


_NO_STEP = "journal"


class Metrics(Reporter):
    """Counts outcomes, failures and open operations. All label values of the sagas exist from the start."""

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
            "remuda_operations_undo_blocked",
            "Open operations that this process cannot undo.",
            ["obstacle"],
            registry=registry,
        )
        self._shown: set[str] = set()
        self._found: dict[Sagas, Obstructed] = {}
        """The last findings of each recovery, by the sagas that it knows."""
        self.show(sagas)
        self._show_obstructed()

    def show(self, sagas: Sagas) -> None:
        """Add the sagas of another service of the process."""
        for saga in sagas:
            self._shown.add(saga.name)
            self._prepare(saga)

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:  # noqa: ARG002  part of the port
        """Count a failed step."""
        self._failed.labels(operation.spec.saga, step or _NO_STEP).inc()

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:  # noqa: ARG002  part of the port
        """Count a failed undo."""
        self._undo_failed.labels(operation.spec.saga, step or _NO_STEP).inc()

    def closed(self, operation: Operation) -> None:
        """Count an outcome."""
        self._closed.labels(operation.spec.saga, operation.phase).inc()

    def stuck(self, operation: Operation) -> None:
        """Count an operation that got stuck."""
        self._stuck.labels(operation.spec.saga).inc()

    def open(self, counts: OpenCounts) -> None:
        """Set the number of open operations. A saga that was once shown is set to zero when it has none."""
        self._shown |= {saga for saga, _ in counts}
        for saga in self._shown:
            for phase in OPEN_PHASES:
                self._open.labels(saga, phase).set(counts.get((saga, phase), 0))

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:
        """Set the number of operations that no recovery of this process can undo."""
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
        """Return the obstacle that all recoveries have with an operation, or None if one can undo it."""
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
