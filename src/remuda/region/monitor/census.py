"""The census of servers: how many there are of each phase, and how long it takes them to come and to go.

It is taken once, and from then on follows what is written: so it costs nothing while nothing happens, and sees each
server come up and go exactly once. It is taken from an index, and reads no server. What is remembered of each is text,
at which the garbage collector does not look: it would hold the loop for tens of milliseconds.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from itertools import product

import structlog
from prometheus_client import Histogram

from remuda.kernel.clock import Clock, let_others_run
from remuda.kernel.errors import Gone
from remuda.reconcile.sources import names
from remuda.region.kinds.regions import Region
from remuda.region.kinds.servers import Server, standing_of
from remuda.region.kinds.standing import Standing
from remuda.region.monitor.metrics import PHASES, MonitorMetrics
from remuda.store.contract import Change, Store

_BREATH_S = 0.02


class Census:
    """Counts servers."""

    def __init__(self, store: Store, clock: Clock, metrics: MonitorMetrics, *, page: int = 500) -> None:
        """Take so many servers at a time."""
        self._store, self._clock, self._metrics, self._page = store, clock, metrics, page
        self._known: dict[str, str] = {}
        """How each server stands."""

    async def keep(self) -> None:
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
                self._time(self._metrics.gone, server, server.metadata.deletion_timestamp, self._clock.now())
            return
        before, after = self._known.get(server.name), standing_of(server)
        if before != after.text:
            self._know([server.name], after.text)
        if after.has_run and before is not None and not Standing.of_text(before).has_run:
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
            await let_others_run()

    def _count(self, text: str, change: int) -> None:
        standing = Standing.of_text(text)
        self._metrics.servers.labels(standing.region, standing.phase).inc(change)
        if standing.is_drifted:
            self._metrics.drifted.labels(standing.region).inc(change)

    def _time(self, histogram: Histogram, server: Server, began: datetime | None, ended: datetime | None) -> None:
        """Note how long something took; clocks that disagree about it say nothing."""
        if began is not None and ended is not None and ended >= began:
            histogram.labels(standing_of(server).region).observe((ended - began).total_seconds())


def _every(regions: list[str]) -> Iterator[str]:
    """Yield all ways in which servers of these regions can stand."""
    return (Standing(*each).text for each in product(regions, PHASES, (False, True), (False, True)))
