"""Prometheus metrics of HTTP requests.

What alerts watch exists from the start, at zero: a rate over a series that appears with its first error misses that
error. The series of a route appear with its first request, because hundreds of routes are never used. Label values come
from the route tables, so an unknown path cannot create a series. The values that every request updates are plain
numbers, read at a scrape: the library's own counters take a lock each, which would be a good part of the time of a read
request.
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
"""Service and route of a request without a route."""

CLOSE_REASONS = (
    "head_timeout",
    "handshake_failed",
    "handshake_timeout",
    "head_too_large",
    "malformed",
    "body_stalled",
    "write_timeout",
    "pipelined",
    "connections",
    "address_connections",
    "buffers",
    "displaced",
    "body_unused",
    "idle",
)
"""Reasons for which the server closes a connection."""

_STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_SERVER_ERROR = _STATUS_CLASSES.index("5xx")
_BODY_REJECTS = ("too_large", "too_slow")
_DURATIONS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LAGS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_LAG_INTERVAL_S = 0.5


class RouteMeters:
    """Counters of one route."""

    __slots__ = ("durations", "responses", "total_s")

    def __init__(self) -> None:
        self.responses = [0] * len(_STATUS_CLASSES)
        self.durations = [0] * (len(_DURATIONS_S) + 1)
        """Number of requests in each bucket, the last beyond all bounds."""
        self.total_s = 0.0

    def count(self, status: int) -> None:
        self.responses[status // 100 - 1] += 1

    def observe_duration(self, duration_s: float) -> None:
        self.durations[bisect_left(_DURATIONS_S, duration_s)] += 1
        self.total_s += duration_s


_Routes = Mapping[tuple[str | None, str | None], RouteMeters]


class _Requests(Collector):
    """Collector of the counters of all routes that had a request, and of the errors of all services."""

    def __init__(self, routes: _Routes) -> None:
        self._routes = routes
        self._services = sorted({str(service) for service, _ in routes})

    def collect(self) -> Iterator[Metric]:
        names = ("service", "route")
        responses = CounterMetricFamily("remuda_http_requests", "Completed requests.", labels=(*names, "status"))
        about = "Time from a request's head to the end of its response, without watches."
        durations = HistogramMetricFamily("remuda_http_request_duration_seconds", about, labels=names)
        bounds = [*map(str, _DURATIONS_S), "+Inf"]
        failures = dict.fromkeys(self._services, 0)
        for (service, route), meters in self._routes.items():
            if not any(meters.responses):
                continue
            failures[str(service)] += meters.responses[_SERVER_ERROR]
            labels = (str(service), str(route))
            for status, count in zip(_STATUS_CLASSES, meters.responses, strict=True):
                responses.add_metric((*labels, status), count)
            buckets = list(zip(bounds, accumulate(meters.durations), strict=True))
            durations.add_metric(labels, buckets, sum_value=meters.total_s)
        yield responses
        yield durations
        errors = CounterMetricFamily("remuda_http_errors", "Requests that failed with 5xx.", labels=["service"])
        for name, count in failures.items():
            errors.add_metric([name], count)
        yield errors


class Metrics:
    """HTTP metrics of one process."""

    def __init__(self, registry: CollectorRegistry, tables: Iterable[Table] = ()) -> None:
        self.registry = registry
        self.in_flight = 0
        """Requests in progress, streams included."""
        Gauge(
            "remuda_http_requests_in_flight", "Requests in progress, streams included.", registry=registry
        ).set_function(lambda: self.in_flight)
        self.watch_streams = Gauge("remuda_http_watch_streams", "Open watches.", registry=registry)
        self.loop_lag = Histogram(
            "remuda_loop_lag_seconds", "Delay of a timer of the event loop.", buckets=_LAGS_S, registry=registry
        )
        tables = tuple(tables)
        keys = [UNROUTED, *((table.service, route.name) for table in tables for route in table.routes)]
        self._routes: _Routes = {key: RouteMeters() for key in keys}
        self._unrouted = self._routes[UNROUTED]
        registry.register(_Requests(self._routes))
        self._rate_limited = self._bind_counter(
            "remuda_http_rate_limited",
            "Requests rejected by the rate limit.",
            "service",
            [table.service for table in tables] + [UNROUTED[0]],
        )
        self._body_rejects = self._bind_counter(
            "remuda_http_body_rejects", "Requests rejected because of their body.", "reason", _BODY_REJECTS
        )
        self._connections_closed = self._bind_counter(
            "remuda_http_connections_closed", "Connections that the server closed.", "reason", CLOSE_REASONS
        )

    def of(self, service: str | None, route: str | None) -> RouteMeters:
        """Return the counters of a route, or of requests without one."""
        return self._routes.get((service, route), self._unrouted)

    def count_error(self, code: str, service: str | None) -> None:
        """Count those errors that have a series of their own."""
        if code == "too_many":
            self._rate_limited.get(service or "", self._rate_limited[UNROUTED[0]]).inc()
        elif code in self._body_rejects:
            self._body_rejects[code].inc()

    def count_closed(self, reason: str) -> None:
        """Count a connection that the server closed for one of `CLOSE_REASONS`."""
        self._connections_closed[reason].inc()

    def _bind_counter(self, name: str, about: str, label: str, values: Iterable[str]) -> dict[str, Counter]:
        counter = Counter(name, about, (label,), registry=self.registry)
        return {value: counter.labels(value) for value in values}


async def measure_loop_lag(metrics: Metrics, clock: Clock) -> None:
    """Measure without end how late the event loop runs a timer."""
    while True:
        due = clock.monotonic() + _LAG_INTERVAL_S
        await clock.sleep(_LAG_INTERVAL_S)
        metrics.loop_lag.observe(max(0.0, clock.monotonic() - due))
