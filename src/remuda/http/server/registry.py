"""Registry of the metrics of a process, with those that belong to no service: the build, the store and the server."""

import platform
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Gauge, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from remuda.http.server.access_log import LineWriter
from remuda.http.server.server import HttpServer
from remuda.store.sqlite.metrics import StoreMetrics
from remuda.store.sqlite.store import SqliteStore
from remuda.version import describe


def process_registry(store: SqliteStore) -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(StoreMetrics(store))
    build = describe()
    labels = {"version": build.version, "revision": build.revision, "python": platform.python_version()}
    Gauge("remuda_build_info", "Always 1.", [*labels], registry=registry).labels(**labels).set(1)
    return registry


def show_server(registry: CollectorRegistry, server: HttpServer, sink: LineWriter) -> None:
    registry.register(_ServerMetrics(server, sink))


class _ServerMetrics(Collector):
    """Collector of the open connections of clients, and of the lines that a slow reader of the log has cost."""

    def __init__(self, server: HttpServer, sink: LineWriter) -> None:
        self._server, self._sink = server, sink

    def collect(self) -> Iterator[Metric]:
        about = "Open connections of clients."
        yield GaugeMetricFamily("remuda_http_connections", about, value=self._server.connections)
        about = "Log lines that were dropped because the log was read too slowly."
        yield CounterMetricFamily("remuda_log_lines_dropped", about, value=self._sink.total_dropped)
