"""What does the work in the regions of a process: simulated clouds, and Kubernetes clusters.

A simulated cloud is in a file of its own, apart from the store, as a real one would be elsewhere: who removes the store
finds its servers still there.

The screens of simulated servers, for a browser: what a server wrote to its console, and what it goes on to write.

A real cloud serves them itself, and so does a simulated one, but it has no address of its own: the process that runs it
shows them. Whoever has the address may look, for as long as its token is good: that cannot be guessed, and an address
that is wrong or too old is not there. There is nothing to be typed.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from remuda.http.api import Api
from remuda.http.responses import Page
from remuda.http.routes import Call, Nothing, Parameters, Route, Table
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.process import Ground
from remuda.providers.contract.common import id_in
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.catalogue import NOWHERE, Catalogue
from remuda.providers.simulated.console import SimConsoles
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.region.app import RegionApp
from remuda.region.catalogue.seed import region_id
from remuda.region.settings import ConfiguredRegion
from remuda.service import api_ports

CONSOLES_PREFIX = "/simulated"
"""Where they are mounted."""
CONSOLES_URL = f"{CONSOLES_PREFIX}/consoles"
"""Where all of them are; a cloud adds which one."""

_LINES = 2_000
_AGAIN_S = 2

Screens = Mapping[str, SimConsoles]
"""The consoles of simulated clouds, by the names of the clouds."""


class ScreenPath(Parameters, frozen=True):
    """Whose screen it is."""

    cloud: str
    server: str


class ScreenQuery(Parameters, frozen=True):
    """What lets one look."""

    token: str = ""


async def _show(screens: Screens, call: Call[ScreenPath, ScreenQuery, Nothing]) -> Page:
    consoles = screens.get(call.path.cloud)
    if consoles is None:
        return _closed()
    try:
        handle = consoles.seen_with(call.query.token, server=call.path.server)
        written = await consoles.console_output(handle, lines=_LINES)
    except NotFound:
        return _closed()
    return Page(_render("console.html", server=id_in(handle.name), written=written, again_s=_AGAIN_S))


def _closed() -> Page:
    return Page(_render("console_closed.html"), status=404)


def _render(name: str, **told: object) -> str:
    return _environment().get_template(name).render(title="Console", **told)


@cache
def _environment() -> Environment:
    loaders = ChoiceLoader([PackageLoader("remuda.app"), PackageLoader("remuda.http")])
    return Environment(loader=loaders, autoescape=True, undefined=StrictUndefined)


CONSOLES = Table(
    "simulated",
    title="Simulated clouds",
    description="What the simulated clouds show by themselves.",
    routes=[
        Route(
            method="GET",
            path="/consoles/{cloud}/{server}",
            name="show_console",
            summary="See the screen of a simulated server",
            scope="public",
            path_type=ScreenPath,
            query_type=ScreenQuery,
            answer_type=Page,
            page=True,
            handler=_show,
        )
    ],
)
"""What is mounted with `Screens`."""


def screens_api(region: RegionApp, screens: Screens, *, url: str) -> Api:
    """Return what shows them, beside the region that they are of, in a process that clients reach at `url`."""
    ports = region.ports
    return Api(CONSOLES, screens, api_ports(ports, ports.authenticator, region.watches, url=url + CONSOLES_PREFIX))


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
    from remuda.app.kubernetes import cluster_of  # noqa: PLC0415  its client is heavy, and most processes have no such region

    cluster = cluster_of(region.spec, clock=clock)
    assert cluster is not None, "the configuration has read its kubeconfig"
    open_ones.push_async_callback(cluster.close)
    return cluster.provider
