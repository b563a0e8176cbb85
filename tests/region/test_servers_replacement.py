"""Another server in the place of one: it has the port, the addresses and the MAC, and there are never two."""

import pytest

from remuda.region.kinds.servers import ReplacementStatus
from remuda.region.servers.routes import SERVERS
from tests.kit.environment import options
from tests.kit.region.server_view import shown_of
from tests.kit.region.servers import (
    COMPUTE,
    DEBIAN,
    ROCKY,
    SMALL,
    STANDARD,
    TENANT,
    UBUNTU,
    ServersEnvironment,
    encoded,
    update,
)

_BODY = {"flavorId": STANDARD, "imageId": ROCKY}


async def _one(region_servers: ServersEnvironment, server: str, number: int) -> None:
    """See that there is the server of this number, and nothing else."""
    assert [each.handle.name for each in region_servers.at_cloud()] == [await region_servers.name_of(server, number)]
    assert len(await region_servers.ports()) == len(await region_servers.addresses()) == 1
    assert (await region_servers.read(server))["metadata"]["provisioningStatus"] == "provisioned"
    stored = await region_servers.stored(server)
    assert stored.status.replacement == ReplacementStatus(started=number, completed=number)


@options(at_work=True)
async def test_a_replacement_keeps_port_addresses_and_mac_and_has_nothing_else_of_the_old_one(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network(), networking={"publicIP": True})
    await region_servers.rest()
    before, (port,), (made,) = (
        await region_servers.read(server),
        await region_servers.ports(),
        region_servers.at_cloud(),
    )
    data = encoded("#!/bin/sh\ntouch /new\n")
    await region_servers.replace(server, flavorId=SMALL, imageId=DEBIAN, userData=data)
    await region_servers.rest()
    await _one(region_servers, server, 1)
    (now,), (kept,) = region_servers.at_cloud(), await region_servers.ports()
    assert (now.flavor, now.image) == (SMALL, DEBIAN)
    assert now.id != made.id
    assert (kept.spec, kept.public_address) == (port.spec, port.public_address)
    assert shown_of(await region_servers.read(server)) == shown_of(before)
    stored = (await region_servers.stored(server)).status
    assert (stored.provider_id, stored.flavor_id, stored.image_id) == (now.id, SMALL, DEBIAN)
    assert (await region_servers.timeline(server)).count("Created") == 2
    await region_servers.confirm_absence()


@pytest.mark.parametrize("after_s", [0, 0.1, 0.3, 0.6, 1, 3, 5, 6, 7, 8, 9, 12])
@options(at_work=True, is_instant=False)
async def test_replaced_again_before_the_first_replacement_is_there_it_is_the_last_that_stays(
    region_servers: ServersEnvironment, after_s: float
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    before = shown_of(await region_servers.read(server))
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.world.clock.sleep(after_s)
    await region_servers.replace(server, imageId=ROCKY)
    await region_servers.rest()
    await _one(region_servers, server, 2)
    assert [each.image for each in region_servers.at_cloud()] == [ROCKY]
    assert shown_of(await region_servers.read(server)) == before
    await region_servers.confirm_absence()


@pytest.mark.parametrize("fault", ["timeout_after_write", "error_after_write"])
@pytest.mark.parametrize("verb", ["remove_server", "create_server"])
@options(at_work=True)
async def test_a_lost_answer_makes_no_second_replacement(
    region_servers: ServersEnvironment, fault: str, verb: str
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    region_servers.at_fault(fault, verb)  # type: ignore[arg-type]  # it is one
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.rest()
    await region_servers.rest()
    await _one(region_servers, server, 1)
    assert "Rebuilding" not in await region_servers.timeline(server), "it was made of what is wanted"
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_replaced_again_while_nobody_knows_what_became_of_the_first_it_is_the_last_that_stays(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    region_servers.at_fault("timeout_after_write", "create_server")
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.world.clock.sleep(10)
    assert [each.handle.name for each in region_servers.at_cloud()] == [await region_servers.name_of(server, 1)]
    assert (await region_servers.stored(server)).status.replacement == ReplacementStatus(
        started=1, completed=0, predecessors_deleted=1
    )
    await region_servers.replace(server, imageId=ROCKY)
    await region_servers.rest()
    await region_servers.rest()
    await _one(region_servers, server, 2)
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_the_old_image_chosen_while_nobody_knows_what_became_of_a_replacement_is_put_on_it(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    region_servers.at_fault("timeout_after_write", "create_server")
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.world.clock.sleep(10)
    await region_servers.put(server, update())
    await region_servers.rest()
    await region_servers.rest()
    await _one(region_servers, server, 1)
    assert [each.image for each in region_servers.at_cloud()] == [UBUNTU]


@options(at_work=True, is_instant=False)
async def test_a_replacement_that_cannot_be_brought_up_is_repaired_by_another(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    before = shown_of(await region_servers.read(server))
    await region_servers.replace(server, imageId=DEBIAN)
    for _ in range(240):
        for each in region_servers.at_cloud():
            if each.state == "building":
                region_servers.cloud.operator.fail(each.id, "no disk")
        await region_servers.world.clock.sleep(0.25)
    assert (await region_servers.read(server))["metadata"]["provisioningStatus"] == "error"
    assert (await region_servers.stored(server)).status.provider_create_failures == 3
    await region_servers.replace(server, imageId=ROCKY)
    while [each.state for each in region_servers.at_cloud()] != ["building"]:
        await region_servers.world.clock.sleep(0.25)
    region_servers.cloud.operator.fail(server, "no disk")  # once is not too often: it is counted again
    await region_servers.rest()
    await _one(region_servers, server, 2)
    stored = await region_servers.stored(server)
    assert (stored.status.provider_create_failures, stored.status.provider_create_retrying) == (0, False)
    assert shown_of(await region_servers.read(server)) == before
    await region_servers.confirm_absence()


@pytest.mark.parametrize("after_s", [0, 0.1, 0.3, 0.6, 3, 6, 7, 9])
@options(at_work=True, is_instant=False)
async def test_given_up_while_it_is_replaced_it_leaves_nothing(
    region_servers: ServersEnvironment, after_s: float
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.world.clock.sleep(after_s)
    await region_servers.delete(server)
    await region_servers.rest()
    await region_servers.nothing_is_left()


@options(at_work=True)
async def test_many_replacements_that_never_came_to_be_do_not_hold_up_the_end(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    for _ in range(12):
        await region_servers.replace(server)
    await region_servers.delete(server)
    await region_servers.rest()
    await region_servers.nothing_is_left()


@options(at_work=True)
async def test_a_verb_is_sent_to_the_one_that_is_there_now(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    await region_servers.replace(server)
    await region_servers.rest()
    assert (await region_servers.servers.ask(TENANT).post(f"{SERVERS}/{server}/stop")).status == 202
    await region_servers.rest()
    assert [each.state for each in region_servers.at_cloud()] == ["stopped"]
    await _one(region_servers, server, 1)


@options(at_work=True)
async def test_an_image_that_is_changed_after_a_replacement_rebuilds_what_took_the_place(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.put(server, update(imageId=ROCKY))
    await region_servers.rest()
    await _one(region_servers, server, 1)
    assert [each.image for each in region_servers.at_cloud()] == [ROCKY]
    await region_servers.put(server, update(imageId=UBUNTU))
    await region_servers.rest()
    assert [each.image for each in region_servers.at_cloud()] == [UBUNTU]


@options(at_work=True)
async def test_what_was_made_up_before_something_else_was_asked_for_is_refused_and_changes_nothing(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    seen = (await region_servers.read(server))["status"]["revision"]
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.rest()
    at, before = f"{SERVERS}/{server}", await region_servers.stored(server)
    for reply in (
        await region_servers.servers.ask(COMPUTE).send("POST", f"{at}/replace", query={"revision": seen}, body=_BODY),
        await region_servers.servers.ask(TENANT).send("PUT", at, query={"revision": seen}, body=update(imageId=UBUNTU)),
    ):
        assert reply.status == 412
        assert reply.json["error_description"] == (
            f"The Server {server} does not match revision: read it again, then decide."
        )
    assert await region_servers.stored(server) == before
    now = (await region_servers.read(server))["status"]["revision"]
    again = await region_servers.servers.ask(COMPUTE).send("POST", f"{at}/replace", query={"revision": now}, body=_BODY)
    assert again.status == 202
    await region_servers.rest()
    await _one(region_servers, server, 2)
    assert (await region_servers.read(server))["status"]["revision"] != now
