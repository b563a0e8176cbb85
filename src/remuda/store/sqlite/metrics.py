"""Prometheus metrics of the store: the sizes of its files, the free space beside them, and the writes in its queue."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from remuda.store.sqlite.store import SqliteStore


class StoreMetrics(Collector):
    """Collector of the metrics of one store, which are measured at each scrape."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        path = self._store.path
        sizes = GaugeMetricFamily("remuda_store_bytes", "Sizes of the files of the store.", labels=["file"])
        sizes.add_metric(["database"], _size(path))
        sizes.add_metric(["log"], _size(path.with_name(f"{path.name}-wal")))
        yield sizes
        about = "Free space of the file system of the store."
        yield GaugeMetricFamily("remuda_store_free_bytes", about, value=shutil.disk_usage(path.parent).free)
        about = "Writes that are not durable yet."
        yield GaugeMetricFamily("remuda_store_writes_pending", about, value=self._store.pending_writes)


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):  # the log exists only while the store is open
        return path.stat().st_size
    return 0
