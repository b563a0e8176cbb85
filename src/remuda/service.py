"""What putting a service together always takes: its ports, its operations, its API, and whether it has begun."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from prometheus_client import CollectorRegistry

from remuda.http.api import ApiPorts, ApiSettings
from remuda.http.authentication import Authenticator
from remuda.http.idempotency import Idempotency
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.watch import WatchPorts
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.operations.reporter import Reporters, Timeline
from remuda.operations.runner import OperationSettings
from remuda.operations.saga import AnyBound, Sagas
from remuda.operations.service import Operations
from remuda.reconcile.controller import Driver
from remuda.reconcile.leader import Alone, Leader
from remuda.reconcile.ports import DriverSettings, ReconcilePorts
from remuda.reconcile.reporter import Reporter, Silent
from remuda.store.contract import Store
from remuda.store.logs import Log


@dataclass(frozen=True, kw_only=True)
class ServicePorts:
    """What every service is given. Each adds what it alone touches."""

    store: Store
    log: Log
    clock: Clock
    randomness: Randomness
    sealer: Sealer
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


def operations_of(ports: ServicePorts, sagas: Sequence[AnyBound]) -> Operations:
    """Return what carries out a service's operations, tells their timelines and counts them."""
    metrics = ports.counts or OperationMetrics(Sagas([]), ports.metrics)
    metrics.show(Sagas([each.saga for each in sagas]))
    return Operations(
        ports.store,
        sagas,
        clock=ports.clock,
        randomness=ports.randomness,
        reporter=Reporters(Timeline(), metrics),
        settings=ports.operations,
    )


def api_ports(ports: ServicePorts, authenticator: Authenticator, watches: WatchPorts, *, url: str) -> ApiPorts:
    """Return what a service's API is given; `url` is where clients reach it."""
    return ApiPorts(
        authenticator=authenticator,
        clock=ports.clock,
        randomness=ports.randomness,
        log=ports.log,
        sealer=ports.sealer,
        limiter=RateLimiter(ports.rate, ports.clock),
        idempotency=Idempotency(
            ports.log,
            clock=ports.clock,
            randomness=ports.randomness,
            time_limit_s=ports.api.time_limit_s,
            is_only_process=ports.is_alone,
        ),
        watch=watches,
        settings=replace(ports.api, url=url.rstrip("/")),
    )


def not_begun(drivers: Iterable[Driver]) -> Iterable[tuple[str, str]]:
    """Yield the controllers that speak against sending requests here."""
    for driver in drivers:
        if not driver.has_begun:
            yield driver.name, "It has not looked at everything yet: wait."
