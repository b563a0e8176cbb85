"""The monitor: looks at every region now and then, in the process that leads.

Each region has its own polls and searches, so that one whose provider does not answer holds up no other.

What an operator may set about the monitor.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from remuda.kernel.errors import Unavailable
from remuda.reconcile.leader import Pace, every, while_leading
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.sources import names
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider, need
from remuda.region.kinds.regions import Region
from remuda.region.kinds.servers import Server
from remuda.region.monitor.inventory import Owners
from remuda.region.monitor.metrics import CapacityMetrics, MonitorMetrics, ServerCounts
from remuda.region.monitor.orphans import OrphanSearch, orphan_guard
from remuda.region.monitor.poller import DigestStore, Poller, PollerPorts
from remuda.region.ports import RegionPorts
from remuda.region.servers.status import ServerObserver
from remuda.resources.conventions import REGION
from remuda.store.logs import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """How often, and how fast at most: a look at 100,000 servers is spread over hours."""

    interval: timedelta = timedelta(minutes=5)
    """From the end of a look to the beginning of the next."""
    initial_polls_per_s: float = 3.0
    """How many servers are looked at each second of which nothing is remembered."""
    checks_per_s: float = 10.0
    """How many things at a provider are held against our objects each second."""
    low_share: float = 0.1
    """A network of whose addresses a smaller share is free runs low."""


def new_monitor(ports: RegionPorts, providers: ProviderRegistry, wake: Callable[[str], None]) -> "Monitor":
    """Return the monitor of the region service; `wake` is that of the controller of servers."""
    told = ports.settings
    settings = MonitorSettings(
        interval=told.poll_idle,
        initial_polls_per_s=told.first_looks_per_s,
        checks_per_s=told.judged_per_s,
        low_share=told.addresses_low_percent / 100,
    )
    metrics = MonitorMetrics(ports.metrics)
    return Monitor(ports.reconcile_ports, ports.log, providers, wake, metrics=metrics, settings=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTasks:
    """What looks at one region."""

    poller: Poller
    orphans: OrphanSearch
    capacity: CapacityMetrics


class Monitor:
    """Looks at everything. Have `keep` done as a duty."""

    def __init__(
        self,
        ports: ReconcilePorts,
        log: Log,
        providers: ProviderRegistry,
        wake: Callable[[str], None],
        *,
        metrics: MonitorMetrics,
        settings: MonitorSettings | None = None,
    ) -> None:
        """Tell the controller of servers by `wake` whom to look after."""
        self._ports, self._providers, self._wake = ports, providers, wake
        self._metrics, self._settings = metrics, settings or MonitorSettings()
        self._owners = Owners(store=ports.store, log=log)
        self._looking = ServerObserver(store=ports.store, clock=ports.clock, providers=providers)
        self._breaker = orphan_guard(ports)

    async def run(self) -> None:
        """Look for ever, while this process leads: a duty."""
        await while_leading(self._ports.leader, self._lead)

    def region_tasks(self, region: str) -> RegionTasks:
        clock, settings, store = self._ports.clock, self._settings, self._ports.store
        polling = PollerPorts(
            observer=self._looking,
            enqueue=self._wake,
            digests=DigestStore(store, region),
            server_names=lambda: names(store, Server, labels={REGION: region}),
            clock=clock,
        )
        return RegionTasks(
            poller=Poller(polling, initial_polls_per_s=settings.initial_polls_per_s),
            orphans=OrphanSearch(
                ports=self._ports,
                owners=self._owners,
                guard=self._breaker,
                metrics=self._metrics,
                pace=Pace(clock, settings.checks_per_s),
                enqueue=self._wake,
            ),
            capacity=CapacityMetrics(
                store=store,
                metrics=self._metrics,
                pace=Pace(clock, settings.checks_per_s),
                low_share=settings.low_share,
            ),
        )

    async def _lead(self) -> None:
        await self._breaker.report()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(ServerCounts(self._ports.store, self._ports.clock, self._metrics).run())
                await self._find_regions(tasks)
        finally:
            self._metrics.clear()

    async def _find_regions(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to look at each region, as soon as there is one."""
        begun: set[str] = set()
        while True:
            for region in (await self._ports.store.list(Region)).items:
                if region.name not in begun and self._has_servers(region):
                    begun.add(region.name)
                    self._metrics.open(region.name)
                    for looking in self._looks(region.name):
                        tasks.create_task(looking)
            await self._ports.clock.sleep(self._settings.interval.total_seconds())

    def _has_servers(self, region: Region) -> bool:
        try:
            return self._providers.of_region(region).provider.servers is not None
        except Unavailable:  # another process has its provider
            return False

    def _looks(self, region: str) -> list[Coroutine[Any, Any, None]]:
        watch = self.region_tasks(region)

        async def poll(cloud: RegionProvider) -> None:
            await watch.poller.poll(need(cloud.provider.servers))

        return [
            watch.poller.run(),
            self._now_and_then(region, poll, at_once=True),  # nobody told what happened before
            self._now_and_then(region, watch.orphans.scan),
            self._now_and_then(region, watch.capacity.measure),
        ]

    async def _now_and_then(
        self, region: str, look: Callable[[RegionProvider], Awaitable[None]], *, at_once: bool = False
    ) -> None:
        async def once() -> None:
            await look(await self._providers.get(region))

        await every(self._settings.interval, self._ports.clock, once, at_once=at_once, region=region)
