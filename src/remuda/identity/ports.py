"""What identity is given to work with."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from prometheus_client import CollectorRegistry

from remuda.http.api import ApiSettings
from remuda.http.ratelimit import RateLimit
from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.operations.metrics import Metrics as OperationMetrics
from remuda.operations.settings import OperationSettings
from remuda.reconcile.driver import DriverSettings, ReconcilePorts
from remuda.reconcile.leader import Alone, Leader
from remuda.reconcile.reporter import Reporter, Silent
from remuda.store.contract import Store
from remuda.store.logs import Log

__all__ = ["Aside", "Fetch", "Fetched", "IdentityPorts", "in_thread"]

T = TypeVar("T")


class Aside(Protocol):
    """Runs what would hold the loop for too long somewhere else, such as in a thread."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work returns."""
        ...


async def in_thread(work: Callable[[], T]) -> T:
    """Run it in a thread."""
    return await asyncio.to_thread(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer of somebody else's server."""

    status: int
    body: bytes


Fetch = Callable[[str, str, dict[str, str], bytes | None], Awaitable[Fetched]]
"""Asks somebody else's server: method, URL, headers, body. Raises Unavailable if it does not answer in time, or with
more than we read."""


@dataclass(frozen=True, kw_only=True)
class IdentityPorts:
    """Everything outside identity that it touches."""

    store: Store
    log: Log
    clock: Clock
    randomness: Randomness
    sealer: Sealer
    fetch: Fetch
    aside: Aside = in_thread
    settings: IdentitySettings = field(default_factory=IdentitySettings)
    watched: Store | None = None
    """What controllers read and watch, where that is not the store itself."""
    is_alone: bool = True
    """No other process uses this store."""
    leader: Leader = field(default_factory=Alone)
    reporter: Reporter = field(default_factory=Silent)
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)
    counts: OperationMetrics | None = None
    """What counts operations, where the services of a process share it."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process begins to stop: streams end by it."""
    rate: RateLimit = field(default_factory=RateLimit)
    api: ApiSettings = field(default_factory=ApiSettings)
    operations: OperationSettings = field(default_factory=OperationSettings)
    control: DriverSettings = field(default_factory=DriverSettings)

    @property
    def reconciling(self) -> ReconcilePorts:
        """What controllers are given."""
        return ReconcilePorts(
            store=self.watched or self.store,
            clock=self.clock,
            randomness=self.randomness,
            leader=self.leader,
            reporter=self.reporter,
            log=self.log,
        )
