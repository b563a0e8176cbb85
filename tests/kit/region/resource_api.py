"""One capacity of region for tests: its routes over a real store, on the simulated machine, with principals to order.

::

    def test_…() -> None:
        async def scenario(capacity: Resource[Nets]) -> None:
            await make_region(capacity.store)
            reply = await capacity.ask(member("ann@example.com", ORG, "region:networks:v2 CR")).post("/api/v2/…", {…})

        in_an_api(lambda world, store: Nets(providers=clouds_over(world, store, {REGION: …}), …), ROUTES, scenario)

Every answer is held against the document of those routes, and against the wire contract.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic

from prometheus_client import CollectorRegistry

from remuda.http.routes import AnyRoute
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.provider import Provider
from remuda.providers.metrics import CallMetrics
from remuda.providers.simulated.catalogue import SimCatalogue, load_catalogues
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.kinds import KINDS
from remuda.region.kinds.regions import Region, RegionOrganization, RegionSecurity, RegionSimulated, RegionSpec
from remuda.region.ports import ProviderChanges
from remuda.resources.conventions import NAME
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit import resource_api as common
from tests.kit.resource_api import (
    ORG,
    OTHER_ORG,
    PROJECT,
    ServiceT,
    everywhere,
    member,
    permission_set,
    rejection,
    run_resource_api,
    with_machinery,
)
from tests.kit.simulation.runner import World

__all__ = [
    "ORG",
    "OTHER_ORG",
    "OTHER_REGION",
    "PROJECT",
    "REGION",
    "RegionApi",
    "Setup",
    "catalogues",
    "clouds_over",
    "everywhere",
    "make_region",
    "member",
    "permission_set",
    "registry",
    "rejection",
    "run_region_api",
]

REGION = "c0000000-0000-4000-8000-000000000001"
OTHER_REGION = "c0000000-0000-4000-8000-000000000002"


def registry() -> Registry:
    """Return every kind that region needs."""
    return with_machinery(KINDS)


class RegionApi(common.ResourceApi[ServiceT], Generic[ServiceT]):
    """A capacity of region, mounted."""

    of = "region"


@dataclass(frozen=True)
class Setup:
    """Providers by the ids of their regions."""

    providers: Mapping[str, Provider] = field(default_factory=dict)

    def find(self, region: str) -> Provider | None:
        return self.providers.get(region)

    def all(self) -> Mapping[str, Provider]:
        return self.providers

    def changes(self) -> ProviderChanges:
        return ProviderChanges()


def clouds_over(
    world: World, store: Store, providers: Mapping[str, Provider], settings: CallSettings | None = None
) -> ProviderRegistry:
    """Return the clouds of some regions."""
    return ProviderRegistry(
        store,
        Setup(providers),
        clock=world.clock,
        randomness=world.randomness,
        settings=settings or CallSettings(),
        metrics=_metrics(),
    )


@cache
def _metrics() -> CallMetrics:
    """Return what counts all calls: to make it takes longer than most tests."""
    return CallMetrics(CollectorRegistry())


@cache
def catalogues() -> Mapping[str, SimCatalogue]:
    """Return the clouds that come with Remuda, which are read once."""
    return load_catalogues()


async def make_region(
    store: Store,
    name: str = REGION,
    *,
    called: str = "north",
    organizations: Iterable[str] = (),
    spec: RegionSpec | None = None,
) -> Region:
    """Store a region, which only these organizations may see if any are named."""
    wanted = spec or RegionSpec(
        provider="simulated",
        simulated=RegionSimulated(region=called),
        security=RegionSecurity(organizations=tuple(RegionOrganization(id=each) for each in organizations)),
    )
    return await store.create(Region(metadata=Metadata(name=name, labels={NAME: called}), spec=wanted))


def run_region_api(
    service: Callable[[World, SqliteStore], ServiceT],
    routes: Iterable[AnyRoute],
    scenario: Callable[[RegionApi[ServiceT]], Coroutine[Any, Any, None]],
    *,
    seeds: int = 1,
) -> None:
    """Run a scenario in simulated time on a store of its own."""
    run_resource_api(
        registry(), lambda world, store: RegionApi(world, store, service(world, store), routes), scenario, seeds=seeds
    )
