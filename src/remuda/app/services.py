"""Identity in a process: put together, started for the first time, and looked after."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from remuda.config import effect
from remuda.config.schema import Configuration, Server
from remuda.identity.app import IdentityApp
from remuda.identity.bootstrap import FirstStart, Welcome
from remuda.identity.credentials import CredentialsFile, SmallServer
from remuda.identity.federation.provider_client import Fetcher, is_loopback
from remuda.identity.ports import IdentityPorts
from remuda.identity.settings import IdentitySettings
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.process import Ground
from remuda.reconcile.reporter import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What an operator hears of a start."""

    welcome: Callable[[Welcome], None]
    """Once in the life of a store: how to log in."""
    lost: Callable[[Path], None]
    """That `credentials.json` is gone, or is none any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """What counts for all services of a process."""

    controllers: Reporter
    operations: OperationMetrics


@asynccontextmanager
async def begun_identity(
    ground: Ground,
    configuration: Configuration,
    tell: Telling,
    counting: Counting,
    *,
    url: str,
    endpoints: Mapping[str, str],
    small: SmallServer | None,
) -> AsyncIterator[IdentityApp]:
    """Run identity for as long as the block runs, in a process that clients reach at `url`.

    `endpoints`, the URL of each service, and `small` are for `credentials.json`.
    """
    told = effect.identity_settings(configuration, url=url)
    async with _fetcher(told) as fetch:
        identity = IdentityApp(_ports(ground, configuration.server, told, fetch, counting))
        first = FirstStart(
            store=ground.store,
            clock=ground.clock,
            randomness=ground.randomness,
            aside=identity.ports.aside,
            tokens=identity.tokens.tokens,
            passwords=identity.passwords,
            settings=effect.bootstrap_settings(configuration),
            credentials=CredentialsFile(ground.data.credentials),
            endpoint=endpoints["identity"],
            others=endpoints,
            small=small,
        )
        try:
            await identity.tokens.keys.all()  # which do not open if they were sealed with other keys
            await identity.start()
            await first.run(tell.welcome)
            if await first.has_lost_credentials():
                tell.lost(ground.data.credentials)
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


def _ports(ground: Ground, server: Server, told: IdentitySettings, fetch: Fetcher, counting: Counting) -> IdentityPorts:
    return IdentityPorts(
        store=ground.store,
        log=ground.store,
        clock=ground.clock,
        randomness=ground.randomness,
        sealer=ground.sealer,
        fetch=fetch,
        settings=told,
        metrics=ground.metrics,
        counts=counting.operations,
        closing=ground.closing,
        reporter=counting.controllers,
        rate=effect.rate_limit(server),
        api=effect.api_settings(server),
    )
