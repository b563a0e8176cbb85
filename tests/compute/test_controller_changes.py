"""What comes of a change: in place, by a rebuild, or by another server in its place."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.clients.region import RegionLink
from remuda.compute.ports import Replacement, ServerSeen
from remuda.kernel.errors import Unavailable
from remuda.kernel.tags import Tag
from remuda.region.kinds.servers import Server
from tests.compute.asking import DEBIAN, encoded, make_authority, make_group
from tests.compute.controlling import (
    SMALL,
    at_cloud,
    change,
    choose,
    events,
    made,
    network_of,
    rest,
    said,
    stored,
    timeline,
)
from tests.compute.house import JAMMY, ComputeHouse, in_a_compute
from tests.region.house import SOUTH, STANDARD

GPU = "22222222-2222-2222-2222-222222222222"
"""A flavor of which sim-south has four places."""


async def _watched(house: ComputeHouse, instance: str) -> list[tuple[str, str]]:
    """Return how an instance looked, from now until it is provisioned again."""
    seen: list[tuple[str, str]] = []
    for _ in range(4000):
        read = await house.read(instance)
        now = read["metadata"]["provisioningStatus"], read["status"]["powerState"]
        if not seen or seen[-1] != now:
            seen.append(now)
        if now[0] == "provisioned":
            return seen
        await house.clock.sleep(0.02)
    raise AssertionError(f"it is not provisioned again: {seen}")


def _addresses(read: Any) -> tuple[str, str, str]:
    status = read["status"]
    return status["privateIP"], status["publicIP"], status["macAddress"]


def test_m15_c03_c10_another_flavor_replaces_the_server_visibly_and_keeps_its_addresses() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD, networking={"publicIP": True})
        before, (machine,) = await house.read(instance), at_cloud(house)
        await change(house, instance, flavorId=SMALL)
        seen = await _watched(house, instance)
        assert set(seen[:-1]) <= {("provisioning", "Running"), ("provisioning", "Rebuilding")}
        assert ("provisioning", "Rebuilding") in seen
        assert seen[-1] == ("provisioned", "Running")
        (now,) = at_cloud(house)
        assert (now.flavor, now.id != machine.id) == (SMALL, True)
        assert _addresses(await house.read(instance)) == _addresses(before)
        told = await timeline(house, instance)
        assert [each["event"] for each in told] == ["ServerMade", "Replacing", "Rebuilt"]
        assert told[1]["fields"] == ["spec.flavorId"]
        assert told[1]["was"] == {"flavor": STANDARD, "image": machine.image}
        ended = await said(house, instance, "Rebuilding")
        assert (ended.status, ended.reason) == ("False", "Rebuilt")

    in_a_compute(scenario)


def test_m15_c10_another_image_rebuilds_the_same_server_where_it_is() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), networking={"publicIP": True})
        before, (machine,) = await house.read(instance), at_cloud(house)
        await change(house, instance, imageId=JAMMY)
        seen = await _watched(house, instance)
        assert ("provisioning", "Rebuilding") in seen
        (now,) = at_cloud(house)
        assert (now.id, now.image) == (machine.id, JAMMY)
        assert _addresses(await house.read(instance)) == _addresses(before)
        assert await events(house, instance) == ["ServerMade", "Rebuilding", "Rebuilt"]

    in_a_compute(scenario)


def test_what_is_changed_in_place_destroys_nothing() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        (machine,) = at_cloud(house)
        group = await make_group(house, network)
        await rest(house)
        networking = {"securityGroups": [group], "publicIP": True, "allowedSourceAddresses": ["10.9.0.7/16"]}
        await change(house, instance, description="mine", networking=networking)
        read = await house.until(instance, "provisioned")
        assert read["status"]["publicIP"]
        assert read["status"]["powerState"] == "Running"
        server = await house.store.get(Server, instance)
        assert [each.id for each in server.spec.security_groups] == [group]
        assert [each.id for each in at_cloud(house)] == [machine.id]
        await rest(house)
        assert await events(house, instance) == ["ServerMade", "ServerChanged"], "and it is asked for once"

    in_a_compute(scenario)


def test_user_data_alone_is_stored_and_does_nothing_until_the_next_rebuild() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        (machine,) = at_cloud(house)
        await change(house, instance, userData=encoded("#!/bin/sh\ntouch /new\n"))
        await house.until(instance, "provisioned")
        await rest(house)
        server = await house.store.get(Server, instance)
        assert server.spec.user_data == (await stored(house, instance)).spec.user_data
        assert at_cloud(house) == [machine]
        assert await events(house, instance) == ["ServerMade", "ServerChanged"]

    in_a_compute(scenario)


def test_another_authority_replaces_and_what_can_be_done_in_place_is_done_before() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        authority = await make_authority(house, house.region.project)
        before = await house.read(instance)
        await change(house, instance, sshCertificateAuthorityId=authority, networking={"publicIP": True})
        read = await house.until(instance, "provisioned")
        assert read["status"]["privateIP"] == before["status"]["privateIP"]
        assert read["status"]["publicIP"]
        assert await events(house, instance) == ["ServerMade", "ServerChanged", "Replacing", "Rebuilt"]
        server = await house.store.get(Server, instance)
        assert server.spec.ssh_certificate_authority_id == authority

    in_a_compute(scenario)


def test_nothing_is_destroyed_for_a_flavor_without_room_and_the_next_choice_repairs_it() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house, regionId=SOUTH)
        for number in range(4):
            await house.region.server(network, f"full-{number}", flavorId=GPU)
        await rest(house)
        instance = await made(house, network, flavorId=STANDARD)
        south = house.region.clouds.clouds[SOUTH].operator
        before = south.servers()
        await choose(house, instance, flavor_id=GPU)
        await rest(house, 200)
        read = await house.read(instance)
        assert read["metadata"]["provisioningStatus"] == "error"
        detail = read["metadata"]["provisioningStatusDetail"]
        assert detail["reason"] == "NoCapacity"
        assert "runs on, and is replaced as soon as there is room" in detail["message"]
        assert "give the instance its old flavor again" in detail["message"]
        assert read["status"]["powerState"] == "Running"
        assert south.servers() == before
        assert await events(house, instance) == ["ServerMade"]
        await choose(house, instance, flavor_id=STANDARD)
        await house.until(instance, "provisioned")
        assert south.servers() == before

    in_a_compute(scenario)


def test_a_flavor_without_room_is_waited_for_and_taken_as_soon_as_there_is_room() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house, regionId=SOUTH)
        full = [await house.region.server(network, f"full-{number}", flavorId=GPU) for number in range(4)]
        instance = await made(house, network, flavorId=STANDARD)
        await choose(house, instance, flavor_id=GPU)
        await house.until(instance, "error")
        await house.region.root.delete(f"/api/v2/servers/{full[0]}")
        await house.until(instance, "provisioned")
        south = house.region.clouds.clouds[SOUTH].operator
        assert [each.flavor for each in south.servers()] == [GPU] * 4

    in_a_compute(scenario)


def test_what_was_refused_is_asked_for_as_another_one_and_what_was_not_answered_as_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    lost = [True]
    plain = RegionLink.replace_server

    async def replace(link: RegionLink, wanted: Replacement) -> ServerSeen:
        asked.append(wanted.operation)
        if lost:
            lost.clear()
            raise Unavailable("The answer was lost.")
        return await plain(link, wanted)

    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house, regionId=SOUTH)
        for number in range(4):
            await house.region.server(network, f"full-{number}", flavorId=GPU)
        await rest(house)
        instance = await made(house, network, flavorId=STANDARD)
        await choose(house, instance, flavor_id=GPU)
        await rest(house, 300)
        assert len(asked) > 3
        assert asked[0] == asked[1]
        assert len(set(asked)) == len(asked) - 1

    monkeypatch.setattr(RegionLink, "replace_server", replace)
    in_a_compute(scenario)


def test_a_rebuild_that_fails_says_so_and_the_next_choice_repairs_it() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        before, (machine,) = await house.read(instance), at_cloud(house)
        await change(house, instance, imageId=JAMMY)
        while next(iter(at_cloud(house))).state != "rebuilding":
            await house.clock.sleep(0.01)
        house.region.north.operator.fail(machine.id, "the disk broke")
        await rest(house)
        read = await house.read(instance)
        assert (read["metadata"]["provisioningStatus"], read["status"]["powerState"]) == ("error", "Error")
        assert "RebuildFailed" in await events(house, instance)
        await change(house, instance, imageId=before["spec"]["imageId"])
        read = await house.until(instance, "provisioned")
        assert read["status"] == before["status"]
        assert (await events(house, instance))[-1] == "Rebuilt"

    in_a_compute(scenario)


def test_changed_again_in_the_middle_of_a_replacement_it_is_the_last_wish_that_stays() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD)
        before = await house.read(instance)
        await change(house, instance, flavorId=SMALL)
        await house.clock.sleep(1)
        await change(house, instance, flavorId=STANDARD, imageId=JAMMY)
        await rest(house, 120)
        (now,) = at_cloud(house)
        assert (now.flavor, now.image, now.state) == (STANDARD, JAMMY, "running")
        read = await house.read(instance)
        assert read["metadata"]["provisioningStatus"] == "provisioned"
        assert read["status"] == before["status"]

    in_a_compute(scenario)


def test_a_server_that_never_came_up_gets_another_in_its_place_when_another_image_is_chosen() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await house.instance(await network_of(house), imageId=DEBIAN)
        for _ in range(2000):
            for machine in at_cloud(house):
                if machine.state == "building":
                    house.region.north.operator.fail(machine.id, "no disk")
            if (await house.read(instance))["metadata"]["provisioningStatus"] == "error":
                break
            await house.clock.sleep(0.05)
        read = await house.read(instance)
        assert (read["metadata"]["provisioningStatus"], read["status"]["powerState"]) == ("error", "Error")
        assert "no disk" in read["metadata"]["provisioningStatusDetail"]["message"]
        await change(house, instance, imageId=JAMMY)
        await house.until(instance, "provisioned")
        assert [(each.image, each.state) for each in at_cloud(house)] == [(JAMMY, "running")]
        assert (await events(house, instance))[-2:] == ["Replacing", "Rebuilt"]

    in_a_compute(scenario)


@pytest.mark.parametrize(
    ("verb", "wish"), [("replace_server", {"flavorId": SMALL}), ("change_server", {"imageId": JAMMY})]
)
def test_c02_who_is_late_with_a_wish_that_was_taken_back_is_refused(verb: str, wish: dict[str, str]) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=STANDARD)
        before, server, asked = await stored(house, instance), await house.store.get(Server, instance), list[str]()
        plain: Callable[[RegionLink, Any], Awaitable[ServerSeen]] = getattr(RegionLink, verb)

        async def late(link: RegionLink, wanted: Any) -> ServerSeen:
            asked.append(wanted.revision)
            if len(asked) == 1:
                await choose(house, instance, flavor_id=before.spec.flavor_id, image_id=before.spec.image_id)
                tags = (*server.spec.tags, Tag(name="somebody", value="else"))
                await house.store.update(replace(server, spec=replace(server.spec, tags=tags)))
            return await plain(link, wanted)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(RegionLink, verb, late)
            await change(house, instance, **wish)
            await rest(house)
        assert asked == [f"{server.uid}.{server.metadata.generation}"]
        after = await house.store.get(Server, instance)
        assert (after.spec.replacement, after.spec.image, after.spec.flavor_id) == (
            server.spec.replacement,
            server.spec.image,
            server.spec.flavor_id,
        )
        assert await events(house, instance) == ["ServerMade"]

    in_a_compute(scenario)
