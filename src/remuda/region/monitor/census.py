"""The census of servers: how many there are of each phase, and how long it takes them to come and to go.

It is taken once, and from then on follows what is written: so it costs nothing while nothing happens, and sees each
server come up and go exactly once.
"""

from datetime import datetime
from typing import NamedTuple

import structlog
from prometheus_client import Histogram

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone
from remuda.region.kinds.servers import Server
from remuda.region.monitor.metrics import MonitorMetrics
from remuda.region.servers.drifting import is_drifted
from remuda.resources.regional import REGION
from remuda.store.contract import Change, Store

__all__ = ["Census"]

_PAGE = 200
_BREATH_S = 0.1


class _Entry(NamedTuple):
    """What is remembered of a server."""

    region: str
    phase: str
    has_run: bool
    is_drifted: bool


class Census:
    """Counts servers."""

    def __init__(self, store: Store, clock: Clock, metrics: MonitorMetrics) -> None:
        self._store, self._clock, self._metrics = store, clock, metrics
        self._known: dict[str, _Entry] = {}

    async def keep(self) -> None:
        """Count all servers, then follow them for ever: a duty. Whoever has missed something counts anew."""
        while True:
            for name in list(self._known):
                self._forget(name)
            try:
                await self._follow(await self._take())
            except Gone:
                structlog.get_logger().info("census is taken anew")

    async def _take(self) -> str:
        """Count everything there is, and return the version from which to follow."""
        page = await self._store.list(Server, limit=_PAGE)
        version = page.version
        while True:
            for server in page.items:
                self._know(server)
            if page.next is None:
                return version
            await self._clock.sleep(_BREATH_S)
            page = await self._store.list(Server, limit=_PAGE, after=page.next)

    async def _follow(self, version: str) -> None:
        async for event in self._store.watch(Server, since=version):
            if isinstance(event, Change):
                self._notice(event)

    def _notice(self, change: Change[Server]) -> None:
        server = change.resource
        if change.type == "deleted":
            if self._forget(server.name):
                self._time(self._metrics.gone, server, server.metadata.deletion_timestamp, self._clock.now())
            return
        before = self._known.get(server.name)
        after = self._know(server)
        if after.has_run and before is not None and not before.has_run:
            created, status = server.metadata.creation_timestamp, server.status
            self._time(self._metrics.scheduling, server, created, status.scheduled_at)
            self._time(self._metrics.running, server, created, status.provisioned_at)

    def _know(self, server: Server) -> _Entry:
        entry = _Entry(
            region=_region_of(server),
            phase=(server.status.phase or "Pending").lower(),
            has_run=server.status.provisioned_at is not None,
            is_drifted=is_drifted(server),
        )
        if self._known.get(server.name) != entry:
            self._forget(server.name)
            self._known[server.name] = entry
            self._count(entry, 1)
        return entry

    def _forget(self, name: str) -> bool:
        entry = self._known.pop(name, None)
        if entry is not None:
            self._count(entry, -1)
        return entry is not None

    def _count(self, entry: _Entry, change: int) -> None:
        self._metrics.servers.labels(entry.region, entry.phase).inc(change)
        if entry.is_drifted:
            self._metrics.drifted.labels(entry.region).inc(change)

    def _time(self, histogram: Histogram, server: Server, began: datetime | None, ended: datetime | None) -> None:
        """Note how long something took; clocks that disagree about it say nothing."""
        if began is not None and ended is not None and ended >= began:
            histogram.labels(_region_of(server)).observe((ended - began).total_seconds())


def _region_of(server: Server) -> str:
    return server.metadata.labels.get(REGION, "")
