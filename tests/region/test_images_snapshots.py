"""Snapshots: the disk of a server as an image of its organization, over a whole region."""

from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

from remuda.access.principal import Principal
from remuda.kernel.clock import Clock
from remuda.outbound.fetch import Guarded
from remuda.providers.contract.catalogue import Image
from remuda.region.images import routes as api
from remuda.region.images.rules import read_image
from remuda.region.images.service import Images, Snapshots
from remuda.region.images.transfer import ImageFetcher
from remuda.region.kinds.servers import Server
from remuda.region.servers.provider_spec import server_handle
from remuda.resources.conventions import API_VERSION, NAME
from remuda.store.objects import Metadata
from tests.outbound.servers import Names
from tests.region.house import NORTH, UBUNTU, RegionHouse, in_a_region
from tests.region.room import OTHER_ORG, Room, everywhere, member, refusal
from tests.sim.runner import World

SERVICE = everywhere("compute", "region:servers R, region:images CR")
WANTED: dict[str, Any] = {"metadata": {"name": "backup"}, "spec": {}}
Act = Callable[[RegionHouse, Room[dict[str, Any]], str], Coroutine[Any, Any, None]]


def snapshot_of(server: str) -> str:
    return f"/api/v2/servers/{server}/snapshot"


def with_server(act: Act, *, is_running: bool = True) -> None:
    """Have a server, running or just asked for, and the images room of its region."""

    async def scenario(house: RegionHouse) -> None:
        app = house.app
        fetcher = ImageFetcher(source=Guarded(resolve=Names({})))
        services = {
            "images": Images(store=house.store, clouds=app.clouds, fetcher=fetcher),
            "snapshots": Snapshots(store=house.store, clouds=app.clouds, handle_of=server_handle),
        }
        clock: Clock = house.clock
        world = cast("World", SimpleNamespace(clock=clock, randomness=app.ports.randomness))
        room = Room(world, house.store, services, api.ROUTES)
        server = await house.server(await house.network())
        if is_running:
            await house.until(f"/api/v2/servers/{server}", "provisioned")
        await act(house, room, server)
        room.app.assert_documented()

    in_a_region(scenario)


async def owned(house: RegionHouse) -> list[Image]:
    images = house.north.provider.images
    assert images is not None
    return [each for each in await images.images() if each.organization]


def test_a_snapshot_is_described_by_what_its_server_was_made_of() -> None:
    async def act(house: RegionHouse, room: Room[dict[str, Any]], server: str) -> None:
        wanted = {
            "metadata": {
                "name": "backup",
                "tags": [
                    {"name": "team", "value": "blue"},
                    {"name": "images.unikorn-cloud.org:source", "value": "import"},
                    {"name": "compute.unikorn-cloud.org/instance", "value": "x"},
                ],
            },
            "spec": {},
        }
        reply = await room.ask(SERVICE).post(snapshot_of(server), wanted)
        assert reply.status == 201, reply
        made = reply.json
        assert made["metadata"]["name"] == "backup"
        assert made["metadata"]["tags"] == [
            {"name": "team", "value": "blue"},
            {"name": "images.unikorn-cloud.org:source", "value": "snapshot"},
            {"name": "images.unikorn-cloud.org:organization-id", "value": house.organization},
        ]
        assert made["status"]["state"] == "creating"
        listed = (await room.ask(SERVICE).get(api.IMAGES.format(regionID=NORTH))).json
        (source,) = [each for each in listed if each["metadata"]["id"] == UBUNTU]
        assert made["spec"] == source["spec"]
        query = {"organizationID": house.organization, "scope": "owned"}
        await house.clock.sleep(10)
        (shown,) = (await room.ask(SERVICE).get(api.IMAGES.format(regionID=NORTH), query)).json
        assert (shown["metadata"]["id"], shown["status"]["state"]) == (made["metadata"]["id"], "ready")

    with_server(act)


def test_the_same_request_again_makes_no_second_snapshot() -> None:
    async def act(house: RegionHouse, room: Room[dict[str, Any]], server: str) -> None:
        client = room.ask(SERVICE)
        first = await client.post(snapshot_of(server), WANTED, idempotency_key="once")
        again = await client.post(snapshot_of(server), WANTED, idempotency_key="once")
        assert (first.status, again.json) == (201, first.json)
        assert len(await owned(house)) == 1

    with_server(act)


def test_a_snapshot_whose_answer_was_lost_is_the_one_that_is_there() -> None:
    async def act(house: RegionHouse, room: Room[dict[str, Any]], server: str) -> None:
        context: Any = SimpleNamespace(principal=SERVICE, operation="d0000000-0000-4000-8000-000000000001")
        body: Any = SimpleNamespace(metadata=SimpleNamespace(name="backup", tags=()))
        first = await room.service["snapshots"].create(context, server, body)
        again = await room.service["snapshots"].create(context, server, body)
        assert (first, [first]) == (again, [read_image(each) for each in await owned(house)])

    with_server(act)


def test_rights_to_the_server_and_to_images_are_both_needed() -> None:
    async def act(house: RegionHouse, room: Room[dict[str, Any]], server: str) -> None:
        stranger = member("eve@example.com", OTHER_ORG, "region:servers R, region:images C")
        assert (await room.ask(stranger).post(snapshot_of(server), WANTED)).status == 404
        lacking: list[tuple[Principal, str]] = [
            (member("ann@example.com", house.organization, "region:images C"), "'read' on endpoint 'region:servers'"),
            (member("bob@example.com", house.organization, "region:servers R"), "'create' on endpoint 'region:images'"),
        ]
        for who, right in lacking:
            status, told = refusal(await room.ask(who).post(snapshot_of(server), WANTED))
            assert (status, right in told) == (403, True)
        assert await owned(house) == []
        both = member("pat@example.com", house.organization, "region:servers R, region:images C")
        assert (await room.ask(both).post(snapshot_of(server), WANTED)).status == 201

    with_server(act)


def test_a_server_that_cannot_be_snapshotted_now_is_told_as_that() -> None:
    async def act(house: RegionHouse, room: Room[dict[str, Any]], server: str) -> None:
        client = room.ask(SERVICE)
        absent = (400, "server is not at its provider at the moment: wait until it is provisioned")
        assert refusal(await client.post(snapshot_of(server), WANTED)) == absent
        await house.clock.sleep(1.0)
        told = (400, "server cannot be snapshotted in its current state")
        assert refusal(await client.post(snapshot_of(server), WANTED)) == told
        assert (await house.root.delete(f"/api/v2/servers/{server}")).status == 202
        assert refusal(await client.post(snapshot_of(server), WANTED)) == (400, "server is being deleted")
        await house.until_gone(f"/api/v2/servers/{server}")
        assert refusal(await client.post(snapshot_of(server), WANTED)) == (404, "resource not found")

    with_server(act, is_running=False)


def test_a_server_whose_image_is_gone_and_one_of_the_first_generation_are_refused() -> None:
    async def act(house: RegionHouse, room: Room[dict[str, Any]], server: str) -> None:
        found = await house.store.get(Server, server)
        old = "d0000000-0000-4000-8000-000000000002"
        labels = {NAME: "old", **found.metadata.labels}
        del labels[API_VERSION]
        await house.store.create(Server(metadata=Metadata(name=old, labels=labels), spec=found.spec))
        assert (await room.ask(SERVICE).post(snapshot_of(old), WANTED)).status == 404
        catalogue = house.north.provider.images
        assert catalogue is not None

        async def gone(image: str) -> Image | None:  # noqa: ARG001  the contract's name
            return None

        async def nothing() -> list[Image]:
            return []

        catalogue.find_image, catalogue.images = gone, nothing  # type: ignore[method-assign]  # as if it were gone
        (await house.app.clouds.get(NORTH)).forget_images()
        told = (400, "server cannot be snapshotted: the image that it was created from was deleted")
        assert refusal(await room.ask(SERVICE).post(snapshot_of(server), WANTED)) == told

    with_server(act)
