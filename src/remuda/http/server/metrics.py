"""What is counted about requests, for Prometheus.

Every series is there from the start, at zero: a rate over a series that appears with its first error misses that error.
The label values come from the route tables, so an unknown path cannot make a series. What every request moves is plain
numbers that are read when somebody asks: the library's own counters take a lock each, which is a good part of a read.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from remuda.http.routes import Table
from remuda.kernel.clock import Clock

UNROUTED = ("none", "none")
"""The service and route of a request that met no route."""

REFUSALS = (
    "head_too_slow",
    "head_too_large",
    "malformed",
    "body_stalled",
    "not_reading",
    "pipelined",
    "connections",
    "body_unwanted",
    "idle",
)
"""Why a connection was cut or closed by the server, rather than by its client."""

_STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_BODY_REJECTS = ("too_large", "too_slow")
_DURATIONS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LAGS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_LAG_INTERVAL_S = 0.5


class RouteMeters:
    """What is counted for one route."""

    __slots__ = ("answers", "durations", "total_s")

    def __init__(self) -> None:
        self.answers = [0] * len(_STATUS_CLASSES)
        self.durations = [0] * (len(_DURATIONS_S) + 1)
        """How many requests fell between two bounds, the last beyond them all."""
        self.total_s = 0.0

    def count(self, status: int) -> None:
        self.answers[status // 100 - 1] += 1

    def observe_duration(self, duration_s: float) -> None:
        """Count how long it took."""
        self.durations[bisect_left(_DURATIONS_S, duration_s)] += 1
        self.total_s += duration_s


_Routes = Mapping[tuple[str | None, str | None], RouteMeters]


class _Requests(Collector):
    """Shows the meters of all routes as the library's own families."""

    def __init__(self, routes: _Routes) -> None:
        self._routes = routes

    def collect(self) -> Iterator[Metric]:
        place = ("service", "route")
        answers = CounterMetricFamily("remuda_http_requests", "Answered requests.", labels=(*place, "status"))
        about = "Time from a request's head to the end of its answer; watches are left out."
        durations = HistogramMetricFamily("remuda_http_request_duration_seconds", about, labels=place)
        bounds = [*map(str, _DURATIONS_S), "+Inf"]
        for (service, route), meters in self._routes.items():
            labels = (str(service), str(route))
            for status, count in zip(_STATUS_CLASSES, meters.answers, strict=True):
                answers.add_metric((*labels, status), count)
            buckets = list(zip(bounds, accumulate(meters.durations), strict=True))
            durations.add_metric(labels, buckets, sum_value=meters.total_s)
        yield answers
        yield durations


class Metrics:
    """Everything that is measured about HTTP in one process."""

    def __init__(self, registry: CollectorRegistry, tables: Iterable[Table] = ()) -> None:
        self.registry = registry
        self.in_flight = 0
        """Requests that are being answered, streams included."""
        Gauge(
            "remuda_http_requests_in_flight", "Requests that are being answered, streams included.", registry=registry
        ).set_function(lambda: self.in_flight)
        self.watch_streams = Gauge("remuda_http_watch_streams", "Watches that are open.", registry=registry)
        self.loop_lag = Histogram(
            "remuda_loop_lag_seconds", "How late the event loop ran a timer.", buckets=_LAGS_S, registry=registry
        )
        tables = tuple(tables)
        places = [UNROUTED, *((table.service, route.name) for table in tables for route in table.routes)]
        self._routes: _Routes = {place: RouteMeters() for place in places}
        self._unrouted = self._routes[UNROUTED]
        registry.register(_Requests(self._routes))
        self._rate_limited = self._bind_counter(
            "remuda_http_rate_limited",
            "Requests refused because their caller asked too often.",
            "service",
            [table.service for table in tables] + [UNROUTED[0]],
        )
        self._body_rejects = self._bind_counter(
            "remuda_http_body_rejects", "Requests refused for their body.", "reason", _BODY_REJECTS
        )
        self._refusals = self._bind_counter(
            "remuda_http_connections_cut", "Connections that the server ended.", "reason", REFUSALS
        )

    def of(self, service: str | None, route: str | None) -> RouteMeters:
        """Return what is counted for a route, or for requests that met none."""
        return self._routes.get((service, route), self._unrouted)

    def count_error(self, code: str, service: str | None) -> None:
        """Count those errors that have a series of their own."""
        if code == "too_many":
            self._rate_limited.get(service or "", self._rate_limited[UNROUTED[0]]).inc()
        elif code in self._body_rejects:
            self._body_rejects[code].inc()

    def count_cut(self, reason: str) -> None:
        """Count a connection that the server ended, for one of `REFUSALS`."""
        self._refusals[reason].inc()

    def _bind_counter(self, name: str, about: str, label: str, values: Iterable[str]) -> dict[str, Counter]:
        counter = Counter(name, about, (label,), registry=self.registry)
        return {value: counter.labels(value) for value in values}


async def measure_loop_lag(metrics: Metrics, clock: Clock) -> None:
    """Measure for ever how much later than it should the loop comes round."""
    while True:
        due = clock.monotonic() + _LAG_INTERVAL_S
        await clock.sleep(_LAG_INTERVAL_S)
        metrics.loop_lag.observe(max(0.0, clock.monotonic() - due))
