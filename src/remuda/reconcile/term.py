"""One term of control: from when a process leads until it no longer does, or is stopped."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from remuda.reconcile.controller import Passes
from remuda.reconcile.deletion_guard import Breaker
from remuda.reconcile.queue import Item, Queue, Rank
from remuda.reconcile.reporter import tell
from remuda.reconcile.resync import Finds, Scan
from remuda.reconcile.run import Cause, Run
from remuda.reconcile.sources import Source, Watcher
from remuda.reconcile.workers import Workers
from remuda.store.background import Duties
from remuda.store.objects import Resource


class Term:
    """Sources and scans fill a queue, workers empty it. It begins when it is made."""

    def __init__(
        self, kind: type[Resource], sources: Sequence[Source[Any]], passes: Passes, breakers: Sequence[Breaker]
    ) -> None:
        ports, settings, name = passes.ports, passes.settings, passes.name
        self.queue = Queue(ports.clock)
        self.scan = Scan(kind, ports.store, self.queue, ports.clock, settings.scan, self._scanned)
        self._passes = passes
        self._finds = Finds(self._found)
        self._deaf = set(range(len(sources)))
        """Which sources do not watch yet."""
        self._duties = Duties(ports.clock)
        for number, source in enumerate(sources):
            watcher = Watcher(source, ports.store, self._add, began=partial(self._hears, number))
            self._duties.start(f"{name} watches {source.kind.__name__}", watcher.run)
        self._duties.start(f"{name} scans", partial(self.scan.keep, ports.randomness))
        for breaker in breakers:
            self._duties.start(f"{name} reports its breaker", breaker.report)
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

    def _hears(self, number: int) -> None:
        """A source watches from now on: as soon as all do, look at everything, since what went before nobody told."""
        self._deaf.discard(number)
        if not self._deaf:
            self.scan.ask()

    def _scanned(self, keys: int) -> None:
        tell(self._passes.ports.reporter.scanned, self._passes.name, keys)

    def _found(self, run: Run) -> None:
        tell(self._passes.ports.reporter.scan_found, run)

    async def _look_after(self, key: str, item: Item) -> None:
        ports = self._passes.ports
        if not ports.leader.is_leading:
            self.queue.finish(key)  # whoever leads now looks at everything
            return
        run, began = self._passes.begin(key, item), ports.clock.monotonic()
        ending = await self._passes.perform(run, failures=self.queue.failures(key))
        came_again = self.queue.finish(key, again_s=ending.pause_s, has_failed=ending.has_failed)
        tell(ports.reporter.finished, run, ending.outcome, ports.clock.monotonic() - began)
        if ending.has_failed:
            tell(ports.reporter.retried, run, ending.pause_s or 0.0)
        if run.acted and item.cause == "scan" and item.was_idle and not came_again:
            self._finds.suspect(run)
