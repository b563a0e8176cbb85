"""What does the work in the regions of a process: simulated clouds, and Kubernetes clusters.

A simulated cloud is in a file of its own, apart from the store, as a real one would be elsewhere: who removes the store
finds its servers still there.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from remuda.app.providers import CONSOLES_URL, Screens
from remuda.kernel.clock import Clock
from remuda.process import Ground
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.catalogue import NOWHERE, Catalogue
from remuda.providers.simulated.console import SimConsoles
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.region.catalogue.seed import region_id
from remuda.region.settings import ConfiguredRegion


@dataclass(frozen=True, slots=True)
class OpenClouds:
    """The providers, by the ids of their regions. It is region's `Providers`."""

    providers: Mapping[str, Provider]
    screens: Screens = field(default_factory=dict)
    """The consoles of the simulated ones."""

    def find(self, region: str) -> Provider | None:
        """Return what does the work in a region, or None if nothing is set up for it."""
        return self.providers.get(region)

    def all(self) -> Iterable[Provider]:
        """Return all of them."""
        return self.providers.values()


@asynccontextmanager
async def opened_clouds(
    ground: Ground, regions: Iterable[ConfiguredRegion], catalogues: Mapping[str, Catalogue], *, url: str
) -> AsyncIterator[OpenClouds]:
    """Open what is behind the regions, for as long as the block runs, in a process that clients reach at `url`.

    `catalogues` are the simulated ones, by name.
    """
    providers: dict[str, Provider] = {}
    screens: dict[str, SimConsoles] = {}
    async with AsyncExitStack() as open_ones:
        for region in regions:
            found = catalogues.get(region.name)
            if found is not None:
                cloud = await _simulated(ground, found, url, open_ones)
                providers[region_id(region.name)], screens[found.name] = cloud.provider, cloud.consoles
            elif region.spec.kubernetes is not None:
                providers[region_id(region.name)] = _cluster(region, ground.clock, open_ones)
        yield OpenClouds(providers, screens)


async def _simulated(ground: Ground, catalogue: Catalogue, url: str, open_ones: AsyncExitStack) -> SimulatedCloud:
    path = ground.data.clouds / f"{catalogue.name}.db"
    if catalogue.console_url == NOWHERE:
        catalogue = replace(catalogue, console_url=url + CONSOLES_URL)
    cloud = open_cloud(path, catalogue, clock=ground.clock, randomness=ground.randomness)
    open_ones.push_async_callback(cloud.stop)
    await cloud.start()
    return cloud


def _cluster(region: ConfiguredRegion, clock: Clock, open_ones: AsyncExitStack) -> Provider:
    from remuda.region.catalogue.clusters import cluster_of  # noqa: PLC0415  heavy, and most have no such region

    cluster = cluster_of(region.spec, clock=clock)
    assert cluster is not None, "the configuration has read its kubeconfig"
    open_ones.push_async_callback(cluster.close)
    return cluster.provider
