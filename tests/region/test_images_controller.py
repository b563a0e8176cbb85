"""Images on their way: fetched by the controller, checked on the way, given to the cloud once, whatever happens."""

import hashlib
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from remuda.kernel.errors import NotFound
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import Image
from remuda.providers.proxy import image_key
from remuda.providers.simulated.images import SimImages
from remuda.quota.sagas import unmake
from remuda.region.images.rules import to_cloud
from remuda.region.images.transfer import Transfers
from remuda.region.kinds.images import ImageImport
from remuda.resources.crud import is_there
from remuda.store.sqlite.store import SqliteStore
from tests.region.images_ground import ANN, DISK, OWN, SECTOR, URI, Ground, Page, Web, on_ground, open_ground
from tests.region.networks_ground import simulated_cloud
from tests.region.room import ORG, REGION, make_region
from tests.sim.runner import World, simulate
from tests.sim.store import lose_power

MAGIC = "Image does not contain a valid master boot record, ensure the image is in raw format"
UNREADABLE = "Image read failed, please ensure the URL is correct"
STATUS = "Image read failed with an incorrect status code, please ensure the URL is correct"
SLOW = Page(pace_s=1.0)


async def _is_gone(ground: Ground, name: str) -> bool:
    try:
        await ground.store.get(ImageImport, name)
    except NotFound:
        return True
    return False


def test_an_image_is_fetched_and_given_to_the_cloud_under_its_own_id() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(SLOW)
        name = await ground.begin()
        assert await ground.states() == ["pending"]
        await ground.world.clock.sleep(3)
        assert await ground.states() == ["creating"]
        await ground.world.clock.sleep(20)
        (made,) = await ground.owned()
        assert (made.id, made.name, made.organization, made.state) == (name, "mine", ORG, "ready")
        assert made.tags == {
            "images.unikorn-cloud.org:source": "import",
            "images.unikorn-cloud.org:organization-id": ORG,
        }
        assert await ground.states() == ["ready"]
        stored = await ground.store.get(ImageImport, name)
        assert stored.status.sha256 == hashlib.sha256(DISK).hexdigest()
        assert (stored.status.received, stored.status.size) == (len(DISK), len(DISK))
        assert ground.web.asked == ["beginning", "everything"]

    on_ground(scenario)


def test_an_image_that_is_ready_is_the_clouds_and_we_forget_where_it_came_from() -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.begin()
        await ground.world.clock.sleep(30)
        assert not await _is_gone(ground, name)
        await ground.world.clock.sleep(60)
        assert await _is_gone(ground, name)
        assert [each.id for each in await ground.owned()] == [name]
        assert await ground.states() == ["ready"]
        await ground.driver.scan()
        await ground.world.clock.sleep(60)
        assert not ground.finds.found

    on_ground(scenario)


def test_an_image_that_is_given_up_just_when_its_arrival_is_forgotten_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.begin()
        await ground.world.clock.sleep(55)
        assert not await _is_gone(ground, name)
        remove = SimImages.remove_image

        async def remove_slowly(images: SimImages, image: str) -> None:
            await remove(images, image)
            await ground.world.clock.sleep(15)

        monkeypatch.setattr(SimImages, "remove_image", remove_slowly)
        assert (await ground.room.ask(ANN).delete(f"{OWN}/{name}")).status == 202
        assert await _is_gone(ground, name)
        assert await ground.owned() == []

    on_ground(scenario)


def test_an_image_that_arrives_and_is_forgotten_while_it_is_given_up_is_removed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(SLOW)
        name = await ground.begin()
        await ground.world.clock.sleep(2)
        assert await ground.states() == ["creating"]
        delete, waited = SqliteStore.delete, list[str]()

        async def delete_slowly(store: SqliteStore, kind: type[ImageImport], found: str, **more: Any) -> Any:
            if not waited:
                waited.append(found)
                while (arrived := await store.get(ImageImport, name)).status.state != "ready":
                    await ground.world.clock.sleep(0.1)
                freed = msgspec.structs.replace(arrived.metadata, finalizers=())  # as its controller forgets it
                await store.update(msgspec.structs.replace(arrived, metadata=freed))
            return await delete(store, kind, found, **more)

        monkeypatch.setattr(SqliteStore, "delete", delete_slowly)
        assert (await ground.room.ask(ANN).delete(f"{OWN}/{name}")).status == 202
        assert await ground.owned() == []

    on_ground(scenario)


def test_an_image_that_is_ready_is_forgotten_also_where_the_clock_was_set_back_by_hours() -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.begin()
        await ground.world.clock.sleep(30)
        ground.world.clock.jump(timedelta(hours=-6))
        await ground.world.clock.sleep(120)
        assert await _is_gone(ground, name)
        assert [each.id for each in await ground.owned()] == [name]

    on_ground(scenario)


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
def test_what_is_served_after_the_look_is_what_counts(page: Page, why: str) -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(Page(), page)
        name = await ground.begin()
        await ground.world.clock.sleep(30)
        assert await ground.states() == ["failed"]
        said = await ground.available(name)
        assert (said.status, said.reason, said.message) == ("False", "Errored", why)
        assert await ground.owned() == []
        await ground.world.clock.sleep(1000)
        await ground.driver.scan()
        await ground.world.clock.sleep(10)
        assert ground.web.asked == ["beginning", "everything"], "what is wrong for good is not fetched again"
        assert not ground.finds.found
        assert (await ground.available(name)).message == why

    on_ground(scenario)


def test_trouble_on_the_way_may_pass() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(Page(), Page(breaks_after=1024), Page(status=503), Page())
        name = await ground.begin()
        await ground.world.clock.sleep(0.5)
        assert (await ground.available(name)).reason == "ImportInterrupted"
        await ground.world.clock.sleep(60)
        assert await ground.states() == ["ready"]
        assert len(await ground.owned()) == 1
        assert ground.web.asked.count("everything") == 3

    on_ground(scenario)


def test_trouble_that_does_not_pass_is_failed_after_some_attempts() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(Page(), Page(breaks_after=1024))
        name = await ground.begin()
        await ground.world.clock.sleep(600)
        assert await ground.states() == ["failed"]
        assert (await ground.available(name)).message == UNREADABLE
        assert ground.web.asked.count("everything") == 3
        assert (await ground.store.get(ImageImport, name)).status.failures == 2
        cloud = await ground.clouds.get(REGION)
        assert not cloud.calls.is_unknown(image_key(name))
        cloud.forget_images()
        assert await cloud.images(), "that a server breaks off says nothing about the provider"

    on_ground(scenario)


@pytest.mark.parametrize("after_s", [0.0, 0.5, 2.5, 4.5, 5.5, 7.0, 30.0])
def test_deleting_an_image_at_any_time_leaves_nothing(after_s: float) -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(SLOW)
        name = await ground.begin()
        await ground.world.clock.sleep(after_s)
        client = ground.room.ask(ANN)
        assert (await client.delete(f"{OWN}/{name}")).status == 202
        assert (await client.delete(f"{OWN}/{name}")).status == 404
        await ground.world.clock.sleep(60)
        assert await _is_gone(ground, name)
        assert await ground.owned() == []
        assert await ground.states() == []
        assert ground.driver.transfers.find(name) is None

    on_ground(scenario, seeds=3)


@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.5, 1.5, 3.5, 4.999, 5.0, 5.001, 6.0, 20.0])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_crash_at_any_time_leaves_one_image_or_none(after_s: float, is_deleted: bool) -> None:  # noqa: FBT001  a case
    async def run(world: World) -> None:
        cloud, web = simulated_cloud(world), Web(world.clock)
        web.serve(SLOW)
        async with open_ground(world, cloud=cloud, web=web, at_work=True) as ground:
            await make_region(ground.store)
            name = await ground.begin()
            await world.clock.sleep(after_s)
            if is_deleted:
                assert (await ground.room.ask(ANN).delete(f"{OWN}/{name}")).status == 202
            await lose_power(world, ground.store, "all")
        async with open_ground(world, cloud=cloud, web=web, at_work=True) as ground:
            await world.clock.sleep(150)
            assert await _is_gone(ground, name)
            assert [(each.id, each.state) for each in await ground.owned()] == ([] if is_deleted else [(name, "ready")])
        await ground.store.close()
        await cloud.stop()

    simulate(run, 3)


def test_only_so_many_are_fetched_at_once() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(SLOW)
        for _ in range(3):
            await ground.begin()
        await ground.world.clock.sleep(3)
        assert ground.web.asked.count("everything") == 1
        assert sorted(await ground.states()) == ["creating", "pending", "pending"]
        await ground.world.clock.sleep(60)
        assert await ground.states() == ["ready"] * 3

    on_ground(scenario, most=1)


RATES = {
    "cloud.error_done.create_image": 0.5,
    "cloud.error.create_image": 0.3,
    "cloud.timeout_done.remove_image": 0.3,
    "cloud.error.remove_image": 0.3,
    "cloud.stale.find_image": 0.3,
    "cloud.not_found_yet.image": 0.3,
}


def test_an_image_that_waits_for_its_turn_is_deleted_at_once() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(Page(), Page(pace_s=60.0), at="https://slow.example/")
        await ground.begin(uri="https://slow.example/")
        await ground.world.clock.sleep(1)
        waiting = await ground.begin()
        await ground.world.clock.sleep(100)
        assert (await ground.room.ask(ANN).delete(f"{OWN}/{waiting}")).status == 202
        await ground.world.clock.sleep(10)
        assert await _is_gone(ground, waiting)
        assert await ground.states() == ["creating"]

    on_ground(scenario, most=1)


def test_a_transfer_that_is_broken_off_before_it_came_to_anything_has_ended() -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.begin()
        wanted = to_cloud(await ground.store.get(ImageImport, name))
        transfers = Transfers(ground.room.service["images"].fetcher, most=1)
        moved: list[str] = []
        transfers.when_moved(moved.append)
        transfers.begin(ground.at_cloud, wanted, Secret(URI), partial(is_there, ground.store, ImageImport, name))
        assert not transfers.break_off(name)
        await ground.world.clock.sleep(1)
        assert transfers.break_off(name)
        assert moved == [name]
        transfers.forget(name)
        assert transfers.find(name) is None
        assert await ground.owned() == []

    on_ground(scenario, at_work=False)


def test_an_image_that_another_process_saw_to_be_deleted_is_not_made_by_this_one() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(SLOW)
        name = await ground.begin()
        await ground.world.clock.sleep(3)
        await unmake(ground.store, ImageImport, name)
        await ground.world.clock.sleep(60)
        assert await ground.owned() == []
        transfer = ground.driver.transfers.find(name)
        assert transfer is not None
        assert (transfer.has_ended, transfer.received) == (True, len(DISK))

    on_ground(scenario)


def test_an_image_that_somebody_removes_as_soon_as_it_came_is_brought_again() -> None:
    async def scenario(ground: Ground) -> None:
        images = ground.at_cloud
        found = images.find_image

        async def removed(image: str) -> Image | None:
            if ground.web.asked.count("everything") == 1 and await found(image):
                await images.remove_image(image)
            return await found(image)

        images.find_image = removed  # type: ignore[method-assign]  # somebody is faster
        name = await ground.begin()
        await ground.world.clock.sleep(60)
        assert [(each.id, each.state) for each in await ground.owned()] == [(name, "ready")]
        assert ground.web.asked.count("everything") == 2

    on_ground(scenario)


def test_a_cloud_that_loses_answers_keeps_nothing_of_an_image_that_was_deleted() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(Page(pace_s=0.1))
        name = await ground.begin()
        await ground.world.clock.sleep(ground.world.randomness.uniform(0, 3))
        while (await ground.room.ask(ANN).delete(f"{OWN}/{name}")).status == 503:
            await ground.world.clock.sleep(5)
        await ground.world.clock.sleep(3000)
        assert await _is_gone(ground, name)
        assert await ground.owned() == []

    on_ground(scenario, seeds=20, rates=RATES)


def test_a_cloud_that_loses_answers_still_has_one_image() -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.begin()
        await ground.world.clock.sleep(2000)
        if await _is_gone(ground, name):
            assert [(each.id, each.state) for each in await ground.owned()] == [(name, "ready")]
        else:
            assert (await ground.store.get(ImageImport, name)).status.state == "failed"
            assert await ground.owned() == []

    on_ground(scenario, seeds=20, rates={name: rate for name, rate in RATES.items() if "remove" not in name})


def test_the_address_is_told_to_nobody() -> None:
    async def scenario(ground: Ground) -> None:
        ground.web.serve(Page(), Page(body=b"\0" * 4096))
        name = await ground.begin()
        await ground.world.clock.sleep(30)
        stored = await ground.store.get(ImageImport, name)
        assert stored.spec.uri.reveal() == URI
        assert "top-secret" not in repr(stored)
        assert "example" not in (await ground.available(name)).message
        written = b"".join(path.read_bytes() for path in ground.world.disk.directory.iterdir())
        assert name.encode() in written
        assert b"top-secret" not in written

    on_ground(scenario)
