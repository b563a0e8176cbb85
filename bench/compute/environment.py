"""Compute as production puts it together, beside region and identity, over a simulated cloud, in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.bed import Bed
from bench.identity.client import Client
from bench.region.catalogue import FLAVOR, IMAGE
from bench.region.environment import TENANT, Environment
from bench.region.environment import housed as region_housed
from remuda.app.services import ServiceMetrics, run_compute
from remuda.compute.app import ComputeApp
from remuda.compute.settings import ComputeSettings
from remuda.config.schema import ServerConfig as ServerSection
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.operations.saga import Sagas
from remuda.process import prepare_interpreter
from remuda.store.readside.reader import ReaderSettings
from remuda.store.sqlite.store import SqlitePorts

__all__ = ["INSTANCES", "ComputeEnvironment", "housed"]

INSTANCES = "/api/v2/instances"
_UNLIMITED = 1_000_000_000
_BREATH_S = 0.002


class ComputeEnvironment:
    """Compute at work."""

    def __init__(self, region: Environment, compute: ComputeApp) -> None:
        self.region, self.compute, self.store = region, compute, region.store
        self.root = Client(compute.api, region.identity.root, prefix="")
        """A platform administrator."""

    async def instance(self, network: str, name: str) -> str:
        """Ask for an instance."""
        spec = {
            "organizationId": TENANT.id,
            "projectId": TENANT.project(0),
            "networkId": network,
            "flavorId": FLAVOR,
            "imageId": IMAGE,
        }
        reply = await self.root.post(INSTANCES, {"metadata": {"name": name}, "spec": spec})
        return str(reply.json["metadata"]["id"])

    async def settled(self) -> None:
        """Return when no controller has anything to do."""
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(_BREATH_S)
            await self.region.settled()
            quiet = quiet + 1 if all(driver.is_idle for driver in self.compute.running_controllers.values()) else 0


@asynccontextmanager
async def housed(
    bed: Bed,
    *,
    at: Path | None = None,
    is_new: bool = True,
    ports: SqlitePorts | None = None,
    cache_bytes: int = ReaderSettings.cache_bytes,
) -> AsyncIterator[ComputeEnvironment]:
    """Run all three services for the time of a block."""
    async with region_housed(bed, at=at, is_new=is_new, ports=ports, cache_bytes=cache_bytes) as region:
        setup = region.setup
        async with run_compute(
            setup,
            ServerSection(data=setup.data.path, rate_limit=_UNLIMITED),
            ComputeSettings(),
            ServiceMetrics(
                controllers=region.region.ports.reporter,
                operations=region.region.ports.operation_metrics or OperationMetrics(Sagas([]), setup.metrics),
            ),
            identity=region.identity.identity,
            region=region.region,
        ) as compute:
            environment = ComputeEnvironment(region, compute)
            await environment.settled()
            prepare_interpreter()  # as production does when all is built
            yield environment
