"""Operations as Prometheus metrics. Every label value of every registered saga is there from the start, at zero.

The services of a process that have one store share them. Each has a recovery of its own, and all of these see the same
operations: what one cannot undo because it does not know the saga is nobody's only if no other knows it either.
"""

from collections import Counter as Numbers
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from remuda.operations.kinds import CLOSED_PHASES, OBSTACLES, OPEN_PHASES, Failure, Obstacle, Operation
from remuda.operations.registry import Sagas
from remuda.operations.reporter import Obstructed, OpenCounts, Reporter
from remuda.operations.saga import AnySaga

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
