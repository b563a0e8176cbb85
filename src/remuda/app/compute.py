"""Compute in a process: beside identity and region, which it reaches as from any other, but without the network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from remuda.app.linking import identity_link, region_link
from remuda.app.services import Counting
from remuda.compute.app import ComputeApp
from remuda.compute.ports import ComputePorts
from remuda.compute.settings import ComputeSettings
from remuda.config import effect
from remuda.config.schema import Server
from remuda.identity.app import IdentityApp
from remuda.process import Ground
from remuda.region.app import RegionApp

_SERVICE = "unikorn-compute"


@asynccontextmanager
async def begun_compute(
    ground: Ground,
    server: Server,
    settings: ComputeSettings,
    counting: Counting,
    *,
    identity: IdentityApp,
    region: RegionApp,
) -> AsyncIterator[ComputeApp]:
    """Run compute for as long as the block runs."""
    compute = ComputeApp(
        ComputePorts(
            store=ground.store,
            log=ground.store,
            clock=ground.clock,
            randomness=ground.randomness,
            sealer=ground.sealer,
            authenticator=identity.authenticator,
            identity=identity_link(identity, _SERVICE),
            region=region_link(identity, region, _SERVICE),
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
        await compute.start()
        yield compute
    finally:
        await compute.stop()
