"""What region is given to work with.

Of identity it knows this port and nothing else. It speaks for the region service: each call is made with that service's
own right, for whoever pays.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import CollectorRegistry

from remuda.charging.ports import Ledger, Place, ProjectSeen
from remuda.http.api import ApiSettings
from remuda.http.authentication import Authenticator
from remuda.http.ratelimit import RateLimit
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.operations.metrics import Metrics as OperationMetrics
from remuda.operations.settings import OperationSettings
from remuda.outbound.guarded import Guarded
from remuda.providers.contract.provider import Provider
from remuda.reconcile.driver import DriverSettings, ReconcilePorts
from remuda.reconcile.leader import Alone, Leader
from remuda.reconcile.reporter import Reporter, Silent
from remuda.reconcile.scans import ScanSettings
from remuda.region.settings import RegionSettings
from remuda.store.contract import Store
from remuda.store.logs import Log

__all__ = ["IdentityPort", "Providers", "RegionPorts"]


class IdentityPort(Ledger, Protocol):
    """What region asks of identity."""

    async def refer(self, place: Place, reference: str) -> None:
        """Keep a project from going. Raises NotFound if there is none, Malformed if it is being deleted."""
        ...

    async def unrefer(self, place: Place, reference: str) -> None:
        """Keep a project no longer; one that is not there is fine."""
        ...

    def projects(self) -> AsyncGenerator[ProjectSeen]:
        """Yield every project there is, then each that changes, without end; all again where changes do not tell."""
        ...


class Providers(Protocol):
    """Where the providers of regions come from."""

    def find(self, region: str) -> Provider | None:
        """Return what does the work in a region, or None if nothing is set up for it."""
        ...

    def all(self) -> Iterable[Provider]:
        """Return all of them."""
        ...


@dataclass(frozen=True, kw_only=True)
class RegionPorts:
    """Everything outside region that it touches."""

    store: Store
    log: Log
    clock: Clock
    randomness: Randomness
    sealer: Sealer
    authenticator: Authenticator
    identity: IdentityPort
    providers: Providers
    web: Guarded | None = None
    """The way to the servers from which images are imported, where it is not the usual one."""
    settings: RegionSettings = field(default_factory=RegionSettings)
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
    control: DriverSettings = field(default_factory=lambda: DriverSettings(scan=ScanSettings(keys_per_s=4.0)))
    """A full scan of 100,000 servers takes hours, and so next to nothing."""

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
