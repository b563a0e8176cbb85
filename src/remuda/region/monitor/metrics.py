"""The census of servers: how many there are of each phase, and how long it takes them to come and to go.

It is taken once, and from then on follows what is written: so it costs nothing while nothing happens, and sees each
server come up and go exactly once. It is taken from an index, and reads no server. What is remembered of each is text,
at which the garbage collector does not look: it would hold the loop for tens of milliseconds.

What the monitor finds, for Prometheus. The only id among the labels is the region's: all others are few.

::

    remuda_region_servers{region,phase}                  servers by how they are
    remuda_region_servers_drifted{region}                servers that are others at the provider than they were made
    remuda_region_server_scheduling_seconds{region}      from create to being taken on by the provider
    remuda_region_server_running_seconds{region}         from create to the first run
    remuda_region_server_gone_seconds{region}            from the request to delete to being gone
    remuda_region_orphans{region,subject}                what a provider has of ours that is nobody's
    remuda_region_networks_low{region}                   networks of whose addresses few are free
    remuda_region_networks_exhausted{region}             networks without a free address
    remuda_region_networks_low_free_addresses{region}    what is free on all of those together
    remuda_region_flavor_free{region,flavor}             so many more servers fit, where the provider tells
    remuda_region_vlans_taken{region}                    where networks are VLANs
    remuda_region_vlans_free{region}                     likewise

What a region may run out of: addresses on its networks, room for servers, VLANs.
"""

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
from remuda.region.networks.ipam import segments_of
from remuda.region.networks.rules import plan_of
from remuda.resources.conventions import NETWORK, REGION
from remuda.resources.crud import find
from remuda.store.contract import Change, Store

PHASES: Final = ("pending", "queued", "building", "running", "stopping", "stopped")
"""The phases of servers, in the lower case in which metrics have them."""

_RUNNING_S = (5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_SCHEDULING_S = (1, 5, 10, 30, 60, 120, 300)


class MonitorMetrics:
    """Counts, in a registry that it is given. Only the process that leads says anything."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"remuda_region_{name}", text, ["region", *labels], registry=registry)

        def histogram(name: str, text: str, buckets: tuple[int, ...]) -> Histogram:
            return Histogram(f"remuda_region_{name}", text, ["region"], buckets=buckets, registry=registry)

        self.servers = gauge("servers", "Servers by how they are.", "phase")
        self.drifted = gauge("servers_drifted", "Servers that are others at the provider than they were made.")
        self.scheduling = histogram("server_scheduling_seconds", "From create to being taken on.", _SCHEDULING_S)
        self.running = histogram("server_running_seconds", "From create to the first run.", _RUNNING_S)
        self.deletion = histogram("server_gone_seconds", "From the request to delete to being gone.", _RUNNING_S)
        self.orphans = gauge("orphans", "What a provider has of ours that is nobody's.", "subject")
        self.low = gauge("networks_low", "Networks of whose addresses few are free.")
        self.exhausted = gauge("networks_exhausted", "Networks without a free address.")
        self.low_free = gauge("networks_low_free_addresses", "Free addresses of all networks that run low.")
        self.flavors = gauge("flavor_free", "So many more servers fit.", "flavor")
        self.vlans_taken = gauge("vlans_taken", "VLANs that networks have.")
        self.vlans_free = gauge("vlans_free", "VLANs that are left.")
        self._offered: dict[str, set[str]] = {}

    def open(self, region: str) -> None:
        """Begin all metrics of a region at nought."""
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
        """Show how many orphans of each sort there are."""
        for subject in SUBJECTS:
            self.orphans.labels(region, subject).set(counts.get(subject, 0))

    def show_flavors(self, region: str, free: Mapping[str, int]) -> None:
        """Show how many more servers of each flavor fit, by its name; those no longer on offer are not shown."""
        for name in self._offered.get(region, set()) - free.keys():
            self.flavors.remove(region, name)
        for name, count in free.items():
            self.flavors.labels(region, name).set(count)
        self._offered[region] = set(free)

    def clear(self) -> None:
        """Show nothing that only the process knows that leads."""
        gauges = (self.servers, self.drifted, self.orphans, self.low, self.exhausted, self.low_free, self.flavors)
        for gauge in (*gauges, self.vlans_taken, self.vlans_free):
            gauge.clear()
        self._offered.clear()


_BREATH_S = 0.02


class ServerCounts:
    """Counts servers."""

    def __init__(self, store: Store, clock: Clock, metrics: MonitorMetrics, *, page: int = 500) -> None:
        """Take so many servers at a time."""
        self._store, self._clock, self._metrics, self._page = store, clock, metrics, page
        self._known: dict[str, str] = {}
        """How each server stands."""

    async def run(self) -> None:
        """Count all servers, then follow them for ever: a duty. Whoever has missed something counts anew."""
        while True:
            await self._forget_all()
            try:
                await self._follow(await self._take())
            except Gone:
                structlog.get_logger().info("census is taken anew")

    async def _take(self) -> str:
        """Count everything there is, and return the version from which to follow."""
        version = (await self._store.list_names(Server, limit=1)).version
        regions = [name async for name in names(self._store, Region)]
        for standing in _every(["", *regions]):
            async for page in self._standing(standing):
                self._know([name for name in page if self._known.get(name) != standing], standing)
        return version

    async def _standing(self, standing: str) -> AsyncIterator[Sequence[str]]:
        """Yield the names of all servers that stand so, page by page."""
        after: str | None = None
        while True:
            page = await self._store.list_names(Server, index=("standing", standing), limit=self._page, after=after)
            yield page.items
            after = page.next
            if after is None:
                return
            await self._clock.sleep(_BREATH_S)

    async def _follow(self, version: str) -> None:
        async for event in self._store.watch(Server, since=version):
            if isinstance(event, Change):
                self._notice(event)

    def _notice(self, change: Change[Server]) -> None:
        server = change.resource
        if change.type == "deleted":
            if self._forget(server.name):
                self._time(self._metrics.deletion, server, server.metadata.deletion_timestamp, self._clock.now())
            return
        before, after = self._known.get(server.name), status_summary(server)
        if before != after.text:
            self._know([server.name], after.text)
        if after.has_run and before is not None and not StatusSummary.of_text(before).has_run:
            created, status = server.metadata.creation_timestamp, server.status
            self._time(self._metrics.scheduling, server, created, status.scheduled_at)
            self._time(self._metrics.running, server, created, status.provisioned_at)

    def _know(self, moved: list[str], standing: str) -> None:
        """Take note of servers that stood otherwise, or are new."""
        counts = Counter(self._known[name] for name in moved if name in self._known)
        self._known |= dict.fromkeys(moved, standing)
        for before, count in counts.items():
            self._count(before, -count)
        if moved:
            self._count(standing, len(moved))

    def _forget(self, name: str) -> bool:
        standing = self._known.pop(name, None)
        if standing is not None:
            self._count(standing, -1)
        return standing is not None

    async def _forget_all(self) -> None:
        while self._known:
            some = [self._known.popitem()[1] for _ in range(min(self._page, len(self._known)))]
            for standing, count in Counter(some).items():
                self._count(standing, -count)
            await yield_to_loop()

    def _count(self, text: str, change: int) -> None:
        standing = StatusSummary.of_text(text)
        self._metrics.servers.labels(standing.region, standing.phase).inc(change)
        if standing.is_drifted:
            self._metrics.drifted.labels(standing.region).inc(change)

    def _time(self, histogram: Histogram, server: Server, began: datetime | None, ended: datetime | None) -> None:
        """Note how long something took; clocks that disagree about it say nothing."""
        if began is not None and ended is not None and ended >= began:
            histogram.labels(status_summary(server).region).observe((ended - began).total_seconds())


def _every(regions: list[str]) -> Iterator[str]:
    """Yield all ways in which servers of these regions can stand."""
    return (StatusSummary(*each).text for each in product(regions, PHASES, (False, True), (False, True)))


_PAGE = 100


@dataclass(slots=True, kw_only=True)
class CapacityMetrics:
    """Looks at what is left in one region."""

    store: Store
    metrics: MonitorMetrics
    pace: Pace
    low_share: float
    _low: set[str] = field(default_factory=set, init=False)
    """The networks that were told of."""

    async def measure(self, cloud: RegionProvider) -> None:
        """Look at everything once."""
        await self._look_at_vlans(cloud.region)
        await self._look_at_networks(cloud.region.name)
        free = {each.name: each.free for each in await cloud.provider.catalogue.flavors() if each.free is not None}
        self.metrics.show_flavors(cloud.region.name, free)

    async def _look_at_networks(self, region: str) -> None:
        low: dict[str, int] = {}
        after: str | None = None
        while True:
            page = await self.store.list(Network, labels={REGION: region}, limit=_PAGE, after=after)
            for network in page.items:
                size, free = await self._addresses(network)
                if free < self.low_share * size:
                    low[network.name] = free
                    self._tell(network.name, region, free)
            after = page.next
            if after is None:
                break
        self._low = set(low)
        self.metrics.low.labels(region).set(len(low))
        self.metrics.exhausted.labels(region).set(sum(not free for free in low.values()))
        self.metrics.low_free.labels(region).set(sum(low.values()))

    async def _addresses(self, network: Network) -> tuple[int, int]:
        """Return how many addresses a network has for servers, and how many of them are free."""
        taken = 0
        async for _ in names(self.store, Address, labels={NETWORK: network.name}):
            taken += 1
        await self.pace.step()
        size = len(plan_of(network).dhcp_pool)
        return size, max(0, size - taken)

    def _tell(self, network: str, region: str, free: int) -> None:
        if network not in self._low:
            structlog.get_logger().warning("network runs low on addresses", network=network, region=region, free=free)

    async def _look_at_vlans(self, region: Region) -> None:
        found = await find(self.store, VLANAllocation, vlans_name(region.spec.provider, region.name))
        if found is not None:
            taken = len(found.spec.allocations)
            self.metrics.vlans_taken.labels(region.name).set(taken)
            given = sum(map(len, segments_of(region)))
            self.metrics.vlans_free.labels(region.name).set(max(0, given - taken))
