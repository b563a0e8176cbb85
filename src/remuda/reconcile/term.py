"""One term of control: from when a process leads until it no longer does, or is stopped."""

import asyncio
from collections.abc import Sequence
from typing import Any

from remuda.reconcile.passes import Passes
from remuda.reconcile.queue import Item, Queue, Rank
from remuda.reconcile.run import Cause
from remuda.reconcile.scans import Finds, Scan
from remuda.reconcile.sources import Source, Watcher
from remuda.reconcile.workers import Workers
from remuda.store.duties import Duties
from remuda.store.objects import Resource

__all__ = ["Term"]


class Term:
    """Sources and scans fill a queue, workers empty it. It begins when it is made."""

    def __init__(self, kind: type[Resource], sources: Sequence[Source[Any]], passes: Passes) -> None:
        ports, settings = passes.ports, passes.settings
        self.queue = Queue(ports.clock)
        self.scan = Scan(kind, ports.store, self.queue, ports.clock, settings.scan)
        self.has_begun = False
        """Every object was handed out once."""
        self._passes = passes
        self._finds = Finds(ports.reporter.scan_found)
        self._deaf = len(sources)
        """How many sources do not watch yet."""
        self._all_watch = asyncio.Event()
        self._duties = Duties(ports.clock)
        for source in sources:
            watcher = Watcher(source, ports.store, self._add, began=self._began)
            self._duties.start(f"{passes.name} watches {source.kind.__name__}", watcher.run)
        self._duties.start(f"{passes.name} scans", self._scan)
        self._workers = Workers(settings.workers, self.queue, self._look_after, name=passes.name)

    async def end(self, *, grace_s: float) -> None:
        """Stop control. Passes under way may finish within the grace; without one they are cancelled at once."""
        await self._workers.stop(grace_s=grace_s)
        await self._duties.stop()
        self._finds.close()

    def wake(self, key: str) -> None:
        """Look at a key that no source has named."""
        self._add(key, "event", Rank.ROUTINE)

    def _add(self, key: str, cause: Cause, rank: Rank) -> None:
        self._finds.explain(key)
        self.queue.add(key, cause, rank)

    def _began(self) -> None:
        self._deaf -= 1
        if not self._deaf:
            self._all_watch.set()

    async def _scan(self) -> None:
        """Look at everything once every change is heard of, and then now and then."""
        await self._all_watch.wait()
        ports, name = self._passes.ports, self._passes.name
        if not self.has_begun:
            await self.scan.once("start")
            self.has_begun = True
        await self.scan.now_and_then(ports.randomness, lambda keys: ports.reporter.scanned(name, keys))

    async def _look_after(self, key: str, item: Item) -> None:
        ports = self._passes.ports
        if not ports.leader.is_leading:
            self.queue.finish(key)  # whoever leads now looks at everything
            return
        run, began = self._passes.begin(key, item), ports.clock.monotonic()
        ending = await self._passes.perform(run, failures=self.queue.failures(key))
        came_again = self.queue.finish(key, again_s=ending.pause_s, has_failed=ending.has_failed)
        ports.reporter.finished(run, ending.outcome, ports.clock.monotonic() - began)
        if ending.has_failed:
            ports.reporter.retried(run, ending.pause_s or 0.0)
        if run.acted and item.cause == "scan" and item.was_idle and not came_again:
            self._finds.suspect(run)
