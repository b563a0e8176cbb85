"""Snapshots: the disk of a server as an image of its organization, over a whole region."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

from remuda.access.principal import Principal
from remuda.kernel.clock import Clock
from remuda.outbound.fetch import GuardedFetcher
from remuda.providers.contract.catalogue import CloudImage
from remuda.region.images import routes as api
from remuda.region.images.counts import ImageCounts
from remuda.region.images.rules import read_image
from remuda.region.images.service import Images
from remuda.region.images.transfer import ImageFetcher
from remuda.region.kinds.servers import Server
from remuda.region.servers import routes as server_api
from remuda.resources.conventions import API_VERSION, NAME
from remuda.store.kinds import ObjectLimits
from remuda.store.objects import Metadata
from tests.kit.environment import options, provided_by
from tests.kit.outbound_servers import Names
from tests.kit.region.environment import NORTH, UBUNTU, RegionEnvironment, run_region
from tests.kit.region.resource_api import OTHER_ORG, RegionApi, everywhere, member, rejection
from tests.kit.simulation.runner import World

SERVICE = everywhere("compute", "region:servers R, region:images CR")
WANTED: dict[str, Any] = {"metadata": {"name": "backup"}, "spec": {}}
Act = Callable[[RegionEnvironment, RegionApi[dict[str, Any]], str], Coroutine[Any, Any, None]]


def snapshot_of(server: str) -> str:
    return f"/api/v2/servers/{server}/snapshot"


def with_server(act: Act, *, is_running: bool = True) -> None:
    """Have a server, running or just asked for, and the images capacity of its region."""

    async def scenario(region: RegionEnvironment) -> None:
        app = region.app
        fetcher = ImageFetcher(source=GuardedFetcher(resolve=Names({})))
        services = {
            "images": Images(
                store=region.store, providers=app.providers, fetcher=fetcher, counts=ImageCounts(store=region.store)
            ),
            "servers": app.services.servers,
            "actions": app.services.server_actions,
        }
        clock: Clock = region.clock
        world = cast("World", SimpleNamespace(clock=clock, randomness=app.ports.randomness))
        environment = RegionApi(world, region.store, services, [*api.ROUTES, *server_api.ROUTES])
        server = await region.server(await region.network())
        if is_running:
            await region.until(f"/api/v2/servers/{server}", "provisioned")
        await act(region, environment, server)
        environment.app.assert_documented()

    run_region(scenario)


region = provided_by(with_server)
images = provided_by(with_server, position=1)
server = provided_by(with_server, position=2)


async def owned(environment: RegionEnvironment) -> list[CloudImage]:
    images = environment.north.provider.images
    assert images is not None
    return [each for each in await images.images() if each.organization]


def test_the_operation_of_the_contract_is_there() -> None:
    assert ("POST", "/api/v2/servers/{serverID}/snapshot") in {(each.method, each.path) for each in server_api.ROUTES}


async def test_snapshots_of_an_organization_count_among_its_images(
    region: RegionEnvironment, images: RegionApi[dict[str, Any]], server: str
) -> None:
    region.store.registry.limits = ObjectLimits(default=1)
    ask = images.ask(SERVICE)
    replies = await asyncio.gather(*(ask.post(snapshot_of(server), WANTED) for _ in range(3)))
    assert sorted(reply.status for reply in replies) == [201, 403, 403]
    assert len(await owned(region)) == 1


async def test_a_snapshot_is_described_by_what_its_server_was_made_of(
    region: RegionEnvironment, images: RegionApi[dict[str, Any]], server: str
) -> None:
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
    reply = await images.ask(SERVICE).post(snapshot_of(server), wanted)
    assert reply.status == 201, reply
    made = reply.json
    assert made["metadata"]["name"] == "backup"
    assert made["metadata"]["tags"] == [
        {"name": "team", "value": "blue"},
        {"name": "images.unikorn-cloud.org:source", "value": "snapshot"},
        {"name": "images.unikorn-cloud.org:organization-id", "value": region.organization},
    ]
    assert made["status"]["state"] == "creating"
    listed = (await images.ask(SERVICE).get(api.IMAGES.format(regionID=NORTH))).json
    (source,) = [each for each in listed if each["metadata"]["id"] == UBUNTU]
    assert made["spec"] == source["spec"]
    query = {"organizationID": region.organization, "scope": "owned"}
    await region.clock.sleep(10)
    (shown,) = (await images.ask(SERVICE).get(api.IMAGES.format(regionID=NORTH), query)).json
    assert (shown["metadata"]["id"], shown["status"]["state"]) == (made["metadata"]["id"], "ready")


async def test_the_same_request_again_makes_no_second_snapshot(
    region: RegionEnvironment, images: RegionApi[dict[str, Any]], server: str
) -> None:
    client = images.ask(SERVICE)
    first = await client.post(snapshot_of(server), WANTED, idempotency_key="once")
    again = await client.post(snapshot_of(server), WANTED, idempotency_key="once")
    assert (first.status, again.json) == (201, first.json)
    assert len(await owned(region)) == 1


async def test_a_snapshot_whose_answer_was_lost_is_the_one_that_is_there(
    region: RegionEnvironment, images: RegionApi[dict[str, Any]], server: str
) -> None:
    context: Any = SimpleNamespace(principal=SERVICE, operation="d0000000-0000-4000-8000-000000000001")
    body: Any = SimpleNamespace(metadata=SimpleNamespace(name="backup", tags=()))
    first = await images.service["actions"].snapshot(context, server, body)
    again = await images.service["actions"].snapshot(context, server, body)
    assert (first, [first]) == (again, [read_image(each) for each in await owned(region)])


async def test_permissions_to_the_server_and_to_images_are_both_needed(
    region: RegionEnvironment, images: RegionApi[dict[str, Any]], server: str
) -> None:
    stranger = member("eve@example.com", OTHER_ORG, "region:servers R, region:images C")
    assert (await images.ask(stranger).post(snapshot_of(server), WANTED)).status == 404
    lacking: list[tuple[Principal, str]] = [
        (member("ann@example.com", region.organization, "region:images C"), "'read' on endpoint 'region:servers'"),
        (member("bob@example.com", region.organization, "region:servers R"), "'create' on endpoint 'region:images'"),
    ]
    for who, right in lacking:
        status, told = rejection(await images.ask(who).post(snapshot_of(server), WANTED))
        assert (status, right in told) == (403, True)
    assert await owned(region) == []
    both = member("pat@example.com", region.organization, "region:servers R, region:images C")
    assert (await images.ask(both).post(snapshot_of(server), WANTED)).status == 201


@options(is_running=False)
async def test_a_server_that_cannot_be_snapshotted_now_is_told_as_that(
    region: RegionEnvironment, images: RegionApi[dict[str, Any]], server: str
) -> None:
    client = images.ask(SERVICE)
    absent = (400, "server is not at its provider at the moment: wait until it is provisioned")
    assert rejection(await client.post(snapshot_of(server), WANTED)) == absent
    await region.clock.sleep(1.0)
    told = (400, "server cannot be snapshotted in its current state")
    assert rejection(await client.post(snapshot_of(server), WANTED)) == told
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    assert rejection(await client.post(snapshot_of(server), WANTED)) == (400, "server is being deleted")
    await region.until_gone(f"/api/v2/servers/{server}")
    assert rejection(await client.post(snapshot_of(server), WANTED)) == (404, "resource not found")


async def test_a_server_whose_image_is_gone_and_one_of_the_first_generation_are_refused(
    region: RegionEnvironment, images: RegionApi[dict[str, Any]], server: str
) -> None:
    found = await region.store.get(Server, server)
    old = "d0000000-0000-4000-8000-000000000002"
    labels = {NAME: "old", **found.metadata.labels}
    del labels[API_VERSION]
    await region.store.create(Server(metadata=Metadata(name=old, labels=labels), spec=found.spec))
    assert (await images.ask(SERVICE).post(snapshot_of(old), WANTED)).status == 404
    catalogue = region.north.provider.images
    assert catalogue is not None

    async def gone(image: str) -> CloudImage | None:  # noqa: ARG001  the contract's name
        return None

    async def nothing() -> list[CloudImage]:
        return []

    catalogue.find_image, catalogue.images = gone, nothing  # type: ignore[method-assign]  # as if it were gone
    (await region.app.providers.get(NORTH)).invalidate_images()
    told = (400, "server cannot be snapshotted: the image that it was created from was deleted")
    assert rejection(await images.ask(SERVICE).post(snapshot_of(server), WANTED)) == told
