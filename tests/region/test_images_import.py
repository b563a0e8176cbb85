"""Importing images over real sockets: every rejection in the words that clients know, and no way into the inside."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.outbound.addresses import AddressPolicy
from remuda.outbound.fetch import FetchTimeouts, GuardedFetcher
from remuda.providers.contract.catalogue import CloudImage
from remuda.providers.simulated.catalogue import without_delays
from remuda.providers.simulated.provider import open_cloud
from remuda.reconcile.ports import ReconcilePorts
from remuda.region.images import controller as control
from remuda.region.images import routes as api
from remuda.region.images.counts import ImageCounts
from remuda.region.images.service import Images
from remuda.region.images.transfer import ImageFetcher, ImageLimits, Transfers
from remuda.region.kinds.images import ImageImport
from remuda.region.settings import RegionSettings
from remuda.store.kinds import ObjectLimits, Registry
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.asgi.contract import Reply
from tests.kit.outbound_servers import HERE, Answer, Names, redirecting, saying, serving
from tests.kit.region.images import ANN, DISK, OWN, SECTOR, image
from tests.kit.region.resource_api import REGION, RegionApi, catalogues, clouds_over, make_region, registry, rejection
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER

UNREADABLE = (422, "Image read failed, please ensure the URL is correct")
STATUS = (422, "Image read failed with an incorrect status code, please ensure the URL is correct")
RANGE = (400, "Unable to peek image header, incorrect response size for range")
SMALL = (422, "Unable to peek image header, response too small")
MAGIC = (422, "Image does not contain a valid master boot record, ensure the image is in raw format")
TIMEOUT_S = 120.0


class ImportHost:
    """The capacity in real time."""

    def __init__(
        self,
        store: SqliteStore,
        environment: RegionApi[dict[str, Any]],
        images: Callable[[], Awaitable[list[CloudImage]]],
    ) -> None:
        self.store, self.owned = store, images
        self._free = environment

    async def ask(self, uri: str) -> Reply:
        return await self._free.ask(ANN).post(OWN, image(uri))

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not await holds():  # noqa: ASYNC110  it is asked what it cannot tell
                await asyncio.sleep(0.01)

    async def stored(self) -> list[ImageImport]:
        return list((await self.store.list(ImageImport)).items)


@asynccontextmanager
async def import_host(
    tmp_path: Path,
    *,
    names: Names | None = None,
    reach: AddressPolicy = HERE,
    limits: ObjectLimits | None = None,
) -> AsyncIterator[ImportHost]:
    clock, randomness = SystemClock(), SystemRandomness()
    world = cast("World", SimpleNamespace(clock=clock, randomness=randomness))
    store = open_store(tmp_path / "remuda.db", Registry(registry().kinds, limits=limits), SEALER)
    cloud = open_cloud(
        None, without_delays(catalogues()["sim-north"]), clock=clock, sealer=SEALER, randomness=randomness
    )
    clouds = clouds_over(world, store, {REGION: cloud.provider})
    source = GuardedFetcher(resolve=names or Names({}), reach=reach, timeouts=FetchTimeouts(stall_s=5))
    fetcher = ImageFetcher(source=source, limits=ImageLimits(max_bytes=1_000_000))
    ports = ReconcilePorts(store=store, log=store, clock=clock, randomness=randomness)
    transfers = Transfers(fetcher, clock=clock)
    (driver,) = control.controllers(ports, clouds, transfers)
    services = {"images": Images(store=store, providers=clouds, fetcher=fetcher, counts=ImageCounts(store=store))}

    async def owned() -> list[CloudImage]:
        assert cloud.provider.images is not None
        return [each for each in await cloud.provider.images.images() if each.organization]

    await make_region(store)
    await driver.start()
    try:
        yield ImportHost(store, RegionApi(world, store, services, api.ROUTES), owned)
    finally:
        await driver.stop()
        await transfers.stop()
        await clouds.close(0)
        await cloud.stop()
        await store.close()


def partial(body: bytes) -> Answer:
    return saying(body, status="206 Partial Content", headers="content-range: bytes 0-511/4096\r\n")


async def hanging_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


ROWS: dict[str, tuple[Answer, tuple[int, str]]] = {
    "it cannot be fetched": (hanging_up, UNREADABLE),
    "it is not there": (saying(DISK, status="404 Not Found"), STATUS),
    "it is not for us": (saying(DISK, status="403 Forbidden"), STATUS),
    "its server is ill": (saying(DISK, status="500 Oh"), STATUS),
    "a part that is too small": (partial(SECTOR[:-1]), RANGE),
    "a part that is too large": (partial(SECTOR + b"x"), RANGE),
    "it is too small": (saying(SECTOR[:-1]), SMALL),
    "it is of another format": (saying(b"QFI\xfb".ljust(1024, b"\0")), MAGIC),
    "it is too long": (
        saying(SECTOR, told=1_000_001),
        (422, "The image is longer than 1000000 bytes: import a smaller one."),
    ),
}


@pytest.mark.parametrize(("answer", "told"), ROWS.values(), ids=ROWS)
async def test_what_is_no_image_is_refused_in_the_words_that_clients_know(
    tmp_path: Path, answer: Answer, told: tuple[int, str]
) -> None:
    async with import_host(tmp_path) as host, serving(answer) as served:
        assert rejection(await host.ask(served.url())) == told
        assert await host.stored() == []


async def test_m27_images_of_an_organization_stay_within_their_limit_however_many_are_requested(tmp_path: Path) -> None:
    async with import_host(tmp_path, limits=ObjectLimits(default=2)) as host, serving(saying(DISK)) as served:
        replies = await asyncio.gather(*(host.ask(served.url()) for _ in range(5)))
        assert sorted(reply.status for reply in replies) == [200, 200, 403, 403, 403]
        told = next(rejection(reply)[1] for reply in replies if reply.status == 403)
        assert told.startswith("There are 2 images in this organization and region, which is the limit: delete those")

        async def are_there() -> bool:
            return len(await host.owned()) == 2

        await host.until(are_there)
        assert (await host.ask(served.url())).status == 403


async def test_nobody_at_the_address_is_the_same_as_no_answer(tmp_path: Path) -> None:
    async with import_host(tmp_path) as host:
        async with serving(saying(DISK)) as served:
            url = served.url()
        assert rejection(await host.ask(url)) == UNREADABLE
        assert rejection(await host.ask("http://nowhere.example/disk.raw")) == UNREADABLE


INSIDE = [
    "http://127.0.0.1:{port}/disk.raw",
    "http://localhost:{port}/disk.raw",
    "http://0.0.0.0:{port}/disk.raw",
    "http://2130706433:{port}/disk.raw",
    "http://0x7f.1:{port}/disk.raw",
    "http://0177.0.0.1:{port}/disk.raw",
    "http://[::1]:{port}/disk.raw",
    "http://[::ffff:127.0.0.1]:{port}/disk.raw",
    "http://[64:ff9b::7f00:1]:{port}/disk.raw",
    "http://user@127.0.0.1:{port}/disk.raw",
    "http://images.example@127.0.0.1:{port}/disk.raw",
    "http://images.example\\@127.0.0.1:{port}/disk.raw",
    "http://inside.example:{port}/disk.raw",
    "http://both.example:{port}/disk.raw",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/disk.raw",
    "http://[fd00::1]/disk.raw",
    "file:///etc/passwd",
    "ftp://images.example/disk.raw",
    "gopher://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/disk.raw",
    "disk.raw",
    "",
    "http://",
    "http://images.example/disk raw\r\nHost: inside",
]


@pytest.mark.parametrize("uri", INSIDE)
async def test_no_address_leads_inside(tmp_path: Path, uri: str) -> None:
    names = Names(
        {
            "localhost": [["127.0.0.1"]],
            "inside.example": [["127.0.0.1"]],
            "both.example": [["93.184.216.34", "127.0.0.1"]],
        }
    )
    async with import_host(tmp_path, names=names, reach=AddressPolicy()) as host, serving(saying(DISK)) as served:
        reply = await host.ask(uri.format(port=served.port))
        assert rejection(reply) == UNREADABLE
        assert served.asked == []
        assert await host.stored() == []


async def test_no_redirect_leads_inside_and_what_is_there_is_not_told(tmp_path: Path) -> None:
    async with import_host(tmp_path, names=Names({"inside.example": [["10.0.0.1"]]})) as host:
        for location in ("http://10.0.0.1/secret", "http://inside.example/", "file:///etc/passwd", "//[::1]/x"):
            async with serving(redirecting(location)) as served:
                assert rejection(await host.ask(served.url())) == UNREADABLE
        assert await host.stored() == []


async def test_an_image_comes_from_a_server_to_the_cloud(tmp_path: Path) -> None:
    async with import_host(tmp_path) as host, serving(saying(DISK)) as served:
        reply = await host.ask(served.url())
        assert (reply.status, reply.json["status"]["state"]) == (200, "pending")

        async def is_ready() -> bool:
            return [(each.id, each.state) for each in await host.owned()] == [(reply.json["metadata"]["id"], "ready")]

        await host.until(is_ready)
        assert len(served.asked) == 2


async def test_a_name_that_means_the_inside_after_the_look_leads_nowhere(tmp_path: Path) -> None:
    names = Names({"images.example": [["127.0.0.1"], ["10.0.0.1"]]})
    async with import_host(tmp_path, names=names) as host, serving(saying(DISK)) as served:
        assert (await host.ask(served.url("images.example"))).status == 200

        async def has_failed() -> bool:
            return [each.status.state for each in await host.stored()] == ["failed"]

        await host.until(has_failed)
        (failed,) = await host.stored()
        assert [each.message for each in failed.status.conditions if each.type == "Available"] == [UNREADABLE[1]]
        assert (names.asked, len(served.asked)) == (["images.example"] * 2, 1)
        assert await host.owned() == []


def test_what_an_operator_sets_is_what_is_fetched_by() -> None:
    fetcher = control.new_fetcher(RegionSettings(image_size_gib=1, image_targets=("10.1.0.0/16",)))
    assert fetcher.limits.max_bytes == 2**30
    assert fetcher.limits.total_s < 3600
    permits = fetcher.source._reach.allows
    assert [permits(ip_address(each)) for each in ("10.1.2.3", "10.2.0.1", "93.184.216.34")] == [True, False, True]
