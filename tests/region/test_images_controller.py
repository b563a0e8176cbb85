"""Images on their way: fetched by the controller, checked on the way, given to the cloud once, whatever happens."""

import hashlib
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from remuda.kernel.errors import NotFound
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import CloudImage
from remuda.providers.proxy import image_key
from remuda.providers.simulated.images import SimImages
from remuda.quota.sagas import roll_back_create
from remuda.region.images.rules import cloud_image_spec
from remuda.region.images.transfer import Transfers
from remuda.region.kinds.images import ImageImport
from remuda.resources.crud import exists
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options
from tests.kit.region.images import ANN, DISK, OWN, SECTOR, URI, ImagesEnvironment, Page, Web, open_images
from tests.kit.region.networks import simulated_cloud
from tests.kit.region.resource_api import ORG, REGION, make_region
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import lose_power

MAGIC = "Image does not contain a valid master boot record, ensure the image is in raw format"
UNREADABLE = "Image read failed, please ensure the URL is correct"
STATUS = "Image read failed with an incorrect status code, please ensure the URL is correct"
SLOW = Page(pace_s=1.0)


async def _is_gone(region_images: ImagesEnvironment, name: str) -> bool:
    try:
        await region_images.store.get(ImageImport, name)
    except NotFound:
        return True
    return False


async def test_an_image_is_fetched_and_given_to_the_cloud_under_its_own_id(region_images: ImagesEnvironment) -> None:
    region_images.web.serve(SLOW)
    name = await region_images.begin()
    assert await region_images.states() == ["pending"]
    await region_images.world.clock.sleep(3)
    assert await region_images.states() == ["creating"]
    await region_images.world.clock.sleep(20)
    (made,) = await region_images.owned()
    assert (made.id, made.name, made.organization, made.state) == (name, "mine", ORG, "ready")
    assert made.tags == {
        "images.unikorn-cloud.org:source": "import",
        "images.unikorn-cloud.org:organization-id": ORG,
    }
    assert await region_images.states() == ["ready"]
    stored = await region_images.store.get(ImageImport, name)
    assert stored.status.sha256 == hashlib.sha256(DISK).hexdigest()
    assert (stored.status.received, stored.status.size) == (len(DISK), len(DISK))
    assert region_images.web.asked == ["beginning", "everything"]


async def test_an_image_that_is_ready_is_the_clouds_and_we_forget_where_it_came_from(
    region_images: ImagesEnvironment,
) -> None:
    name = await region_images.begin()
    await region_images.world.clock.sleep(30)
    assert not await _is_gone(region_images, name)
    await region_images.world.clock.sleep(60)
    assert await _is_gone(region_images, name)
    assert [each.id for each in await region_images.owned()] == [name]
    assert await region_images.states() == ["ready"]
    await region_images.driver.resync()
    await region_images.world.clock.sleep(60)
    assert not region_images.finds.found


async def test_an_image_that_is_given_up_just_when_its_arrival_is_forgotten_is_gone(
    region_images: ImagesEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = await region_images.begin()
    await region_images.world.clock.sleep(55)
    assert not await _is_gone(region_images, name)
    remove = SimImages.remove_image

    async def remove_slowly(images: SimImages, image: str) -> None:
        await remove(images, image)
        await region_images.world.clock.sleep(15)

    monkeypatch.setattr(SimImages, "remove_image", remove_slowly)
    assert (await region_images.api.ask(ANN).delete(f"{OWN}/{name}")).status == 202
    assert await _is_gone(region_images, name)
    assert await region_images.owned() == []


async def test_an_image_that_arrives_and_is_forgotten_while_it_is_given_up_is_removed_all_the_same(
    region_images: ImagesEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    region_images.web.serve(SLOW)
    name = await region_images.begin()
    await region_images.world.clock.sleep(2)
    assert await region_images.states() == ["creating"]
    delete, waited = SqliteStore.delete, list[str]()

    async def delete_slowly(store: SqliteStore, kind: type[ImageImport], found: str, **more: Any) -> Any:
        if not waited:
            waited.append(found)
            while (arrived := await store.get(ImageImport, name)).status.state != "ready":
                await region_images.world.clock.sleep(0.1)
            freed = msgspec.structs.replace(arrived.metadata, finalizers=())  # as its controller forgets it
            await store.update(msgspec.structs.replace(arrived, metadata=freed))
        return await delete(store, kind, found, **more)

    monkeypatch.setattr(SqliteStore, "delete", delete_slowly)
    assert (await region_images.api.ask(ANN).delete(f"{OWN}/{name}")).status == 202
    assert await region_images.owned() == []


async def test_an_image_that_is_ready_is_forgotten_also_where_the_clock_was_set_back_by_hours(
    region_images: ImagesEnvironment,
) -> None:
    name = await region_images.begin()
    await region_images.world.clock.sleep(30)
    region_images.world.clock.jump(timedelta(hours=-6))
    await region_images.world.clock.sleep(120)
    assert await _is_gone(region_images, name)
    assert [each.id for each in await region_images.owned()] == [name]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (Page(body=b"\0" * 4096), MAGIC),
        (Page(body=SECTOR[:-1]), "Unable to peek image header, response too small"),
        (Page(status=404), STATUS),
        (Page(status=206), STATUS),
        (Page(body=SECTOR * 2000), "The image is longer than 1000000 bytes: import a smaller one"),
    ],
)
async def test_what_is_served_after_the_look_is_what_counts(
    region_images: ImagesEnvironment, page: Page, why: str
) -> None:
    region_images.web.serve(Page(), page)
    name = await region_images.begin()
    await region_images.world.clock.sleep(30)
    assert await region_images.states() == ["failed"]
    said = await region_images.available(name)
    assert (said.status, said.reason, said.message) == ("False", "Errored", why)
    assert await region_images.owned() == []
    await region_images.world.clock.sleep(1000)
    await region_images.driver.resync()
    await region_images.world.clock.sleep(10)
    assert region_images.web.asked == ["beginning", "everything"], "what is wrong for good is not fetched again"
    assert not region_images.finds.found
    assert (await region_images.available(name)).message == why


async def test_trouble_on_the_way_may_pass(region_images: ImagesEnvironment) -> None:
    region_images.web.serve(Page(), Page(breaks_after=1024), Page(status=503), Page())
    name = await region_images.begin()
    await region_images.world.clock.sleep(0.5)
    assert (await region_images.available(name)).reason == "ImportInterrupted"
    await region_images.world.clock.sleep(60)
    assert await region_images.states() == ["ready"]
    assert len(await region_images.owned()) == 1
    assert region_images.web.asked.count("everything") == 3


async def test_trouble_that_does_not_pass_is_failed_after_some_attempts(region_images: ImagesEnvironment) -> None:
    region_images.web.serve(Page(), Page(breaks_after=1024))
    name = await region_images.begin()
    await region_images.world.clock.sleep(600)
    assert await region_images.states() == ["failed"]
    assert (await region_images.available(name)).message == UNREADABLE
    assert region_images.web.asked.count("everything") == 3
    assert (await region_images.store.get(ImageImport, name)).status.failures == 2
    cloud = await region_images.clouds.get(REGION)
    assert not cloud.calls.is_unknown(image_key(name))
    cloud.invalidate_images()
    assert await cloud.images(), "that a server breaks off says nothing about the provider"


@pytest.mark.parametrize("after_s", [0.0, 0.5, 2.5, 4.5, 5.5, 7.0, 30.0])
@options(seeds=3)
async def test_deleting_an_image_at_any_time_leaves_nothing(region_images: ImagesEnvironment, after_s: float) -> None:
    region_images.web.serve(SLOW)
    name = await region_images.begin()
    await region_images.world.clock.sleep(after_s)
    client = region_images.api.ask(ANN)
    assert (await client.delete(f"{OWN}/{name}")).status == 202
    assert (await client.delete(f"{OWN}/{name}")).status == 404
    await region_images.world.clock.sleep(60)
    assert await _is_gone(region_images, name)
    assert await region_images.owned() == []
    assert await region_images.states() == []
    assert region_images.transfers.find(name) is None


@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.5, 1.5, 3.5, 4.999, 5.0, 5.001, 6.0, 20.0])
@pytest.mark.parametrize("is_deleted", [False, True])
@options(seeds=3)
async def test_a_crash_at_any_time_leaves_one_image_or_none(world: World, after_s: float, *, is_deleted: bool) -> None:
    cloud, web = simulated_cloud(world), Web(world.clock)
    web.serve(SLOW)
    async with open_images(world, cloud=cloud, web=web, at_work=True) as region_images:
        await make_region(region_images.store)
        name = await region_images.begin()
        await world.clock.sleep(after_s)
        if is_deleted:
            assert (await region_images.api.ask(ANN).delete(f"{OWN}/{name}")).status == 202
        await lose_power(world, region_images.store, "all")
    async with open_images(world, cloud=cloud, web=web, at_work=True) as region_images:
        await world.clock.sleep(150)
        assert await _is_gone(region_images, name)
        assert [(each.id, each.state) for each in await region_images.owned()] == (
            [] if is_deleted else [(name, "ready")]
        )
    await region_images.store.close()
    await cloud.stop()


@options(most=1)
async def test_only_so_many_are_fetched_at_once(region_images: ImagesEnvironment) -> None:
    region_images.web.serve(SLOW)
    for _ in range(3):
        await region_images.begin()
    await region_images.world.clock.sleep(3)
    assert region_images.web.asked.count("everything") == 1
    assert sorted(await region_images.states()) == ["creating", "pending", "pending"]
    await region_images.world.clock.sleep(60)
    assert await region_images.states() == ["ready"] * 3


RATES = {
    "cloud.error_after_write.create_image": 0.5,
    "cloud.error.create_image": 0.3,
    "cloud.timeout_after_write.remove_image": 0.3,
    "cloud.error.remove_image": 0.3,
    "cloud.stale.find_image": 0.3,
    "cloud.not_visible_yet.image": 0.3,
}


@options(most=1)
async def test_an_image_that_waits_for_its_turn_is_deleted_at_once(region_images: ImagesEnvironment) -> None:
    region_images.web.serve(Page(), Page(pace_s=60.0), at="https://slow.example/")
    await region_images.begin(uri="https://slow.example/")
    await region_images.world.clock.sleep(1)
    waiting = await region_images.begin()
    await region_images.world.clock.sleep(100)
    assert (await region_images.api.ask(ANN).delete(f"{OWN}/{waiting}")).status == 202
    await region_images.world.clock.sleep(10)
    assert await _is_gone(region_images, waiting)
    assert await region_images.states() == ["creating"]


@options(at_work=False)
async def test_a_transfer_that_is_broken_off_before_it_came_to_anything_has_ended(
    region_images: ImagesEnvironment,
) -> None:
    name = await region_images.begin()
    wanted = cloud_image_spec(await region_images.store.get(ImageImport, name))
    transfers = Transfers(
        region_images.api.service["images"].fetcher, clock=region_images.world.clock, max_concurrent=1
    )
    moved: list[str] = []
    transfers.add_listener(moved.append)
    transfers.start(
        region_images.at_cloud, wanted, Secret(URI), partial(exists, region_images.store, ImageImport, name)
    )
    assert not transfers.cancel(name)
    await region_images.world.clock.sleep(1)
    assert transfers.cancel(name)
    assert moved == [name]
    transfers.forget(name)
    assert transfers.find(name) is None
    assert await region_images.owned() == []


async def test_an_image_that_another_process_saw_to_be_deleted_is_not_made_by_this_one(
    region_images: ImagesEnvironment,
) -> None:
    region_images.web.serve(SLOW)
    name = await region_images.begin()
    await region_images.world.clock.sleep(3)
    await roll_back_create(region_images.store, ImageImport, name)
    await region_images.world.clock.sleep(60)
    assert await region_images.owned() == []
    transfer = region_images.transfers.find(name)
    assert transfer is not None
    assert (transfer.is_done, transfer.received) == (True, len(DISK))


async def test_an_image_that_somebody_removes_as_soon_as_it_came_is_brought_again(
    region_images: ImagesEnvironment,
) -> None:
    images = region_images.at_cloud
    found = images.find_image

    async def removed(image: str) -> CloudImage | None:
        if region_images.web.asked.count("everything") == 1 and await found(image):
            await images.remove_image(image)
        return await found(image)

    images.find_image = removed  # type: ignore[method-assign]  # somebody is faster
    name = await region_images.begin()
    await region_images.world.clock.sleep(60)
    assert [(each.id, each.state) for each in await region_images.owned()] == [(name, "ready")]
    assert region_images.web.asked.count("everything") == 2


@options(seeds=20, rates=RATES)
async def test_a_cloud_that_loses_answers_keeps_nothing_of_an_image_that_was_deleted(
    region_images: ImagesEnvironment,
) -> None:
    region_images.web.serve(Page(pace_s=0.1))
    name = await region_images.begin()
    await region_images.world.clock.sleep(region_images.world.randomness.uniform(0, 3))
    while (await region_images.api.ask(ANN).delete(f"{OWN}/{name}")).status == 503:
        await region_images.world.clock.sleep(5)
    await region_images.world.clock.sleep(3000)
    assert await _is_gone(region_images, name)
    assert await region_images.owned() == []


@options(lambda: {"rates": {name: rate for name, rate in RATES.items() if "remove" not in name}}, seeds=20)
async def test_a_cloud_that_loses_answers_still_has_one_image(region_images: ImagesEnvironment) -> None:
    name = await region_images.begin()
    await region_images.world.clock.sleep(2000)
    if await _is_gone(region_images, name):
        assert [(each.id, each.state) for each in await region_images.owned()] == [(name, "ready")]
    else:
        assert (await region_images.store.get(ImageImport, name)).status.state == "failed"
        assert await region_images.owned() == []


async def test_the_address_is_told_to_nobody(region_images: ImagesEnvironment) -> None:
    region_images.web.serve(Page(), Page(body=b"\0" * 4096))
    name = await region_images.begin()
    await region_images.world.clock.sleep(30)
    stored = await region_images.store.get(ImageImport, name)
    assert stored.spec.uri.reveal() == URI
    assert "top-secret" not in repr(stored)
    assert "example" not in (await region_images.available(name)).message
    written = b"".join(path.read_bytes() for path in region_images.world.disk.directory.iterdir())
    assert name.encode() in written
    assert b"top-secret" not in written
