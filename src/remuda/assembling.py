"""What putting a service together always takes: its operations, the ports of its API, and whether it has begun."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from prometheus_client import CollectorRegistry

from remuda.http.api import ApiPorts, ApiSettings
from remuda.http.authentication import Authenticator
from remuda.http.idempotency import Idempotency
from remuda.http.lists.watch import WatchPorts
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.operations.metrics import Metrics as OperationMetrics
from remuda.operations.operations import Operations
from remuda.operations.registry import AnyBound, Sagas
from remuda.operations.reporter import Reporters, Timeline
from remuda.operations.settings import OperationSettings
from remuda.reconcile.driver import Driver
from remuda.store.contract import Store
from remuda.store.logs import Log

__all__ = ["ServicePorts", "api_ports", "not_begun", "operations_of"]


class ServicePorts(Protocol):
    """What every service is given."""

    @property
    def store(self) -> Store:
        """Where its objects are."""
        ...

    @property
    def log(self) -> Log:
        """Where it is kept what happened."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def randomness(self) -> Randomness:
        """Chance."""
        ...

    @property
    def sealer(self) -> Sealer:
        """What seals secrets."""
        ...

    @property
    def is_alone(self) -> bool:
        """No other process uses this store."""
        ...

    @property
    def metrics(self) -> CollectorRegistry:
        """Where it is counted."""
        ...

    @property
    def counts(self) -> OperationMetrics | None:
        """What counts operations, where the services of a process share it."""
        ...

    @property
    def rate(self) -> RateLimit:
        """How much a caller may ask."""
        ...

    @property
    def api(self) -> ApiSettings:
        """How requests are taken."""
        ...

    @property
    def operations(self) -> OperationSettings:
        """How operations are carried out."""
        ...


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
