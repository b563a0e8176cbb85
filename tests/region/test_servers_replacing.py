"""Another server in the place of one: it has the port, the addresses and the MAC, and there are never two."""

import pytest

from remuda.region.kinds.servers import Replacement
from remuda.region.servers.routes import SERVERS
from tests.region.servers_ground import (
    COMPUTE,
    DEBIAN,
    ROCKY,
    SMALL,
    STANDARD,
    TENANT,
    UBUNTU,
    Yard,
    encoded,
    in_yard,
    update,
)
from tests.region.shown import shown_of

_BODY = {"flavorId": STANDARD, "imageId": ROCKY}


async def _one(yard: Yard, server: str, number: int) -> None:
    """See that there is the server of this number, and nothing else."""
    assert [each.handle.name for each in yard.at_cloud()] == [await yard.name_of(server, number)]
    assert len(await yard.ports()) == len(await yard.addresses()) == 1
    assert (await yard.read(server))["metadata"]["provisioningStatus"] == "provisioned"
    stored = await yard.stored(server)
    assert stored.status.replacement == Replacement(counter=number, done=number)


def test_a_replacement_keeps_port_addresses_and_mac_and_has_nothing_else_of_the_old_one() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network(), networking={"publicIP": True})
        await yard.rest()
        before, (port,), (made,) = await yard.read(server), await yard.ports(), yard.at_cloud()
        data = encoded("#!/bin/sh\ntouch /new\n")
        await yard.replace(server, flavorId=SMALL, imageId=DEBIAN, userData=data)
        await yard.rest()
        await _one(yard, server, 1)
        (now,), (kept,) = yard.at_cloud(), await yard.ports()
        assert (now.flavor, now.image) == (SMALL, DEBIAN)
        assert now.id != made.id
        assert (kept.spec, kept.public_address) == (port.spec, port.public_address)
        assert shown_of(await yard.read(server)) == shown_of(before)
        stored = (await yard.stored(server)).status
        assert (stored.provider_id, stored.flavor_id, stored.image_id) == (now.id, SMALL, DEBIAN)
        assert (await yard.timeline(server)).count("Made") == 2
        await yard.look_again()

    in_yard(scenario, at_work=True)


@pytest.mark.parametrize("after_s", [0, 0.1, 0.3, 0.6, 1, 3, 5, 6, 7, 8, 9, 12])
def test_replaced_again_before_the_first_replacement_is_there_it_is_the_last_that_stays(after_s: float) -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        before = shown_of(await yard.read(server))
        await yard.replace(server, imageId=DEBIAN)
        await yard.world.clock.sleep(after_s)
        await yard.replace(server, imageId=ROCKY)
        await yard.rest()
        await _one(yard, server, 2)
        assert [each.image for each in yard.at_cloud()] == [ROCKY]
        assert shown_of(await yard.read(server)) == before
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("fault", ["timeout_done", "error_done"])
@pytest.mark.parametrize("verb", ["remove_server", "create_server"])
def test_a_lost_answer_makes_no_second_replacement(fault: str, verb: str) -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        yard.at_fault(fault, verb)  # type: ignore[arg-type]  # it is one
        await yard.replace(server, imageId=DEBIAN)
        await yard.rest()
        await yard.rest()
        await _one(yard, server, 1)
        assert "Rebuilding" not in await yard.timeline(server), "it was made of what is wanted"
        await yard.look_again()

    in_yard(scenario, at_work=True)


def test_replaced_again_while_nobody_knows_what_became_of_the_first_it_is_the_last_that_stays() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        yard.at_fault("timeout_done", "create_server")
        await yard.replace(server, imageId=DEBIAN)
        await yard.world.clock.sleep(10)
        assert [each.handle.name for each in yard.at_cloud()] == [await yard.name_of(server, 1)]
        assert (await yard.stored(server)).status.replacement == Replacement(counter=1, done=0, cleared=1)
        await yard.replace(server, imageId=ROCKY)
        await yard.rest()
        await yard.rest()
        await _one(yard, server, 2)
        await yard.look_again()

    in_yard(scenario, at_work=True)


def test_the_old_image_chosen_while_nobody_knows_what_became_of_a_replacement_is_put_on_it() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        yard.at_fault("timeout_done", "create_server")
        await yard.replace(server, imageId=DEBIAN)
        await yard.world.clock.sleep(10)
        await yard.put(server, update())
        await yard.rest()
        await yard.rest()
        await _one(yard, server, 1)
        assert [each.image for each in yard.at_cloud()] == [UBUNTU]

    in_yard(scenario, at_work=True)


def test_a_replacement_that_cannot_be_brought_up_is_repaired_by_another() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        before = shown_of(await yard.read(server))
        await yard.replace(server, imageId=DEBIAN)
        for _ in range(240):
            for each in yard.at_cloud():
                if each.state == "building":
                    yard.cloud.operator.fail(each.id, "no disk")
            await yard.world.clock.sleep(0.25)
        assert (await yard.read(server))["metadata"]["provisioningStatus"] == "error"
        assert (await yard.stored(server)).status.provider_create_failures == 3
        await yard.replace(server, imageId=ROCKY)
        while [each.state for each in yard.at_cloud()] != ["building"]:
            await yard.world.clock.sleep(0.25)
        yard.cloud.operator.fail(server, "no disk")  # once is not too often: it is counted anew
        await yard.rest()
        await _one(yard, server, 2)
        stored = await yard.stored(server)
        assert (stored.status.provider_create_failures, stored.status.provider_create_retrying) == (0, False)
        assert shown_of(await yard.read(server)) == before
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("after_s", [0, 0.1, 0.3, 0.6, 3, 6, 7, 9])
def test_given_up_while_it_is_replaced_it_leaves_nothing(after_s: float) -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        await yard.replace(server, imageId=DEBIAN)
        await yard.world.clock.sleep(after_s)
        await yard.delete(server)
        await yard.rest()
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True, is_instant=False)


def test_many_replacements_that_never_came_to_be_do_not_hold_up_the_end() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        for _ in range(12):
            await yard.replace(server)
        await yard.delete(server)
        await yard.rest()
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True)


def test_a_verb_is_sent_to_the_one_that_is_there_now() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        await yard.replace(server)
        await yard.rest()
        assert (await yard.servers.ask(TENANT).post(f"{SERVERS}/{server}/stop")).status == 202
        await yard.rest()
        assert [each.state for each in yard.at_cloud()] == ["stopped"]
        await _one(yard, server, 1)

    in_yard(scenario, at_work=True)


def test_an_image_that_is_changed_after_a_replacement_rebuilds_what_took_the_place() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        await yard.replace(server, imageId=DEBIAN)
        await yard.put(server, update(imageId=ROCKY))
        await yard.rest()
        await _one(yard, server, 1)
        assert [each.image for each in yard.at_cloud()] == [ROCKY]
        await yard.put(server, update(imageId=UBUNTU))
        await yard.rest()
        assert [each.image for each in yard.at_cloud()] == [UBUNTU]

    in_yard(scenario, at_work=True)


def test_what_was_made_up_before_something_else_was_asked_for_is_refused_and_changes_nothing() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.rest()
        seen = (await yard.read(server))["status"]["revision"]
        await yard.replace(server, imageId=DEBIAN)
        await yard.rest()
        at, before = f"{SERVERS}/{server}", await yard.stored(server)
        for reply in (
            await yard.servers.ask(COMPUTE).send("POST", f"{at}/replace", query={"revision": seen}, body=_BODY),
            await yard.servers.ask(TENANT).send("PUT", at, query={"revision": seen}, body=update(imageId=UBUNTU)),
        ):
            assert reply.status == 412
            assert reply.json["error_description"] == (
                f"The Server {server} does not match revision: read it again, then decide."
            )
        assert await yard.stored(server) == before
        now = (await yard.read(server))["status"]["revision"]
        again = await yard.servers.ask(COMPUTE).send("POST", f"{at}/replace", query={"revision": now}, body=_BODY)
        assert again.status == 202
        await yard.rest()
        await _one(yard, server, 2)
        assert (await yard.read(server))["status"]["revision"] != now

    in_yard(scenario, at_work=True)
