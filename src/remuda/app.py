"""The one place where things are put together: which kinds there are, which APIs, and how they become one process."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from remuda.config import effect
from remuda.config.schema import Configuration, Server
from remuda.http.edge.health import PROCESS
from remuda.http.edge.mounts import Mounted
from remuda.http.routes import Table
from remuda.identity.api import TABLE as IDENTITY
from remuda.identity.assembly import IdentityApp
from remuda.identity.bootstrap import FirstStart, Welcome
from remuda.identity.credentials import CredentialsFile
from remuda.identity.federation.fetching import Fetcher, is_loopback
from remuda.identity.kinds import KINDS as IDENTITY_KINDS
from remuda.identity.ports import IdentityPorts
from remuda.identity.settings import IdentitySettings
from remuda.operations.kinds import OPERATION
from remuda.process import Assembled, Ground, Services, Settings
from remuda.reconcile.kinds import BREAKER, LEASE
from remuda.reconcile.metrics import PrometheusReporter
from remuda.store.kinds import Registry

__all__ = ["IDENTITY_PREFIX", "Published", "registry", "services", "settings", "tables"]

IDENTITY_PREFIX = "/identity"
"""Where identity is mounted."""


@dataclass(frozen=True, slots=True)
class Published:
    """A table, and where one process mounts it."""

    prefix: str
    """Such as `/compute`; empty for what has all the room."""
    table: Table


def registry() -> Registry:
    """Return every kind of every service. A service adds its kinds here when it comes."""
    return Registry([*IDENTITY_KINDS, OPERATION, LEASE, BREAKER])


def tables() -> Mapping[str, Published]:
    """Return the routes of the process and of every service, by name. A service adds its table here when it comes."""
    return {PROCESS.service: Published("", PROCESS), IDENTITY.service: Published(IDENTITY_PREFIX, IDENTITY)}


def settings(configuration: Configuration) -> Settings:
    """Return what the process is told."""
    server = configuration.server
    return Settings(data=server.data, listen=server.listen, patience=effect.patience(server))


def services(configuration: Configuration, tell: Callable[[Welcome], None]) -> Services:
    """Return what mounts every service. `tell` is called once in the life of a store: how to log in."""

    @asynccontextmanager
    async def begin(ground: Ground) -> AsyncIterator[Assembled]:
        async with _identity(ground, configuration, tell) as identity:
            yield Assembled(mounted=[Mounted(IDENTITY_PREFIX, identity.table, identity.api)], checks=[identity.check])

    return begin


@asynccontextmanager
async def _identity(
    ground: Ground, configuration: Configuration, tell: Callable[[Welcome], None]
) -> AsyncIterator[IdentityApp]:
    url = effect.public_url(configuration.server, ground.address)
    told = effect.identity_settings(configuration, url=url)
    async with _fetcher(told) as fetch:
        identity = IdentityApp(_identity_ports(ground, configuration.server, told, fetch))
        first = FirstStart(
            store=ground.store,
            clock=ground.clock,
            randomness=ground.randomness,
            aside=identity.ports.aside,
            tokens=identity.tokens.tokens,
            passwords=identity.passwords,
            settings=effect.bootstrap_settings(configuration),
            credentials=CredentialsFile(ground.data.credentials),
            endpoint=f"{url}{IDENTITY_PREFIX}",
        )
        try:
            await identity.tokens.keys.all()  # which do not open if they were sealed with other keys
            await identity.start()
            await first.run(tell)
            yield identity
        finally:
            await identity.stop()


@asynccontextmanager
async def _fetcher(told: IdentitySettings) -> AsyncIterator[Fetcher]:
    """Ask providers on this machine only where that is where we are reached, too: in development."""
    fetch = Fetcher(allow_loopback=is_loopback(urlsplit(told.issuer).hostname or ""))
    try:
        yield fetch
    finally:
        await fetch.close()


def _identity_ports(ground: Ground, server: Server, told: IdentitySettings, fetch: Fetcher) -> IdentityPorts:
    return IdentityPorts(
        store=ground.store,
        log=ground.store,
        clock=ground.clock,
        randomness=ground.randomness,
        sealer=ground.sealer,
        fetch=fetch,
        settings=told,
        metrics=ground.metrics,
        closing=ground.closing,
        reporter=PrometheusReporter(ground.metrics),
        rate=effect.rate_limit(server),
        api=effect.api_settings(server),
    )
