"""Region in a process: beside identity, which it reaches as any other process would, but without the network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from remuda.access.principal import Principal
from remuda.app.identity import Counting
from remuda.config import effect
from remuda.config.schema import Server
from remuda.identity.api import TABLE as IDENTITY
from remuda.identity.assembly import IdentityApp
from remuda.links.identity import IdentityLink
from remuda.links.projects import watch_projects
from remuda.links.sending import Here
from remuda.process import Ground
from remuda.region.assembly import RegionApp
from remuda.region.ports import Providers, RegionPorts
from remuda.region.settings import RegionSettings

__all__ = ["begun_region"]

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
            identity=_link(identity, ground),
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


def _link(identity: IdentityApp, ground: Ground) -> IdentityLink:
    """Return region's way to identity: as a service with the rights that its account has there."""

    async def service() -> Principal:
        standing = await identity.service.rights.of_system(_SERVICE)
        return Principal(subject=_SERVICE, type="system", access=standing.access)

    return IdentityLink(
        send=Here(IDENTITY, identity.service),
        service=service,
        randomness=ground.randomness,
        watch=lambda: watch_projects(ground.store),
    )
