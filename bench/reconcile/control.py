"""A controller over machines that are as they should be: what it costs when there is nothing to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from bench.kinds import Machine
from remuda.reconcile.controller import Controller, Reconcile
from remuda.reconcile.lifecycle import Lifecycle
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.reporter import PrometheusReporter, ReconcileResult
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.reconcile.sources import Source, version_changed
from remuda.store.contract import Store

__all__ = ["Control", "controlled"]

_HELD = "bench.remuda/held"
_SETTLING_S = 0.01


class Control:
    """A driver that runs, and how far it is."""

    def __init__(self, driver: Controller, reporter: "_Counting") -> None:
        self.driver = driver
        self._reporter = reporter

    async def settle(self) -> None:
        """Wait until nothing is left to do."""
        while not self.driver.is_idle:  # noqa: ASYNC110  before anything is measured
            await asyncio.sleep(_SETTLING_S)

    def after(self, reconciles: int) -> asyncio.Event:
        """Return what will be set when so many reconciles more have ended."""
        return self._reporter.after(reconciles)


@asynccontextmanager
async def controlled(store: Store, *, by_lifecycle: bool = False) -> AsyncIterator[Control]:
    """Have every machine reconciled, at each change of it, while the block runs."""
    reporter = _Counting()
    ports = ReconcilePorts(store=store, reporter=reporter)
    reconcile = _lifecycle(ports) if by_lifecycle else _glance(store)
    source: Source[Any] = Source(Machine, when=version_changed)
    driver = Controller("bench", reconcile, kind=Machine, ports=ports, sources=[source])
    control = Control(driver, reporter)
    await driver.start()
    try:
        await control.settle()
        yield control
    finally:
        await driver.stop()


class _Counting(PrometheusReporter):
    """The metrics of production, and somebody who waits for a number of reconciles."""

    def __init__(self) -> None:
        super().__init__(CollectorRegistry())
        self._left = 0
        self._reached = asyncio.Event()

    def after(self, reconciles: int) -> asyncio.Event:
        self._left, self._reached = reconciles, asyncio.Event()
        return self._reached

    def finished(self, run: ReconcileContext, outcome: ReconcileResult, seconds: float) -> None:
        super().finished(run, outcome, seconds)
        self._left -= 1
        if not self._left:
            self._reached.set()


def _glance(store: Store) -> Reconcile:
    """Return the least a reconciler does: it reads, and finds all well."""

    async def glance(key: str, _run: ReconcileContext) -> Result:
        await store.get(Machine, key)
        return Done()

    return glance


def _lifecycle(ports: ReconcilePorts) -> Reconcile:
    """Return what controllers are made of: finalizer, conditions and deadline, with nothing to do."""

    async def all_well(_machine: Machine, _run: ReconcileContext) -> Result:
        return Done()

    return Lifecycle(Machine, provision=all_well, deprovision=all_well, finalizer=_HELD, ports=ports)
