"""Region as production puts it together, beside identity and over a simulated cloud, in this process.

The cloud is in a file of its own, and nothing in it takes time; nor does it wait for the disk, as the limit of what we
do ourselves would be hidden behind what it does.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from bench.bed import Bed
from bench.identity.client import Client
from bench.identity.environment import Environment as IdentityEnvironment
from bench.identity.environment import housed as identity_housed
from bench.identity.tenants import Tenant
from bench.kinds import SEALER
from bench.region.catalogue import CLOUD, FLAVOR, IMAGE, roomy
from remuda.app import registry
from remuda.app.services import ServiceMetrics, run_region
from remuda.config.schema import ServerConfig as ServerSection
from remuda.datadir import DataDirectory
from remuda.http.record_budget import RecordBudget
from remuda.http.server.server import ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.operations.saga import Sagas
from remuda.process import ProcessPorts, prepare_interpreter
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.reconcile.reporter import PrometheusReporter
from remuda.region.app import RegionApp
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.networks import Identity
from remuda.region.kinds.regions import RegionSimulated, RegionSpec
from remuda.region.ports import NoConnector, ProviderChanges
from remuda.region.settings import ConfiguredRegion, RegionSettings
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite.store import SqlitePorts, SqliteSettings, SqliteStore, open_store

__all__ = ["REGION", "TENANT", "Environment", "cloud_file", "housed"]

REGION = region_id(CLOUD)
"""The only region."""
TENANT = Tenant(0, members=1, projects=1)
"""In whose only project everything is made."""

_UNLIMITED = 1_000_000_000
_UNLIMITED_BYTES = 1 << 50
_QUOTAS = {"quotas": [{"kind": kind, "quantity": 1_000_000} for kind in ("networks", "servers")]}
_BREATH_S = 0.002


class Environment:
    """Region at work."""

    def __init__(
        self, identity: IdentityEnvironment, region: RegionApp, cloud: SimulatedCloud, setup: ProcessPorts
    ) -> None:
        self.identity, self.region, self.cloud, self.setup = identity, region, cloud, setup
        self.store = identity.store
        self.root = Client(region.api, identity.root, prefix="")
        """A platform administrator."""

    async def networks(self, count: int) -> list[str]:
        """Make networks, and wait until they are there."""
        made = [await self._network(number) for number in range(count)]
        await self.settled()
        return made

    async def _network(self, number: int) -> str:
        spec = {
            "organizationId": TENANT.id,
            "projectId": TENANT.project(0),
            "regionId": REGION,
            "prefix": "10.0.0.0/16",
            "dnsNameservers": [],
        }
        reply = await self.root.post("/api/v2/networks", {"metadata": {"name": f"net-{number}"}, "spec": spec})
        return str(reply.json["metadata"]["id"])

    async def server(self, network: str, name: str) -> str:
        """Ask for a server."""
        spec = {"networkId": network, "flavorId": FLAVOR, "imageId": IMAGE}
        reply = await self.root.post("/api/v2/servers", {"metadata": {"name": name}, "spec": spec})
        return str(reply.json["metadata"]["id"])

    async def end_project(self) -> None:
        """Delete the project, and wait until nothing of it is left."""
        await self.identity.client(self.identity.root).delete(
            f"/api/v1/organizations/{TENANT.id}/projects/{TENANT.project(0)}"
        )
        while (await self.store.list_names(Identity, limit=1)).items:  # noqa: ASYNC110  as in `settled`
            await asyncio.sleep(_BREATH_S * 10)

    async def settled(self) -> None:
        """Return when no controller has anything to do."""
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(_BREATH_S)
            quiet = quiet + 1 if all(driver.is_idle for driver in self.region.running_controllers.values()) else 0


@dataclass(frozen=True)
class _OneProvider:
    """The provider of the one region."""

    provider: Provider

    def find(self, region: str) -> Provider | None:
        return self.provider if region == REGION else None

    def all(self) -> Mapping[str, Provider]:
        return {REGION: self.provider}

    def changes(self) -> ProviderChanges:
        return ProviderChanges()


@asynccontextmanager
async def housed(
    bed: Bed,
    *,
    at: Path | None = None,
    is_new: bool = True,
    ports: SqlitePorts | None = None,
    cache_bytes: int = ReaderSettings.cache_bytes,
) -> AsyncIterator[Environment]:
    """Run identity and region for the time of a block, on the files in a directory; if it `is_new`, it is furnished."""
    directory = at or bed.directory(bed.fresh().stem)
    clock, randomness = SystemClock(), SystemRandomness()
    store = _opened(DataDirectory(directory).store, ports, cache_bytes)
    cloud = open_cloud(cloud_file(directory), roomy(), clock=clock, sealer=SEALER, randomness=randomness)
    await cloud.start()
    async with identity_housed(bed, *([TENANT] if is_new else []), store=store) as identity:
        metrics = CollectorRegistry()
        setup = ProcessPorts(
            store=store,
            clock=clock,
            randomness=randomness,
            sealer=SEALER,
            metrics=metrics,
            record_budget=RecordBudget(clock, _UNLIMITED_BYTES),
            closing=asyncio.Event(),
            address=ListenAddress("127.0.0.1", 0),
            data=DataDirectory(directory),
        )
        async with run_region(
            setup,
            ServerSection(data=directory, rate_limit=_UNLIMITED),
            RegionSettings(regions=(ConfiguredRegion(name=CLOUD, spec=_SPEC),)),
            ServiceMetrics(controllers=PrometheusReporter(metrics), operations=OperationMetrics(Sagas([]), metrics)),
            identity=identity.identity,
            providers=_OneProvider(cloud.provider),
            connector=NoConnector(),
        ) as region:
            environment = Environment(identity, region, cloud, setup)
            if is_new:
                await environment.identity.client(identity.root).put(
                    f"/api/v1/organizations/{TENANT.id}/quotas", _QUOTAS
                )
            await environment.settled()
            prepare_interpreter()
            yield environment
    await cloud.stop()


_SPEC = RegionSpec(provider="simulated", simulated=RegionSimulated(CLOUD))


def cloud_file(directory: Path) -> Path:
    """Return the file of the cloud in a directory."""
    return DataDirectory(directory).clouds / f"{CLOUD}.db"


def _opened(path: Path, ports: SqlitePorts | None, cache_bytes: int) -> SqliteStore:
    reader = ReaderSettings(cache_bytes=cache_bytes, bookmark_interval_s=3_600)
    settings = SqliteSettings(reader=reader, maintenance=MaintenanceSettings(interval_s=3_600))
    return open_store(path, registry(), SEALER, ports=ports, settings=settings)
