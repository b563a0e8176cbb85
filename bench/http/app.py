"""The measured API as production puts it together: access log, metrics, trace, mount, rate limit, audit."""

import asyncio

from prometheus_client import CollectorRegistry

from bench.http.service import Service, Tokens, table
from bench.kinds import ORGANIZATION, PROJECT, SEALER, labels_of, name_of
from remuda.http.api import Api, ApiPorts
from remuda.http.asgi import ASGIApp
from remuda.http.failures import AuthenticationFailures
from remuda.http.idempotency import Idempotency
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.record_budget import RecordBudget
from remuda.http.server.access_log import AccessLog, Sink
from remuda.http.server.health import PROCESS, Mounted, Mounts, ProcessPages
from remuda.http.server.metrics import Metrics
from remuda.http.watch import WatchPorts
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.store.sqlite.store import SqliteStore
from remuda.version import describe

__all__ = ["PREFIX", "build", "machine_path", "organization_path", "project_path"]

PREFIX = "/bench"
"""Where it is mounted."""

_UNLIMITED = RateLimit(quota=1_000_000_000)
_UNLIMITED_BYTES = 1 << 50
_TIME_LIMIT_S = 30.0


def build(store: SqliteStore, sink: Sink, closing: asyncio.Event) -> tuple[ASGIApp, Metrics]:
    """Return the application and its meters. Its rate limit counts and never rejects."""
    clock, randomness, routes = SystemClock(), SystemRandomness(), table()
    ports = ApiPorts(
        authenticator=Tokens(),
        clock=clock,
        randomness=randomness,
        log=store,
        sealer=SEALER,
        limiter=RateLimiter(_UNLIMITED, clock),
        failures=AuthenticationFailures(_UNLIMITED, clock),
        idempotency=Idempotency(
            store, clock=clock, randomness=randomness, time_limit_s=_TIME_LIMIT_S, is_only_process=True
        ),
        watch=WatchPorts(clock=clock, closing=closing),
        records=RecordBudget(clock, _UNLIMITED_BYTES),
    )
    mounted = Mounted(PREFIX, routes, Api(routes, Service(store), ports))
    metrics = Metrics(CollectorRegistry(), [PROCESS, routes])
    pages = ProcessPages(description=describe(), checks=(), mounted=[mounted], limiter=RateLimiter(_UNLIMITED, clock))
    app = AccessLog(Mounts([mounted], pages), clock=clock, randomness=randomness, metrics=metrics, sink=sink)
    return app, metrics


def organization_path() -> str:
    """Return the path of the first organization's machines."""
    return f"{PREFIX}/api/v1/organizations/{labels_of(0, 1)[ORGANIZATION]}/machines"


def project_path(number: int, total: int) -> str:
    """Return the path of the machines in the project of one of them."""
    labels = labels_of(number, total)
    return f"{PREFIX}/api/v1/organizations/{labels[ORGANIZATION]}/projects/{labels[PROJECT]}/machines"


def machine_path(number: int, total: int) -> str:
    """Return the path of a machine."""
    return f"{project_path(number, total)}/{name_of(number)}"
