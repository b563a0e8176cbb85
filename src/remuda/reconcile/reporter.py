"""Reporter: the port for observing controllers, and its implementation as Prometheus metrics.

Every label value exists from the start, so that a missing series means something. `docs/reference/metrics.md` has them
all.
"""

from collections.abc import Callable, Sequence
from typing import Literal, ParamSpec, get_args

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from remuda.reconcile.results import ReconcileContext

FactsT = ParamSpec("FactsT")

ReconcileResult = Literal["done", "requeue", "blocked", "failed", "conflict", "unavailable", "timeout"]
"""The outcome of a reconcile: its result, or its error. `timeout`: it exceeded its deadline."""

RECONCILE_RESULTS: Sequence[ReconcileResult] = get_args(ReconcileResult)
"""All outcomes, for metrics that exist from the start."""


class Reporter:
    """Observes controllers. Its methods do nothing: override those you need.

    They must be fast and should not raise: that is only logged.
    """

    def opened(self, controller: str, *, depth: Callable[[], int], oldest_s: Callable[[], float]) -> None:
        """Observe that there is a controller, with these functions of its queue."""

    def finished(self, context: ReconcileContext, outcome: ReconcileResult, seconds: float) -> None:
        """Observe the end of a reconcile."""

    def retried(self, context: ReconcileContext, pause_s: float) -> None:
        """Observe a failed reconcile that will be retried."""

    def resynced(self, controller: str, keys: int) -> None:
        """Observe a resync of this many keys, when leadership began or later."""

    def lost_event_found(self, context: ReconcileContext) -> None:
        """Observe a resync that had work to do for an idle key: an event was lost, which is a bug."""

    def armed(self, controller: str) -> None:
        """Observe that a controller has a deletion guard, so that `tripped` will follow."""

    def tripped(self, controller: str, groups: int) -> None:
        """Observe the number of groups in which a controller's deletion guard stops deletions."""

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  the only argument
        """Observe that the process has won or lost leadership."""


def report(method: Callable[FactsT, None], *args: FactsT.args, **facts: FactsT.kwargs) -> None:
    """Call a method of a reporter. An error of the reporter is logged and has no other effect."""
    try:
        method(*args, **facts)
    except Exception:  # noqa: BLE001  no error of a reporter stops a controller
        structlog.get_logger().exception("reporter failed", report=getattr(method, "__name__", str(method)))


_BUCKETS_S = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


class PrometheusReporter(Reporter):
    """Counts in the given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"remuda_reconcile_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"remuda_reconcile_{name}", text, labels, registry=registry)

        self._runs = counter("runs", "Reconciles, by outcome.", "controller", "result")
        self._retries = counter("retries", "Reconciles that will be retried.", "controller")
        self._scanned = counter("resynced", "Keys enqueued by resyncs.", "controller")
        self._finds = counter("resync_finds", "Lost events found by resyncs: each is a bug.", "controller")
        self._depth = gauge("queue_depth", "Keys that wait for a worker.", "controller")
        self._oldest = gauge("queue_oldest_seconds", "Waiting time of the oldest key.", "controller")
        self._tripped = gauge(
            "deletion_guard_tripped", "Groups in which the deletion guard stops deletions.", "controller"
        )
        self._leading = gauge("leading", "Whether this process leads.", "lease")
        self._seconds = Histogram(
            "remuda_reconcile_seconds", "Duration of reconciles.", ["controller"], buckets=_BUCKETS_S, registry=registry
        )
        self._runs_of: dict[tuple[str, ReconcileResult], Counter] = {}
        self._seconds_of: dict[str, Histogram] = {}

    def opened(self, controller: str, *, depth: Callable[[], int], oldest_s: Callable[[], float]) -> None:
        """Create all metrics of a controller."""
        for outcome in RECONCILE_RESULTS:
            self._runs_of[controller, outcome] = self._runs.labels(controller, outcome)
        self._seconds_of[controller] = self._seconds.labels(controller)
        for metric in (self._retries, self._scanned, self._finds):
            metric.labels(controller)
        self._depth.labels(controller).set_function(depth)
        self._oldest.labels(controller).set_function(oldest_s)

    def finished(self, context: ReconcileContext, outcome: ReconcileResult, seconds: float) -> None:
        """Count a reconcile."""
        self._runs_of[context.controller, outcome].inc()
        self._seconds_of[context.controller].observe(seconds)

    def retried(self, context: ReconcileContext, pause_s: float) -> None:  # noqa: ARG002  the delay is not counted
        """Count a reconcile that will be retried."""
        self._retries.labels(context.controller).inc()

    def resynced(self, controller: str, keys: int) -> None:
        """Count the keys of a resync."""
        self._scanned.labels(controller).inc(keys)

    def lost_event_found(self, context: ReconcileContext) -> None:
        """Count a lost event."""
        self._finds.labels(context.controller).inc()

    def armed(self, controller: str) -> None:
        """Create the metric of a deletion guard."""
        self._tripped.labels(controller)

    def tripped(self, controller: str, groups: int) -> None:
        """Set the number of tripped groups."""
        self._tripped.labels(controller).set(groups)

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  as in the protocol
        """Set whether this process leads."""
        self._leading.labels(lease).set(is_leading)
