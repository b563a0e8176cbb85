"""The monitor and the recovery capacity over a region that runs: looks happen when a test says so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from remuda.http.api import Api
from remuda.http.routes import Table
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import Provider
from remuda.reconcile.ports import ReconcilePorts
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.orphans import Orphan
from remuda.region.monitor.inventory import Owners
from remuda.region.monitor.metrics import MonitorMetrics
from remuda.region.monitor.monitor import Monitor, RegionTasks
from remuda.region.monitor.orphans import orphan_guard
from remuda.region.networks.rules import network_handle, tenancy_of
from remuda.region.recovery.routes import ROUTES
from remuda.region.recovery.service import Recovery
from remuda.region.settings import RegionSettings
from remuda.resources.conventions import identity_of
from remuda.store.contract import Store
from remuda.store.logs import Log
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.region.environment import NORTH, RegionEnvironment
from tests.kit.resource_api import ByName, everywhere

QUICK = RegionSettings(initial_polls_per_second=1000, checks_per_second=100_000)
OPERATOR = everywhere("operator@example.com", "region:regions RU")


def monitor_over(
    ports: ReconcilePorts, log: Log, clouds: ProviderRegistry, registry: CollectorRegistry, wake: Callable[[str], None]
) -> Monitor:
    """Return a monitor that is quick, and whose first look is when a test says so."""
    return Monitor(ports, log, clouds, wake, metrics=MonitorMetrics(registry), settings=QUICK)


@dataclass
class Monitored:
    """A region, and what looks at it."""

    region: RegionEnvironment
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    woken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        ports = self.region.app.ports
        clouds = self.region.app.providers
        self.monitor = monitor_over(ports.reconcile_ports, ports.log, clouds, self.registry, self.woken.append)
        self.watch: RegionTasks = self.monitor.region_tasks(NORTH)
        self.recovery = Recovery(
            store=self.store,
            clock=ports.clock,
            providers=clouds,
            owners=Owners(store=self.store, log=ports.log),
            guard=orphan_guard(ports.reconcile_ports),
        )
        table = Table("region", title="Region", description="One capacity of it.", routes=ROUTES)
        self._api, self._contract = ByName(), response_contract(table)
        given = api_ports(self.region.store, self._api, clock=ports.clock, randomness=ports.randomness)
        self._app = Validated(Api(table, self.recovery, given), self._contract)

    @property
    def store(self) -> Store:
        """What is stored."""
        return self.region.store

    @property
    def provider(self) -> Provider:
        """The cloud itself, past all that we do about its calls."""
        return self.region.north.provider

    @property
    def operator(self) -> Client:
        """Who may recover things."""
        return self.asking(OPERATOR)

    def asking(self, principal: Any) -> Client:
        """Return the client of somebody."""
        token = principal.caller.replace("@", ".")
        self._api.known[token] = principal
        return Client(app=self._app, token=token, contract=self._contract)

    async def cloud(self) -> RegionProvider:
        """Return the region that is looked at."""
        return await self.region.app.providers.get(NORTH)

    async def look(self, times: int = 1) -> list[tuple[str, str]]:
        """Look for orphans some times, as far apart as the monitor does; return what is recorded, and why."""
        for _ in range(times):
            await self.region.clock.sleep(300)
            await self.watch.orphans.scan(await self.cloud())
        return sorted((each.spec.subject, each.spec.cause) for each in await self.orphans())

    async def orphans(self) -> list[Orphan]:
        """Return all records."""
        return list((await self.store.list(Orphan)).items)

    async def orphan(self, subject: str) -> str:
        """Return the id of the one record of such a thing."""
        (found,) = [each.name for each in await self.orphans() if each.spec.subject == subject]
        return found

    async def place(self, network: str) -> Handle:
        """Return where a network is at the cloud."""
        found = await self.store.get(Network, network)
        return network_handle(found, await self.store.get(Identity, identity_of(found)))

    async def tenancy(self, network: str) -> str:
        """Return the tenancy of a network."""
        found = await self.store.get(Network, network)
        return tenancy_of((await self.store.get(Identity, identity_of(found))).metadata)

    def sample(self, name: str, **labels: str) -> float | None:
        """Return a metric of the region."""
        return self.registry.get_sample_value(f"remuda_region_{name}", {"region": NORTH, **labels})

    async def settled(self, server: str) -> Any:
        """Wait until a server runs, and return it."""
        return await self.region.until(f"/api/v2/servers/{server}", "provisioned")
