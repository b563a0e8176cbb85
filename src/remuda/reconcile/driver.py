"""The driver: joins sources, queue and workers into a controller.

A reconciler is a function of a key and nothing else: it reads, does at most one effect, and returns a result. Whatever
it raises is contained, told in the log with all that is known, and to the world only as having failed. While the
process leads, sources and full scans fill the queue and workers empty it; when it no longer leads, all of that ends at
once. Every object is looked at when control begins or a source has missed something, those that are unsettled first,
and again now and then: such a scan must find nothing to do, and where it does, an event was lost, which is counted as
the bug it is.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from remuda.reconcile.controller import Passes, Reconcile
from remuda.reconcile.deletion_guard import Breaker
from remuda.reconcile.ports import DriverSettings, ReconcilePorts
from remuda.reconcile.reporter import tell
from remuda.reconcile.sources import Source
from remuda.reconcile.term import Term
from remuda.store.objects import Resource


class Driver:
    """One controller. Construct it, `start` it, and `stop` it before its store is closed."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        kind: type[Resource],
        ports: ReconcilePorts,
        sources: Sequence[Source[Any]] = (),
        breakers: Sequence[Breaker] = (),
        settings: DriverSettings | None = None,
    ) -> None:
        """Control objects of `kind`, whose names are the keys. Without sources it is woken by its own kind alone.

        What `breakers` have stopped is reported whenever control begins.
        """
        self.name = name
        self._kind = kind
        self._ports = ports
        self._sources = tuple(sources) or (Source(kind),)
        if not any(source.kind is kind for source in self._sources):
            raise ValueError(f"the sources of {name} must watch its own kind, {kind.__name__}, as well")
        self._breakers = tuple(breakers)
        self._settings = settings or DriverSettings()
        self._passes = Passes(name, reconcile, ports, self._settings)
        self._control: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        """Who starts or stops it waits for whoever does so already: of two at once, one would forget a task."""
        self._term: Term | None = None
        tell(ports.reporter.opened, name, depth=lambda: self.depth, oldest_s=self.oldest_s)

    @property
    def depth(self) -> int:
        """How many keys wait for a worker."""
        return self._term.queue.depth if self._term else 0

    @property
    def has_begun(self) -> bool:
        """It controls, and every object that cannot wait was handed out once."""
        return self._term is not None and self._term.scan.has_begun

    @property
    def is_quiet(self) -> bool:
        """It controls, what cannot wait was handed out once, and no key waits for a worker or is with one."""
        return self._term is not None and self._term.scan.has_begun and self._term.queue.is_quiet

    def oldest_s(self) -> float:
        """Return for how long the key that came first has waited for a worker."""
        return self._term.queue.oldest_s() if self._term else 0.0

    async def start(self) -> None:
        """Control whenever this process leads."""
        async with self._turn:
            if self._control is None:
                self._control = asyncio.create_task(self._lead(), name=f"driver {self.name}")

    async def stop(self) -> None:
        """End: passes under way may finish within the grace. If it is cancelled itself, call it again."""
        async with self._turn:
            if self._control is not None:
                self._control.cancel()
                await asyncio.gather(self._control, return_exceptions=True)
                self._control = None
            await self._end_term(grace_s=self._settings.grace_s)

    def wake(self, key: str) -> None:
        """Look at a key now, because something happened that no watch can tell, such as the end of a late call."""
        if self._term is not None:
            self._term.wake(key)

    async def scan(self) -> int:
        """Do a full scan now, as fast as workers go, and return how many keys were handed out."""
        return await self._term.scan.once("scan") if self._term else 0

    async def _lead(self) -> None:
        while True:
            await self._ports.leader.won()
            self._term = Term(self._kind, self._sources, self._passes, self._breakers)
            await self._ports.leader.lost()
            await self._end_term(grace_s=0)

    async def _end_term(self, *, grace_s: float) -> None:
        if self._term is not None:
            await self._term.end(grace_s=grace_s)
            self._term = None
