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
    async def services(environment: ProcessPorts) -> AsyncIterator[ProcessServices]:
        app = build(
            Ports(
                store=environment.store,
                log=environment.store,
                clock=environment.clock,
                randomness=environment.randomness,
                sealer=environment.sealer,
                metrics=environment.metrics,
                closing=environment.closing,
                reporter=PrometheusReporter(environment.metrics),
                pasture=pasture(environment),
                **ports,
            )
        )
        await app.start()
        try:
            yield ProcessServices(mounted=[Mounted(PREFIX, app.ports.table, app.api)], checks=[app.check])
        finally:
            await app.stop()

    return services
