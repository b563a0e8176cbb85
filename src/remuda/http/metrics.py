"""What is counted about requests, for Prometheus.

Every series is there from the start, at zero: a rate over a series that appears with its first error misses that error.
The label values come from the route tables, so an unknown path cannot make a series. What a request needs is bound
beforehand, because looking up labels costs more than counting.
"""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from remuda.http.routes import Table
from remuda.kernel.clock import Clock

__all__ = ["REFUSALS", "UNROUTED", "Metrics", "RouteMeters", "measure_loop_lag"]

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
_LAG_INTERVAL_S = 0.25


class RouteMeters:
    """What is counted for one route, bound to its labels."""

    __slots__ = ("_by_class", "observe_duration")

    def __init__(self, requests: Counter, durations: Histogram, service: str, route: str) -> None:
        self._by_class = tuple(requests.labels(service, route, status).inc for status in _STATUS_CLASSES)
        self.observe_duration = durations.labels(service, route).observe

    def count(self, status: int) -> None:
        """Count an answer."""
        self._by_class[status // 100 - 1]()


class Metrics:
    """Everything that is measured about HTTP in one process."""

    def __init__(self, registry: CollectorRegistry, tables: Iterable[Table] = ()) -> None:
        self.registry = registry
        self.in_flight = Gauge(
            "remuda_http_requests_in_flight", "Requests that are being answered, streams included.", registry=registry
        )
        self.watch_streams = Gauge("remuda_http_watch_streams", "Watches that are open.", registry=registry)
        self.loop_lag = Histogram(
            "remuda_loop_lag_seconds", "How late the event loop ran a timer.", buckets=_LAGS_S, registry=registry
        )
        tables = tuple(tables)
        self._routes = self._bind_routes(tables)
        self._unrouted = self._routes[UNROUTED]
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

    def _bind_routes(self, tables: Iterable[Table]) -> dict[tuple[str | None, str | None], RouteMeters]:
        labels = ("service", "route")
        requests = Counter("remuda_http_requests", "Answered requests.", (*labels, "status"), registry=self.registry)
        durations = Histogram(
            "remuda_http_request_duration_seconds",
            "Time from a request's head to the end of its answer; watches are left out.",
            labels,
            buckets=_DURATIONS_S,
            registry=self.registry,
        )
        places = [UNROUTED, *((table.service, route.name) for table in tables for route in table.routes)]
        return {place: RouteMeters(requests, durations, *place) for place in places}

    def _bind_counter(self, name: str, about: str, label: str, values: Iterable[str]) -> dict[str, Counter]:
        counter = Counter(name, about, (label,), registry=self.registry)
        return {value: counter.labels(value) for value in values}


async def measure_loop_lag(metrics: Metrics, clock: Clock) -> None:
    """Measure for ever how much later than it should the loop comes round."""
    while True:
        due = clock.monotonic() + _LAG_INTERVAL_S
        await clock.sleep(_LAG_INTERVAL_S)
        metrics.loop_lag.observe(max(0.0, clock.monotonic() - due))
