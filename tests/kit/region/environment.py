"""Region with identity beside it and simulated clouds behind it, built as in production.

::

    async def test_…(region: RegionEnvironment) -> None:
        network = await region.network()
        server = await region.server(network)
        await region.until(f"/api/v2/servers/{server}", "provisioned")

Every answer of both services is held against their documents and the wire contract. `region.root` is a client of a
platform administrator; `region.organization` and `region.project` are there to begin with.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from remuda.app import registry
from remuda.app.connector import Connector
from remuda.app.region_providers import OpenProvider, OpenRegion, RegionProviders
from remuda.app.services import identity_client
from remuda.http.api import ApiSettings
from remuda.http.ratelimit import RateLimit
from remuda.identity.app import IdentityApp
from remuda.identity.ports import IdentityPorts
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.catalogue import SimCatalogue, without_delays
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.region.app import TABLE, RegionApp
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.regions import Region, RegionSimulated, RegionSpec
from remuda.region.ports import ProviderChanges, RegionPorts
from remuda.region.settings import ConfiguredRegion, RegionSettings
from remuda.store.background import BackgroundTasks
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.certificates import certificate_proxies
from tests.kit.environment import run_inline
from tests.kit.identity.environment import ROOT, Carrying, IdentityEnvironment, expect
from tests.kit.identity.launch import settings as identity_settings
from tests.kit.identity.login import nobody_answers, nothing_published
from tests.kit.identity.service_credentials import certified
from tests.kit.region.resource_api import catalogues
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER, open_simulated

NORTH = region_id("sim-north")
SOUTH = region_id("sim-south")
STANDARD = "11111111-1111-1111-1111-111111111111"
"""A flavor that every simulated cloud has."""
UBUNTU = "33333333-3333-3333-3333-333333333333"
"""An image that every simulated cloud has."""
TIMEOUT_S = 120.0

T = TypeVar("T")
Opener = Callable[[SqliteStore], OpenRegion]
"""Returns what opens regions, for a store that has the credentials of tenancies."""


@dataclass(frozen=True)
class Clouds:
    """The simulated clouds, by the ids of their regions."""

    clouds: Mapping[str, SimulatedCloud] = field(default_factory=dict)

    added: RegionProviders | None = None
    """Providers of the regions that are added while the service runs."""

    def find(self, region: str) -> Provider | None:
        cloud = self.clouds.get(region)
        if cloud is not None:
            return cloud.provider
        return None if self.added is None else self.added.find(region)

    def all(self) -> Mapping[str, Provider]:
        return {region: cloud.provider for region, cloud in self.clouds.items()}

    def changes(self) -> ProviderChanges:
        return ProviderChanges() if self.added is None else self.added.changes()


@dataclass(frozen=True)
class LikeClouds:
    """Opener of clouds in memory, each like one of a catalogue."""

    catalogues: Mapping[str, SimCatalogue]
    clock: Clock
    randomness: Randomness

    async def open(self, region: Region) -> OpenProvider:
        assert region.spec.simulated is not None
        catalogue = replace(self.catalogues[region.spec.simulated.region], name=region.name)
        cloud = open_cloud(None, without_delays(catalogue), clock=self.clock, sealer=SEALER, randomness=self.randomness)
        await cloud.start()
        return OpenProvider(provider=cloud.provider, close=cloud.stop)


class RegionEnvironment:
    """Both services, and what a test needs to begin with."""

    def __init__(self, identity: IdentityEnvironment, app: RegionApp, clouds: Clouds) -> None:
        self.identity, self.app, self.clouds = identity, app, clouds
        self.store, self.clock = identity.store, identity.clock
        self.asgi = Validated(app.api, response_contract(TABLE))
        self.organization = self.project = ""

    @property
    def root(self) -> Client:
        """A platform administrator."""
        return self.client(self.identity.root)

    @property
    def north(self) -> SimulatedCloud:
        """The cloud of the region in which things are made unless a test says otherwise."""
        return self.clouds.clouds[NORTH]

    def client(self, token: str | None) -> Client:
        """Return the client of whoever has this token."""
        return Client(app=self.asgi, token=token)

    def service(self, name: str, **claim: Any) -> Client:
        """Return the client of a service that has a certificate; the claim says for whom it acts (`actor=…`)."""
        headers = certified(name, claim, impersonates=False, now=self.clock.now())
        return Client(app=Carrying(self.asgi, headers))

    async def network(self, name: str = "net", **spec: Any) -> str:
        """Make a network and return its id."""
        wanted = {
            "organizationId": self.organization,
            "projectId": self.project,
            "regionId": NORTH,
            "prefix": "10.0.0.0/16",
            "dnsNameservers": [],
        }
        return await self.made("/api/v2/networks", name, wanted | spec)

    async def server(self, network: str, name: str = "server", **spec: Any) -> str:
        """Make a server and return its id."""
        wanted = {"networkId": network, "flavorId": STANDARD, "imageId": UBUNTU}
        return await self.made("/api/v2/servers", name, wanted | spec)

    async def made(self, path: str, name: str, spec: Any) -> str:
        """Make something and return its id."""
        reply = await self.root.post(path, {"metadata": {"name": name}, "spec": spec})
        return str(expect(reply, 201)["metadata"]["id"])

    async def until(self, path: str, status: str) -> Any:
        """Wait until something has this provisioning status, and return it."""

        def has_it(reply: Reply) -> bool:
            return reply.status == 200 and reply.json["metadata"]["provisioningStatus"] == status

        return (await self._until(path, has_it, status)).json

    async def until_gone(self, path: str) -> None:
        """Wait until something is no longer there."""
        await self._until(path, lambda reply: reply.status == 404, "gone")

    async def _until(self, path: str, holds: Callable[[Reply], bool], what: str) -> Reply:
        deadline = self.clock.monotonic() + TIMEOUT_S
        while not holds(reply := await self.root.get(path)):
            assert self.clock.monotonic() < deadline, f"{path} is not {what} in {TIMEOUT_S:g} s: {reply.body.decode()}"
            await self.clock.sleep(0.05)
        return reply


def configured(names: Iterable[str]) -> tuple[ConfiguredRegion, ...]:
    """Return simulated regions by their names."""
    return tuple(
        ConfiguredRegion(name=name, spec=RegionSpec(provider="simulated", simulated=RegionSimulated(region=name)))
        for name in names
    )


def unwatched() -> RegionSettings:
    """Return what region is told where its own monitor is to leave everything to the test's."""
    return RegionSettings(regions=configured(catalogues()), poll_idle=timedelta(days=1000))


@asynccontextmanager
async def region_environment(
    store: SqliteStore,
    clock: Clock,
    randomness: Randomness,
    *,
    directory: Path | None,
    is_instant: bool,
    identity_ports: dict[str, Any],
    more: dict[str, Any],
    opener: Opener | None = None,
) -> AsyncIterator[RegionEnvironment]:
    """Run both services over a store, with other ports of identity, and others of region (`more`).

    The `opener` opens what is behind regions that are added; without one, simulated clouds.
    """
    api, rate = ApiSettings(certificates=certificate_proxies()), RateLimit(quota=10_000_000)
    common: dict[str, Any] = {
        "store": store,
        "log": store,
        "clock": clock,
        "randomness": randomness,
        "sealer": SEALER,
        "api": api,
        "rate": rate,
    }
    outbound: dict[str, Any] = {"fetch": nobody_answers, "find_txt": nothing_published, **common}
    identity = IdentityApp(IdentityPorts(settings=identity_settings(), **outbound | identity_ports))
    offered = catalogues()
    open_region = LikeClouds(offered, clock, randomness).open if opener is None else opener(store)
    providers = RegionProviders({}, open_region, store=store, clock=clock, randomness=randomness)
    clouds = Clouds(
        {
            region_id(name): open_cloud(
                None if directory is None else directory / f"{name}.db",
                without_delays(catalogue) if is_instant else catalogue,
                clock=clock,
                sealer=SEALER,
                randomness=randomness,
            )
            for name, catalogue in offered.items()
        },
        added=providers,
    )
    given: dict[str, Any] = {
        "authenticator": identity.authenticator,
        "identity": identity_client(identity, "unikorn-region"),
        "providers": clouds,
        "connector": Connector(catalogues=offered),
        "settings": RegionSettings(
            regions=configured(offered), absence_delay=timedelta(0) if is_instant else RegionSettings().absence_delay
        ),
    }
    app = RegionApp(RegionPorts(**common | given | more))
    for cloud in clouds.clouds.values():
        await cloud.start()
    background = BackgroundTasks(clock)
    background.start("providers of regions", providers.run)
    await identity.start()
    await app.start()
    try:
        region = RegionEnvironment(IdentityEnvironment(identity, store), app, clouds)
        region.identity.root = await region.identity.log_in(ROOT)
        region.organization = await region.identity.organization()
        region.project = await region.identity.project(region.organization)
        yield region
        region.asgi.assert_documented()
    finally:
        await app.stop()
        await identity.stop()
        await background.stop()
        await providers.close()
        for cloud in clouds.clouds.values():
            await cloud.stop()
        await store.close()


@asynccontextmanager
async def running(
    directory: Path, *, is_instant: bool = True, opener: Opener | None = None, **ports: Any
) -> AsyncIterator[RegionEnvironment]:
    """Run both services in real time for the time of a block; `ports` are those of `RegionPorts` to be otherwise."""
    store = open_store(directory / "remuda.db", registry(), SEALER)
    async with region_environment(
        store,
        SystemClock(),
        SystemRandomness(),
        directory=directory,
        is_instant=is_instant,
        identity_ports={},
        more=ports,
        opener=opener,
    ) as region:
        yield region


def run_region(
    scenario: Callable[[RegionEnvironment], Coroutine[Any, Any, None]],
    *,
    seed: int = 5,
    is_instant: bool = False,
    **ports: Any,
) -> None:
    """Run a scenario in simulated time; `ports` are those of `RegionPorts` that a test wants otherwise."""

    async def run(world: World) -> None:
        store = open_simulated(world, registry())
        async with region_environment(
            store,
            world.clock,
            world.randomness,
            directory=None,
            is_instant=is_instant,
            identity_ports={"run_blocking": run_inline},
            more={"run_blocking": run_inline} | ports,
        ) as region:
            await scenario(region)

    simulate(run, [seed])
