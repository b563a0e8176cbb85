"""Monitor of all regions, in the leading process. Each region has its own tasks, so none delays another."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from remuda.kernel.errors import Unavailable
from remuda.reconcile.leader import Pace, every, while_leading
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.sources import names
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider, require
from remuda.region.kinds.regions import Region
from remuda.region.kinds.servers import Server
from remuda.region.monitor.inventory import Owners
from remuda.region.monitor.metrics import CapacityMetrics, MonitorMetrics, ServerCounts
from remuda.region.monitor.orphans import OrphanSearch, orphan_guard
from remuda.region.monitor.poller import DigestStore, Poller, PollerPorts
from remuda.region.ports import RegionPorts
from remuda.region.servers.status import ServerObserver
from remuda.region.settings import RegionSettings
from remuda.resources.conventions import REGION
from remuda.store.logs import Log


def new_monitor(ports: RegionPorts, providers: ProviderRegistry, enqueue: Callable[[str], None]) -> "Monitor":
    """Return the monitor of the region service; `enqueue` is that of the server controller."""
    metrics = MonitorMetrics(ports.metrics)
    return Monitor(ports.reconcile_ports, ports.log, providers, enqueue, metrics=metrics, settings=ports.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTasks:
    """Tasks of one region."""

    poller: Poller
    orphans: OrphanSearch
    capacity: CapacityMetrics


class Monitor:
    """Comparison of stored state with the state at all providers."""

    def __init__(
        self,
        ports: ReconcilePorts,
        log: Log,
        providers: ProviderRegistry,
        enqueue: Callable[[str], None],
        *,
        metrics: MonitorMetrics,
        settings: RegionSettings,
    ) -> None:
        """Call `enqueue` with each server that its controller has to reconcile."""
        self._ports, self._providers, self._enqueue = ports, providers, enqueue
        self._metrics, self._settings = metrics, settings
        self._owners = Owners(store=ports.store, log=log)
        self._observer = ServerObserver(store=ports.store, clock=ports.clock, providers=providers)
        self._guard = orphan_guard(ports)

    async def run(self) -> None:
        """Run while this process leads, until cancelled."""
        await while_leading(self._ports.leader, self._lead)

    def region_tasks(self, region: str) -> RegionTasks:
        clock, settings, store = self._ports.clock, self._settings, self._ports.store
        polling = PollerPorts(
            observer=self._observer,
            enqueue=self._enqueue,
            digests=DigestStore(store, region),
            server_names=lambda: names(store, Server, labels={REGION: region}),
            clock=clock,
        )
        return RegionTasks(
            poller=Poller(polling, initial_polls_per_s=settings.initial_polls_per_second),
            orphans=OrphanSearch(
                ports=self._ports,
                owners=self._owners,
                guard=self._guard,
                metrics=self._metrics,
                pace=Pace(clock, settings.checks_per_second),
                enqueue=self._enqueue,
            ),
            capacity=CapacityMetrics(
                store=store,
                metrics=self._metrics,
                pace=Pace(clock, settings.checks_per_second),
                low_share=settings.addresses_low_percent / 100,
            ),
        )

    async def _lead(self) -> None:
        await self._guard.report()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(ServerCounts(self._ports.store, self._ports.clock, self._metrics).run())
                await self._start_regions(tasks)
        finally:
            self._metrics.clear()

    async def _start_regions(self, tasks: asyncio.TaskGroup) -> None:
        """Start the tasks of each region when its provider is first there, and cancel them when the region is gone."""
        started: dict[str, Sequence[asyncio.Task[None]]] = {}
        changes = self._providers.changes()
        while True:
            regions = {region.name: region for region in (await self._ports.store.list(Region)).items}
            for name in started.keys() - regions.keys():
                for task in started.pop(name):
                    task.cancel()
            for name, region in regions.items():
                if name not in started and self._has_servers(region):
                    self._metrics.open(name)
                    started[name] = [tasks.create_task(task) for task in self._tasks_of(name)]
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.poll_idle.total_seconds()):
                    await anext(changes)

    def _has_servers(self, region: Region) -> bool:
        try:
            return self._providers.of_region(region).provider.servers is not None
        except Unavailable:  # its provider is configured in another process
            return False

    def _tasks_of(self, region: str) -> list[Coroutine[Any, Any, None]]:
        found = self.region_tasks(region)

        async def poll(cloud: RegionProvider) -> None:
            await found.poller.poll(require(cloud.provider.servers))

        return [
            found.poller.run(),
            self._repeat(region, poll, at_once=True),  # events before the start were missed
            self._repeat(region, found.orphans.scan),
            self._repeat(region, found.capacity.measure),
        ]

    async def _repeat(
        self, region: str, task: Callable[[RegionProvider], Awaitable[None]], *, at_once: bool = False
    ) -> None:
        async def once() -> None:
            await task(await self._providers.get(region))

        await every(self._settings.poll_idle, self._ports.clock, once, at_once=at_once, region=region)
