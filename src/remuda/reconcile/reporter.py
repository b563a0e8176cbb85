"""Metrics of controllers, for Prometheus. Every label value is there from the start, so that absence says something.

::

    remuda_reconcile_runs_total{controller,result}
    remuda_reconcile_seconds{controller}                 how long passes take
    remuda_reconcile_retries_total{controller}           passes that will be tried again
    remuda_reconcile_queue_depth{controller}             keys that wait for a worker
    remuda_reconcile_queue_oldest_seconds{controller}    how long the oldest of them has waited
    remuda_reconcile_scanned_total{controller}           keys handed out by full scans
    remuda_reconcile_scan_finds_total{controller}        what full scans had to do: each is a bug
    remuda_reconcile_breaker_tripped{controller}         groups in which nothing is destroyed unasked
    remuda_reconcile_leading{lease}                      1 in the process that controls

What can be seen of a controller from outside: metrics, tests and consoles plug in here.
"""

from collections.abc import Callable
from typing import Literal, ParamSpec, Protocol

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from remuda.reconcile.results import Run

FactsT = ParamSpec("FactsT")

PassOutcome = Literal["done", "again", "blocked", "failed", "conflict", "unavailable", "late"]
"""What a pass came to: its result, or what kept it from one. `late` ones did not end by their deadline."""

PASS_OUTCOMES: tuple[PassOutcome, ...] = ("done", "again", "blocked", "failed", "conflict", "unavailable", "late")
"""All of them, for metrics that are there from the start."""


class Reporter(Protocol):
    """Is told what happens. It must be quick, and should not raise: that would go unreported."""

    def opened(self, controller: str, *, depth: Callable[[], int], oldest_s: Callable[[], float]) -> None:
        """There is a controller, with these looks into its queue."""
        ...

    def finished(self, run: Run, outcome: PassOutcome, seconds: float) -> None:
        """A pass has ended."""
        ...

    def retried(self, run: Run, pause_s: float) -> None:
        """A pass that did not succeed will be tried again."""
        ...

    def scanned(self, controller: str, keys: int) -> None:
        """A full scan has handed out that many keys, be it when control began or later."""
        ...

    def scan_found(self, run: Run) -> None:
        """A full scan had something to do where nothing was under way: some event was lost, which is a bug."""
        ...

    def armed(self, controller: str) -> None:
        """A controller has a breaker, so there is something to tell by `tripped`."""
        ...

    def tripped(self, controller: str, groups: int) -> None:
        """In that many groups a controller's breaker stops it from destroying anything."""
        ...

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  it is the one thing that is told
        """The process has won or lost the right to control."""
        ...


class Silent:
    """Reports to nobody; the base of reporters that want to hear little."""

    def opened(self, controller: str, *, depth: Callable[[], int], oldest_s: Callable[[], float]) -> None:
        """Say nothing."""

    def finished(self, run: Run, outcome: PassOutcome, seconds: float) -> None:
        """Say nothing."""

    def retried(self, run: Run, pause_s: float) -> None:
        """Say nothing."""

    def scanned(self, controller: str, keys: int) -> None:
        """Say nothing."""

    def scan_found(self, run: Run) -> None:
        """Say nothing."""

    def armed(self, controller: str) -> None:
        """Say nothing."""

    def tripped(self, controller: str, groups: int) -> None:
        """Say nothing."""

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  as in the protocol
        """Say nothing."""


def tell(report: Callable[FactsT, None], *args: FactsT.args, **facts: FactsT.kwargs) -> None:
    """Report something. What a faulty reporter raises is told in the log, and keeps nobody from anything."""
    try:
        report(*args, **facts)
    except Exception:  # noqa: BLE001  whatever it was, control goes on
        structlog.get_logger().exception("reporter failed", report=getattr(report, "__name__", str(report)))


_BUCKETS_S = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


class PrometheusReporter:
    """Counts, in a registry that it is given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"remuda_reconcile_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"remuda_reconcile_{name}", text, labels, registry=registry)

        self._runs = counter("runs", "Passes, by what they came to.", "controller", "result")
        self._retries = counter("retries", "Passes that will be tried again.", "controller")
        self._scanned = counter("scanned", "Keys handed out by full scans.", "controller")
        self._finds = counter("scan_finds", "What full scans had to do: each is a bug.", "controller")
        self._depth = gauge("queue_depth", "Keys that wait for a worker.", "controller")
        self._oldest = gauge("queue_oldest_seconds", "How long the oldest key has waited.", "controller")
        self._tripped = gauge("breaker_tripped", "Groups in which nothing is destroyed unasked.", "controller")
        self._leading = gauge("leading", "Whether this process controls.", "lease")
        self._seconds = Histogram(
            "remuda_reconcile_seconds", "How long passes take.", ["controller"], buckets=_BUCKETS_S, registry=registry
        )
        self._runs_of: dict[tuple[str, PassOutcome], Counter] = {}
        self._seconds_of: dict[str, Histogram] = {}

    def opened(self, controller: str, *, depth: Callable[[], int], oldest_s: Callable[[], float]) -> None:
        """Begin all metrics of a controller at nought."""
        for outcome in PASS_OUTCOMES:
            self._runs_of[controller, outcome] = self._runs.labels(controller, outcome)
        self._seconds_of[controller] = self._seconds.labels(controller)
        for metric in (self._retries, self._scanned, self._finds):
            metric.labels(controller)
        self._depth.labels(controller).set_function(depth)
        self._oldest.labels(controller).set_function(oldest_s)

    def finished(self, run: Run, outcome: PassOutcome, seconds: float) -> None:
        """Count a pass."""
        self._runs_of[run.controller, outcome].inc()
        self._seconds_of[run.controller].observe(seconds)

    def retried(self, run: Run, pause_s: float) -> None:  # noqa: ARG002  how long it waits is not counted
        """Count a pass that will be tried again."""
        self._retries.labels(run.controller).inc()

    def scanned(self, controller: str, keys: int) -> None:
        """Count what a scan handed out."""
        self._scanned.labels(controller).inc(keys)

    def scan_found(self, run: Run) -> None:
        """Count a find."""
        self._finds.labels(run.controller).inc()

    def armed(self, controller: str) -> None:
        """Begin to show how many groups are stopped."""
        self._tripped.labels(controller)

    def tripped(self, controller: str, groups: int) -> None:
        """Show how many groups are stopped."""
        self._tripped.labels(controller).set(groups)

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  as in the protocol
        """Show who controls."""
        self._leading.labels(lease).set(is_leading)
