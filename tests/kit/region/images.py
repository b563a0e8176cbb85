"""The images capacity over one store and one simulated cloud, with its controller at work or not, and a web to fetch
from.

The web is a book of pages; the real fetcher reads them, and time passes in simulation.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from remuda.access.principal import Principal
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_condition
from remuda.outbound.fetch import FetchFailed, GuardedFetcher, OpenResponse
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.catalogue import CloudImage, CloudImages, CloudImageSpec, CloudOperatingSystem
from remuda.providers.contract.provider import Provider
from remuda.providers.simulated.provider import SimulatedCloud
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.resync import ResyncSettings
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.images import controller as control
from remuda.region.images import routes as api
from remuda.region.images.counts import ImageCounts
from remuda.region.images.service import Images as ImageService
from remuda.region.images.transfer import ImageFetcher, ImageLimits, Transfers
from remuda.region.kinds.images import ImageImport
from remuda.store.sqlite.store import SqliteStore
from tests.kit.asgi.contract import Reply
from tests.kit.outbound_servers import Names
from tests.kit.region.flavor_provider import FlavorProvider
from tests.kit.region.networks import simulated_cloud
from tests.kit.region.resource_api import (
    ORG,
    OTHER_REGION,
    REGION,
    RegionApi,
    clouds_over,
    make_region,
    member,
    registry,
)
from tests.kit.simulation.resync import ResyncFinds
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

OWN = api.IMAGES_OF_ORGANIZATION.format(organizationID=ORG, regionID=REGION)
SECOND = api.IMAGES.format(regionID=REGION)
ANN = member("ann@example.com", ORG, "region:images CRD")
ABSENT = "e0000000-0000-4000-8000-00000000000e"
SECTOR = b"\xfa" * 510 + b"\x55\xaa"
DISK = SECTOR + bytes(range(256)) * 8
URI = "https://images.example/disk.raw?signature=top-secret"


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a server answers: so many bytes at a time, each after a while, and perhaps not to the end."""

    body: bytes = DISK
    status: int = 200
    piece: int = 512
    pace_s: float = 0.0
    breaks_after: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Web(GuardedFetcher):
    """Answers for addresses, each time with the next of its pages, the last one for ever; of no other it knows."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(resolve=Names({}))
        self._clock = clock
        self.pages: dict[str, list[Page]] = {URI: [Page()]}
        self.asked: list[str] = []
        """What for: the beginning, or everything."""
        self.clients: list[str] = []
        """For which organization."""

    def serve(self, *pages: Page, at: str = URI) -> None:
        self.pages[at] = list(pages)

    @asynccontextmanager
    async def open(
        self, url: str, headers: Mapping[str, str], *, total_s: float, **request: Any
    ) -> AsyncIterator[OpenResponse]:
        assert total_s > 0
        assert request.keys() == {"client"}
        self.clients.append(request["client"])
        if url not in self.pages:
            raise FetchFailed("its name is not known", is_temporary=True)
        self.asked.append("beginning" if "Range" in headers else "everything")
        pages = self.pages[url]
        yield _Answer(self._clock, pages.pop(0) if len(pages) > 1 else pages[0])  # type: ignore[misc]  # reads as one


class _Answer:
    def __init__(self, clock: Clock, page: Page) -> None:
        self._clock, self._page, self._at = clock, page, 0
        self.status, self.headers = page.status, page.headers

    async def read(self) -> bytes:
        await self._clock.sleep(self._page.pace_s)
        if self._page.breaks_after is not None and self._at >= self._page.breaks_after:
            raise FetchFailed("its answer breaks off", is_temporary=True)
        piece = self._page.body[self._at : self._at + self._page.piece]
        self._at += len(piece)
        return piece


def image(uri: str = URI, **spec: Any) -> dict[str, Any]:
    """Return an image as it is asked for."""
    fields = {
        "uri": uri,
        "architecture": "x86_64",
        "virtualization": "virtualized",
        "os": {"kernel": "linux", "family": "debian", "distro": "ubuntu", "version": "24.04"},
    } | spec
    return {"metadata": {"name": "mine"}, "spec": fields}


@dataclass(frozen=True, kw_only=True)
class ImagesEnvironment:
    """Everything."""

    world: World
    store: SqliteStore
    cloud: SimulatedCloud
    clouds: ProviderRegistry
    web: Web
    api: RegionApi[dict[str, Any]]
    driver: Controller
    transfers: Transfers
    finds: ResyncFinds

    @property
    def at_cloud(self) -> CloudImages:
        """The cloud's images, past all that we do about its calls."""
        images = self.cloud.provider.images
        assert images is not None
        return images

    async def owned(self) -> list[CloudImage]:
        """Return the cloud's images that somebody owns."""
        return [each for each in await self.at_cloud.images() if each.organization]

    async def begin(self, who: Principal = ANN, **spec: Any) -> str:
        """Ask for an image and return its id."""
        reply = await self.api.ask(who).post(OWN, image(**spec))
        assert reply.status == 200, reply
        name: str = reply.json["metadata"]["id"]
        return name

    async def states(self) -> list[str]:
        """Return how far the organization's images are."""
        reply = await self.api.ask(ANN).get(SECOND, [("organizationID", ORG), ("scope", "owned")])
        return [each["status"]["state"] for each in read(reply)]

    async def available(self, name: str) -> Condition:
        """Return what the controller says of an image on its way."""
        found = await self.store.get(ImageImport, name)
        condition = find_condition(found.status.conditions, "Available")
        assert condition is not None
        return condition

    async def put(self, image_id: str, organization: str = "", *, name: str = "put") -> None:
        """Give the cloud an image that is not of our making; a list of a moment ago does not have it."""
        new = CloudImageSpec(
            id=image_id,
            name=name,
            architecture="x86_64",
            virtualization="any",
            os=CloudOperatingSystem(family="debian", distro="debian", version="12"),
            organization=organization,
        )
        await self.at_cloud.create_image(new, _pieces([DISK]))


async def _pieces(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def read(reply: Reply) -> list[Any]:
    """Return a list as it was read."""
    assert reply.status == 200, reply
    items: list[Any] = reply.json
    return items


@asynccontextmanager
async def open_images(
    world: World, *, cloud: SimulatedCloud, web: Web, at_work: bool, attempts: int = 3, most: int = 4
) -> AsyncIterator[ImagesEnvironment]:
    """Open the store as it was left, and begin as a process does."""
    store, finds = open_simulated(world, registry()), ResyncFinds()
    providers: dict[str, Provider] = {REGION: cloud.provider, OTHER_REGION: FlavorProvider(world.clock).bare}
    clouds = clouds_over(world, store, providers, CallSettings())
    fetcher = ImageFetcher(source=web, limits=ImageLimits(max_bytes=1_000_000, total_s=3000))
    services = {"images": ImageService(store=store, providers=clouds, fetcher=fetcher, counts=ImageCounts(store=store))}
    transfers = Transfers(fetcher, clock=world.clock, max_concurrent=most)
    ports = ReconcilePorts(store=store, log=store, clock=world.clock, randomness=world.randomness, reporter=finds)
    settings = ControllerSettings(blocked_every_s=10_000, resync=ResyncSettings(interval_s=10_000), grace_s=0)
    (driver,) = control.controllers(ports, clouds, transfers, attempts=attempts, settings=settings)
    if at_work:
        await driver.start()
    try:
        yield ImagesEnvironment(
            world=world,
            store=store,
            cloud=cloud,
            clouds=clouds,
            web=web,
            api=RegionApi(world, store, services, api.ROUTES),
            driver=driver,
            transfers=transfers,
            finds=finds,
        )
    finally:
        await driver.stop()
        await transfers.stop()
        await clouds.close(0)


def run_images(
    scenario: Callable[[ImagesEnvironment], Coroutine[Any, Any, None]],
    *,
    at_work: bool = True,
    seeds: int = 1,
    rates: Mapping[str, float] | None = None,
    **settings: int,
) -> None:
    """Run a scenario with a region for everybody and one that stands for a cluster."""

    async def run(world: World) -> None:
        cloud = simulated_cloud(world, faults=world.faults) if rates else simulated_cloud(world)
        async with open_images(world, cloud=cloud, web=Web(world.clock), at_work=at_work, **settings) as region_images:
            await make_region(region_images.store)
            await make_region(region_images.store, OTHER_REGION, called="cluster")
            await scenario(region_images)
            region_images.api.app.assert_documented()
        await region_images.store.close()
        await cloud.stop()

    simulate(run, seeds, rates=rates)
