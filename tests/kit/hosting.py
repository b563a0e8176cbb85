"""The livery as a service of a real process, with its controllers: `process.run(..., services=hosted(pasture))`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from remuda.http.server.health import Mounted
from remuda.process import ProcessPorts, ProcessServices, Services
from remuda.reconcile.reporter import PrometheusReporter
from tests.example.app import build
from tests.example.pasture import Pasture
from tests.example.ports import Ports

PREFIX = "/livery"


def hosted(pasture: Callable[[ProcessPorts], Pasture], **ports: Any) -> Services:
    """Return what mounts the livery; `ports` are those of `Ports` that a test wants otherwise."""

    @asynccontextmanager
    async def services(ground: ProcessPorts) -> AsyncIterator[ProcessServices]:
        app = build(
            Ports(
                store=ground.store,
                log=ground.store,
                clock=ground.clock,
                randomness=ground.randomness,
                sealer=ground.sealer,
                metrics=ground.metrics,
                closing=ground.closing,
                reporter=PrometheusReporter(ground.metrics),
                pasture=pasture(ground),
                **ports,
            )
        )
        await app.start()
        try:
            yield ProcessServices(mounted=[Mounted(PREFIX, app.ports.table, app.api)], checks=[app.check])
        finally:
            await app.stop()

    return services
