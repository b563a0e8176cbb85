"""Requests to servers that are sent again: under a key they are carried out once, without one they do no harm."""

from typing import Any

from remuda.region.servers.routes import SERVERS
from tests.region.room import refusal
from tests.region.servers_ground import COMPUTE, DEBIAN, STANDARD, TENANT, UBUNTU, Yard, in_yard, update, wanted

NOT_KEPT = (409, "answer_not_kept")


def code_of(reply: Any) -> tuple[int, str]:
    return reply.status, reply.json["code"]


def test_a_create_that_is_repeated_under_its_key_tells_how_the_server_stands() -> None:
    async def scenario(yard: Yard) -> None:
        client, body = yard.servers.ask(TENANT), wanted(await yard.make_network())
        first = await client.post(SERVERS, body, idempotency_key="once")
        await yard.rest()
        again = await client.post(SERVERS, body, idempotency_key="once")
        assert (first.status, again.status) == (201, 201)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json["metadata"]["id"] == first.json["metadata"]["id"]
        assert again.json["metadata"]["provisioningStatus"] == "provisioned"
        assert len(yard.at_cloud()) == 1
        other = wanted(body["spec"]["networkId"], "other")
        assert (await client.post(SERVERS, other, idempotency_key="once")).status == 422
        assert (await client.post(SERVERS, body)).status == 409

    in_yard(scenario, at_work=True)


def test_a_create_that_is_repeated_under_its_key_makes_no_second_server_when_the_first_is_gone() -> None:
    async def scenario(yard: Yard) -> None:
        client, body = yard.servers.ask(TENANT), wanted(await yard.make_network())
        server = (await client.post(SERVERS, body, idempotency_key="once")).json["metadata"]["id"]
        await yard.rest()
        await yard.delete(server)
        await yard.rest()
        assert code_of(await client.post(SERVERS, body, idempotency_key="once")) == NOT_KEPT
        await yard.rest()
        assert yard.at_cloud() == []

        made = await client.post(SERVERS, body, idempotency_key="twice")
        assert (made.status, made.json["metadata"]["id"]) == (201, server), "another key makes another, of the same id"
        assert code_of(await client.post(SERVERS, body, idempotency_key="once")) == NOT_KEPT, "it made another one"

    in_yard(scenario, at_work=True)


def test_a_change_that_is_repeated_under_its_key_is_made_once_and_tells_how_the_server_stands() -> None:
    async def scenario(yard: Yard) -> None:
        client, server = yard.servers.ask(TENANT), await yard.make_server(await yard.make_network())
        await yard.rest()
        path = f"{SERVERS}/{server}"
        changed = await client.put(path, update(imageId=DEBIAN), idempotency_key="once")
        await yard.rest()
        await yard.put(server, update(imageId=UBUNTU))
        await yard.rest()
        again = await client.put(path, update(imageId=DEBIAN), idempotency_key="once")
        assert (changed.status, again.status) == (202, 202)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json["spec"]["imageId"] == UBUNTU, "how it stands now"
        await yard.rest()
        assert [each.image for each in yard.at_cloud()] == [UBUNTU]
        await yard.delete(server)
        await yard.rest()
        assert (await client.put(path, update(imageId=DEBIAN), idempotency_key="once")).status == 404

    in_yard(scenario, at_work=True)


def test_a_change_that_is_repeated_without_a_key_changes_nothing_more() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        for _ in range(3):
            await yard.put(server, update(imageId=DEBIAN, userData=""))
            await yard.world.clock.sleep(0.5)
        await yard.rest()
        await yard.put(server, update(imageId=DEBIAN))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", DEBIAN)]
        assert [each for each in await yard.timeline(server) if "Reb" in each] == ["Rebuilding", "Rebuilt"]
        generation = (await yard.stored(server)).metadata.generation
        await yard.put(server, update(imageId=DEBIAN))
        assert (await yard.stored(server)).metadata.generation == generation

    in_yard(scenario, at_work=True, is_instant=False)


def test_a_replacement_that_is_repeated_under_its_key_is_made_once_even_after_another() -> None:
    async def scenario(yard: Yard) -> None:
        client, server = yard.servers.ask(COMPUTE), await yard.make_server(await yard.make_network())
        await yard.rest()
        path, body = f"{SERVERS}/{server}/replace", {"flavorId": STANDARD, "imageId": UBUNTU}
        assert (await client.post(path, body, idempotency_key="once")).status == 202
        await yard.rest()
        assert (await client.post(path, body, idempotency_key="another")).status == 202
        await yard.rest()
        again = await client.post(path, body, idempotency_key="once")
        assert (again.status, again.headers["idempotency-replayed"]) == (202, "true")
        await yard.rest()
        assert (await yard.stored(server)).status.replacement.done == 2
        assert refusal(await client.post(path, {**body, "imageId": DEBIAN}, idempotency_key="once"))[0] == 422

    in_yard(scenario, at_work=True)
