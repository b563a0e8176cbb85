"""Providers of a process, simulated clouds and Kubernetes clusters, and the screens of simulated servers.

A simulated cloud has a file of its own: deleting the store leaves its servers in place, as in a real cloud. It has no
address of its own, so the process shows the console output of its servers, to clients that have a valid token.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from remuda.app.connector import Connector
from remuda.app.region_providers import OpenProvider, RegionProviders
from remuda.http.api import Api
from remuda.http.responses import HtmlPage
from remuda.http.routes import Call, Route, Table
from remuda.http.schema import Nothing, Parameters
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound, Unavailable
from remuda.outbound.addresses import SystemResolver
from remuda.process import ProcessPorts
from remuda.providers.contract.common import id_in
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.catalogue import DEFAULT_CONSOLE_URL, SimCatalogue
from remuda.providers.simulated.console import ConsoleSession, SimConsoles
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.region.app import RegionApp
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.regions import Region
from remuda.region.ports import RegionConnector
from remuda.region.settings import ConfiguredRegion, RegionSettings
from remuda.service import api_ports
from remuda.store.background import BackgroundTasks

if TYPE_CHECKING:
    from remuda.app.openstack import OpenStackRegions

CONSOLES_PREFIX = "/simulated"
CONSOLES_URL = f"{CONSOLES_PREFIX}/consoles"
"""Path of all screens; a cloud appends its own name."""

_LINES = 2_000
_REFRESH_S = 2

Consoles = Mapping[str, SimConsoles]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screens:
    """Screens of all simulated clouds, by their names."""

    consoles: Consoles
    is_permitted: Callable[[ConsoleSession], Awaitable[bool]]
    """Returns whether who opened a session may still see its screen."""


class ScreenPath(Parameters, frozen=True):
    """Cloud and server of a screen."""

    cloud: Annotated[str, msgspec.Meta(description="Name of the simulated cloud.")]
    server: Annotated[str, msgspec.Meta(description="Name of the server.")]


class ScreenQuery(Parameters, frozen=True):
    """Credential for a screen."""

    token: Annotated[str, msgspec.Meta(description="Credential of the console session.")] = ""


async def _show(screens: Screens, call: Call[ScreenPath, ScreenQuery, Nothing]) -> HtmlPage:
    consoles = screens.consoles.get(call.path.cloud)
    if consoles is None:
        return _closed()
    try:
        session = consoles.session_of_token(call.query.token, server=call.path.server)
        if not await screens.is_permitted(session):
            return _closed()
        written = await consoles.console_output(session.server, lines=_LINES)
    except NotFound:
        return _closed()
    return HtmlPage(_render("console.html", server=id_in(session.server.name), written=written, again_s=_REFRESH_S))


def _closed() -> HtmlPage:
    return HtmlPage(_render("console_closed.html"), status=404)


def _render(name: str, **values: object) -> str:
    return _environment().get_template(name).render(title="Console", **values)


@cache
def _environment() -> Environment:
    loaders = ChoiceLoader([PackageLoader("remuda.app"), PackageLoader("remuda.http")])
    return Environment(loader=loaders, autoescape=True, undefined=StrictUndefined)


CONSOLES = Table(
    "simulated",
    title="Simulated clouds",
    description="Screens of the servers in simulated clouds.",
    routes=[
        Route(
            method="GET",
            path="/consoles/{cloud}/{server}",
            name="show_console",
            summary="Show the screen of a simulated server",
            scope="public",
            path_type=ScreenPath,
            query_type=ScreenQuery,
            response_type=HtmlPage,
            page=True,
            handler=_show,
        )
    ],
)


def screens_api(region: RegionApp, screens: Screens, *, url: str) -> Api:
    """Return the API of the screens in a process that clients reach at `url`."""
    ports = region.ports
    return Api(CONSOLES, screens, api_ports(ports, ports.authenticator, region.watches, url=url + CONSOLES_PREFIX))


@dataclass(frozen=True, slots=True)
class OpenProviders:
    """The providers of a process, and the screens of its simulated clouds."""

    source: RegionProviders
    consoles: Consoles
    connector: RegionConnector


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedClouds:
    """Opener of simulated clouds, which keeps their screens."""

    process: ProcessPorts
    catalogues: Mapping[str, SimCatalogue]
    url: str
    consoles: dict[str, SimConsoles] = field(default_factory=dict)

    async def open(self, catalogue: SimCatalogue) -> SimulatedCloud:
        process = self.process
        path = process.data.clouds / f"{catalogue.name}.db"
        if catalogue.console_url == DEFAULT_CONSOLE_URL:
            catalogue = replace(catalogue, console_url=self.url + CONSOLES_URL)
        cloud = open_cloud(path, catalogue, clock=process.clock, randomness=process.randomness, sealer=process.sealer)
        try:
            await cloud.start()
        except BaseException:
            await cloud.stop()
            raise
        self.consoles[catalogue.name] = cloud.consoles
        return cloud

    async def open_region(self, region: Region) -> OpenProvider:
        """Open a cloud like one of the catalogue, with servers, hosts and addresses of its own."""
        assert region.spec.simulated is not None, "a region that is simulated says like which cloud"
        like = self.catalogues.get(region.spec.simulated.region)
        if like is None:
            raise Unavailable(f"The catalogue of this process has no simulated cloud {region.spec.simulated.region}.")
        cloud = await self.open(replace(like, name=region.name))

        async def close() -> None:
            self.consoles.pop(region.name, None)
            await cloud.stop()

        return OpenProvider(provider=cloud.provider, close=close)


@asynccontextmanager
async def open_providers(
    process: ProcessPorts, settings: RegionSettings, catalogues: Mapping[str, SimCatalogue], *, url: str
) -> AsyncIterator[OpenProviders]:
    """Open the providers of the regions for the block. `catalogues` are the simulated clouds, by name."""
    configured: dict[str, Provider] = {}
    simulated = SimulatedClouds(process=process, catalogues=catalogues, url=url)
    async with AsyncExitStack() as stack:
        for region in settings.regions:
            found = catalogues.get(region.name)
            if found is not None:
                cloud = await simulated.open(found)
                stack.push_async_callback(cloud.stop)
                configured[region_id(region.name)] = cloud.provider
            elif region.spec.kubernetes is not None:
                configured[region_id(region.name)] = _cluster(region, process.clock, stack)

        async def openstack() -> "OpenStackRegions":
            return await asyncio.to_thread(_openstack, process, settings)

        async def open_region(region: Region) -> OpenProvider:
            if region.spec.provider == "openstack":
                return await (await openstack()).open(region.spec)
            return await simulated.open_region(region)

        connector = Connector(catalogues=catalogues, openstack=openstack)

        source = RegionProviders(
            configured, open_region, store=process.store, clock=process.clock, randomness=process.randomness
        )
        stack.push_async_callback(source.close)
        tasks = BackgroundTasks(process.clock)
        stack.push_async_callback(tasks.stop)
        tasks.start("providers of regions", source.run)
        yield OpenProviders(source, simulated.consoles, connector)


def _openstack(process: ProcessPorts, settings: RegionSettings) -> "OpenStackRegions":
    from remuda.app.openstack import OpenStackRegions  # noqa: PLC0415  heavy, and most processes have no such region

    return OpenStackRegions(
        store=process.store,
        clock=process.clock,
        randomness=process.randomness,
        resolve=SystemResolver(),
        targets=settings.cloud_targets,
    )


def _cluster(region: ConfiguredRegion, clock: Clock, stack: AsyncExitStack) -> Provider:
    from remuda.app.kubernetes import cluster_of  # noqa: PLC0415  heavy, and most processes have no such region

    cluster = cluster_of(region.spec, clock=clock)
    assert cluster is not None, "the configuration contains its kubeconfig"
    stack.push_async_callback(cluster.close)
    return cluster.provider
