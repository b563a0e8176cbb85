"""Requests to servers that are sent again: under a key they are carried out once, without one they do no harm."""

from typing import Any

from remuda.region.servers.routes import SERVERS
from tests.kit.environment import options
from tests.kit.region.resource_api import rejection
from tests.kit.region.servers import COMPUTE, DEBIAN, STANDARD, TENANT, UBUNTU, ServersEnvironment, update, wanted

NOT_KEPT = (409, "response_not_stored")


def code_of(reply: Any) -> tuple[int, str]:
    return reply.status, reply.json["code"]


@options(at_work=True)
async def test_a_create_that_is_repeated_under_its_key_tells_how_the_server_stands(
    region_servers: ServersEnvironment,
) -> None:
    client, body = region_servers.servers.ask(TENANT), wanted(await region_servers.make_network())
    first = await client.post(SERVERS, body, idempotency_key="once")
    await region_servers.rest()
    again = await client.post(SERVERS, body, idempotency_key="once")
    assert (first.status, again.status) == (201, 201)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json["metadata"]["id"] == first.json["metadata"]["id"]
    assert again.json["metadata"]["provisioningStatus"] == "provisioned"
    assert len(region_servers.at_cloud()) == 1
    other = wanted(body["spec"]["networkId"], "other")
    assert (await client.post(SERVERS, other, idempotency_key="once")).status == 422
    assert (await client.post(SERVERS, body)).status == 409


@options(at_work=True)
async def test_a_create_that_is_repeated_under_its_key_makes_no_second_server_when_the_first_is_gone(
    region_servers: ServersEnvironment,
) -> None:
    client, body = region_servers.servers.ask(TENANT), wanted(await region_servers.make_network())
    server = (await client.post(SERVERS, body, idempotency_key="once")).json["metadata"]["id"]
    await region_servers.rest()
    await region_servers.delete(server)
    await region_servers.rest()
    assert code_of(await client.post(SERVERS, body, idempotency_key="once")) == NOT_KEPT
    await region_servers.rest()
    assert region_servers.at_cloud() == []

    made = await client.post(SERVERS, body, idempotency_key="twice")
    assert (made.status, made.json["metadata"]["id"]) == (201, server), "another key makes another, of the same id"
    assert code_of(await client.post(SERVERS, body, idempotency_key="once")) == NOT_KEPT, "it made another one"


@options(at_work=True)
async def test_a_change_that_is_repeated_under_its_key_is_made_once_and_tells_how_the_server_stands(
    region_servers: ServersEnvironment,
) -> None:
    client, server = (
        region_servers.servers.ask(TENANT),
        await region_servers.make_server(await region_servers.make_network()),
    )
    await region_servers.rest()
    path = f"{SERVERS}/{server}"
    changed = await client.put(path, update(imageId=DEBIAN), idempotency_key="once")
    await region_servers.rest()
    await region_servers.put(server, update(imageId=UBUNTU))
    await region_servers.rest()
    again = await client.put(path, update(imageId=DEBIAN), idempotency_key="once")
    assert (changed.status, again.status) == (202, 202)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json["spec"]["imageId"] == UBUNTU, "how it stands now"
    await region_servers.rest()
    assert [each.image for each in region_servers.at_cloud()] == [UBUNTU]
    await region_servers.delete(server)
    await region_servers.rest()
    assert (await client.put(path, update(imageId=DEBIAN), idempotency_key="once")).status == 404


@options(at_work=True, is_instant=False)
async def test_a_change_that_is_repeated_without_a_key_changes_nothing_more(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    for _ in range(3):
        await region_servers.put(server, update(imageId=DEBIAN, userData=""))
        await region_servers.world.clock.sleep(0.5)
    await region_servers.rest()
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", DEBIAN)]
    assert [each for each in await region_servers.timeline(server) if "Reb" in each] == ["Rebuilding", "Rebuilt"]
    generation = (await region_servers.stored(server)).metadata.generation
    await region_servers.put(server, update(imageId=DEBIAN))
    assert (await region_servers.stored(server)).metadata.generation == generation


@options(at_work=True)
async def test_a_replacement_that_is_repeated_under_its_key_is_made_once_even_after_another(
    region_servers: ServersEnvironment,
) -> None:
    client, server = (
        region_servers.servers.ask(COMPUTE),
        await region_servers.make_server(await region_servers.make_network()),
    )
    await region_servers.rest()
    path, body = f"{SERVERS}/{server}/replace", {"flavorId": STANDARD, "imageId": UBUNTU}
    assert (await client.post(path, body, idempotency_key="once")).status == 202
    await region_servers.rest()
    assert (await client.post(path, body, idempotency_key="another")).status == 202
    await region_servers.rest()
    again = await client.post(path, body, idempotency_key="once")
    assert (again.status, again.headers["idempotency-replayed"]) == (202, "true")
    await region_servers.rest()
    assert (await region_servers.stored(server)).status.replacement.completed == 2
    assert rejection(await client.post(path, {**body, "imageId": DEBIAN}, idempotency_key="once"))[0] == 422
