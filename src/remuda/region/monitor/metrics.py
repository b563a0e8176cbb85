"""Metrics of the monitor. The only id among the labels is the region's."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Gauge, Histogram

from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import Gone
from remuda.reconcile.leader import Pace
from remuda.reconcile.sources import names
from remuda.region.catalogue.provider_registry import RegionProvider
from remuda.region.kinds.networks import Address, Network, VLANAllocation, vlans_name
from remuda.region.kinds.regions import Region
from remuda.region.kinds.servers import Server, StatusSummary, status_summary
from remuda.region.monitor.inventory import SUBJECTS
from remuda.region.networks.ipam import vlan_segments
from remuda.region.networks.rules import plan_of
from remuda.resources.conventions import NETWORK, REGION
from remuda.resources.crud import find
from remuda.store.contract import Change, Store

PHASES: Final = ("pending", "queued", "building", "running", "stopping", "stopped")
"""Phases of servers, in lower case."""

_RUNNING_S = (5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_SCHEDULING_S = (1, 5, 10, 30, 60, 120, 300)


class MonitorMetrics:
    """Metrics that only the leading process reports."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"remuda_region_{name}", text, ["region", *labels], registry=registry)

        def histogram(name: str, text: str, buckets: tuple[int, ...]) -> Histogram:
            return Histogram(f"remuda_region_{name}", text, ["region"], buckets=buckets, registry=registry)

        self.servers = gauge("servers", "Servers by phase.", "phase")
        self.drifted = gauge("servers_drifted", "Servers that differ at the provider from what was created.")
        self.scheduling = histogram("server_scheduling_seconds", "From create to scheduled.", _SCHEDULING_S)
        self.running = histogram("server_running_seconds", "From create to the first start.", _RUNNING_S)
        self.deletion = histogram("server_deletion_seconds", "From the deletion request to the removal.", _RUNNING_S)
        self.orphans = gauge("orphans", "Resources at providers that belong to no object.", "subject")
        self.low = gauge("networks_low", "Networks with few free addresses.")
        self.exhausted = gauge("networks_exhausted", "Networks without a free address.")
        self.low_free = gauge("networks_low_free_addresses", "Free addresses of all networks with few of them.")
        self.flavors = gauge("flavor_free", "Servers of this flavor that still fit.", "flavor")
        self.vlans_taken = gauge("vlans_taken", "VLANs in use.")
        self.vlans_free = gauge("vlans_free", "Free VLANs.")
        self._offered: dict[str, set[str]] = {}

    def open(self, region: str) -> None:
        for phase in PHASES:
            self.servers.labels(region, phase)
        for subject in SUBJECTS:
            self.orphans.labels(region, subject)
        for metric in (
            self.drifted,
            self.scheduling,
            self.running,
            self.deletion,
            self.low,
            self.exhausted,
            self.low_free,
        ):
            metric.labels(region)

    def show_orphans(self, region: str, counts: Mapping[str, int]) -> None:
        for subject in SUBJECTS:
            self.orphans.labels(region, subject).set(counts.get(subject, 0))

    def show_flavors(self, region: str, free: Mapping[str, int]) -> None:
        """Set the free capacity of each flavor by name, and remove flavors that are no longer offered."""
        for name in self._offered.get(region, set()) - free.keys():
            self.flavors.remove(region, name)
        for name, count in free.items():
            self.flavors.labels(region, name).set(count)
        self._offered[region] = set(free)

    def clear(self) -> None:
        """Remove the values that only the leading process knows."""
        gauges = (self.servers, self.drifted, self.orphans, self.low, self.exhausted, self.low_free, self.flavors)
        for gauge in (*gauges, self.vlans_taken, self.vlans_free):
            gauge.clear()
        self._offered.clear()


_PAGE_DELAY_S = 0.02


class ServerCounts:
    """Counts of servers by status summary, and the times that they take to start and to be deleted.

    Servers are counted once by index, without reading them, and then by the changes of a watch. The summary of each is
    a string, which the garbage collector does not traverse: objects would block the event loop for tens of
    milliseconds.
    """

    def __init__(self, store: Store, clock: Clock, metrics: MonitorMetrics, *, page: int = 500) -> None:
        self._store, self._clock, self._metrics, self._page = store, clock, metrics, page
        self._known: dict[str, str] = {}
        """Status summary of each server."""

    async def run(self) -> None:
        """Count all servers, then follow their changes until cancelled. After a gap, count again."""
        while True:
            await self._clear()
            try:
                await self._watch(await self._count_all())
            except Gone:
                structlog.get_logger().info("servers are counted again")

    async def _count_all(self) -> str:
        """Count all servers; return the version from which to watch."""
        version = (await self._store.list_names(Server, limit=1)).version
        regions = [name async for name in names(self._store, Region)]
        for summary in _summaries(["", *regions]):
            async for page in self._pages(summary):
                self._record([name for name in page if self._known.get(name) != summary], summary)
        return version

    async def _pages(self, summary: str) -> AsyncIterator[Sequence[str]]:
        """Yield the names of all servers with this summary, page by page."""
        after: str | None = None
        while True:
            page = await self._store.list_names(
                Server, index=("status summary", summary), limit=self._page, after=after
            )
            yield page.items
            after = page.next
            if after is None:
                return
            await self._clock.sleep(_PAGE_DELAY_S)

    async def _watch(self, version: str) -> None:
        async for event in self._store.watch(Server, since=version):
            if isinstance(event, Change):
                self._apply(event)

    def _apply(self, change: Change[Server]) -> None:
        server = change.resource
        if change.type == "deleted":
            if self._remove(server.name):
                self._observe(self._metrics.deletion, server, server.metadata.deletion_timestamp, self._clock.now())
            return
        before, after = self._known.get(server.name), status_summary(server)
        if before != after.text:
            self._record([server.name], after.text)
        if after.has_run and before is not None and not StatusSummary.of_text(before).has_run:
            created, status = server.metadata.creation_timestamp, server.status
            self._observe(self._metrics.scheduling, server, created, status.scheduled_at)
            self._observe(self._metrics.running, server, created, status.provisioned_at)

    def _record(self, changed: list[str], summary: str) -> None:
        """Record servers whose summary changed, or that are new."""
        counts = Counter(self._known[name] for name in changed if name in self._known)
        self._known |= dict.fromkeys(changed, summary)
        for before, count in counts.items():
            self._count(before, -count)
        if changed:
            self._count(summary, len(changed))

    def _remove(self, name: str) -> bool:
        summary = self._known.pop(name, None)
        if summary is not None:
            self._count(summary, -1)
        return summary is not None

    async def _clear(self) -> None:
        while self._known:
            some = [self._known.popitem()[1] for _ in range(min(self._page, len(self._known)))]
            for summary, count in Counter(some).items():
                self._count(summary, -count)
            await yield_to_loop()

    def _count(self, text: str, change: int) -> None:
        summary = StatusSummary.of_text(text)
        self._metrics.servers.labels(summary.region, summary.phase).inc(change)
        if summary.is_drifted:
            self._metrics.drifted.labels(summary.region).inc(change)

    def _observe(self, histogram: Histogram, server: Server, began: datetime | None, ended: datetime | None) -> None:
        """Observe a duration, unless the clocks that measured its ends disagree."""
        if began is not None and ended is not None and ended >= began:
            histogram.labels(status_summary(server).region).observe((ended - began).total_seconds())


def _summaries(regions: list[str]) -> Iterator[str]:
    """Yield all summaries that servers of these regions can have."""
    return (StatusSummary(*each).text for each in product(regions, PHASES, (False, True), (False, True)))


_PAGE = 100


@dataclass(slots=True, kw_only=True)
class CapacityMetrics:
    """Free addresses, VLANs and flavors of one region."""

    store: Store
    metrics: MonitorMetrics
    pace: Pace
    low_share: float
    _low: set[str] = field(default_factory=set, init=False)
    """Networks that were reported as low."""

    async def measure(self, cloud: RegionProvider) -> None:
        await self._measure_vlans(cloud.region)
        await self._measure_networks(cloud.region.name)
        free = {each.name: each.free for each in await cloud.provider.catalogue.flavors() if each.free is not None}
        self.metrics.show_flavors(cloud.region.name, free)

    async def _measure_networks(self, region: str) -> None:
        low: dict[str, int] = {}
        after: str | None = None
        while True:
            page = await self.store.list(Network, labels={REGION: region}, limit=_PAGE, after=after)
            for network in page.items:
                size, free = await self._addresses(network)
                if free < self.low_share * size:
                    low[network.name] = free
                    self._report(network.name, region, free)
            after = page.next
            if after is None:
                break
        self._low = set(low)
        self.metrics.low.labels(region).set(len(low))
        self.metrics.exhausted.labels(region).set(sum(not free for free in low.values()))
        self.metrics.low_free.labels(region).set(sum(low.values()))

    async def _addresses(self, network: Network) -> tuple[int, int]:
        """Return the number of addresses that a network has for servers, and how many of them are free."""
        taken = 0
        async for _ in names(self.store, Address, labels={NETWORK: network.name}):
            taken += 1
        await self.pace.step()
        size = len(plan_of(network).dhcp_pool)
        return size, max(0, size - taken)

    def _report(self, network: str, region: str, free: int) -> None:
        if network not in self._low:
            structlog.get_logger().warning("network runs low on addresses", network=network, region=region, free=free)

    async def _measure_vlans(self, region: Region) -> None:
        found = await find(self.store, VLANAllocation, vlans_name(region.spec.provider, region.name))
        if found is not None:
            taken = len(found.spec.allocations)
            self.metrics.vlans_taken.labels(region.name).set(taken)
            given = sum(map(len, vlan_segments(region)))
            self.metrics.vlans_free.labels(region.name).set(max(0, given - taken))
