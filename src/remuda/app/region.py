"""Region in a process: beside identity, which it reaches as any other process would, but without the network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from remuda.app.linking import identity_link
from remuda.app.services import Counting
from remuda.config import effect
from remuda.config.schema import Server
from remuda.identity.app import IdentityApp
from remuda.process import Ground
from remuda.region.app import RegionApp
from remuda.region.ports import Providers, RegionPorts
from remuda.region.settings import RegionSettings

_SERVICE = "unikorn-region"


@asynccontextmanager
async def begun_region(
    ground: Ground,
    server: Server,
    settings: RegionSettings,
    counting: Counting,
    *,
    identity: IdentityApp,
    providers: Providers,
) -> AsyncIterator[RegionApp]:
    """Run region for as long as the block runs."""
    region = RegionApp(
        RegionPorts(
            store=ground.store,
            log=ground.store,
            clock=ground.clock,
            randomness=ground.randomness,
            sealer=ground.sealer,
            authenticator=identity.authenticator,
            identity=identity_link(identity, _SERVICE),
            providers=providers,
            settings=settings,
            metrics=ground.metrics,
            counts=counting.operations,
            closing=ground.closing,
            reporter=counting.controllers,
            rate=effect.rate_limit(server),
            api=effect.api_settings(server),
        )
    )
    try:
        await region.start()
        yield region
    finally:
        await region.stop()
