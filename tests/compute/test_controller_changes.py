"""What comes of a change: in place, by a rebuild, or by another server in its place."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.kernel.errors import Unavailable
from remuda.kernel.tags import Tag
from remuda.region.kinds.servers import Server
from remuda.region.servers.schema import ServerRead
from tests.kit.compute.controllers import (
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
from tests.kit.compute.environment import JAMMY, ComputeEnvironment
from tests.kit.compute.requests import DEBIAN, encoded, make_authority, make_group
from tests.kit.region.environment import SOUTH, STANDARD

GPU = "22222222-2222-2222-2222-222222222222"
"""A flavor of which sim-south has four places."""


async def _watched(compute: ComputeEnvironment, instance: str) -> list[tuple[str, str]]:
    """Return how an instance looked, from now until it is provisioned again."""
    seen: list[tuple[str, str]] = []
    for _ in range(4000):
        read = await compute.read(instance)
        now = read["metadata"]["provisioningStatus"], read["status"]["powerState"]
        if not seen or seen[-1] != now:
            seen.append(now)
        if now[0] == "provisioned":
            return seen
        await compute.clock.sleep(0.02)
    raise AssertionError(f"it is not provisioned again: {seen}")


def _addresses(read: Any) -> tuple[str, str, str]:
    status = read["status"]
    return status["privateIP"], status["publicIP"], status["macAddress"]


async def test_m15_c03_c10_another_flavor_replaces_the_server_visibly_and_keeps_its_addresses(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD, networking={"publicIP": True})
    before, (machine,) = await compute.read(instance), at_cloud(compute)
    await change(compute, instance, flavorId=SMALL)
    seen = await _watched(compute, instance)
    assert set(seen[:-1]) <= {("provisioning", "Running"), ("provisioning", "Rebuilding")}
    assert ("provisioning", "Rebuilding") in seen
    assert seen[-1] == ("provisioned", "Running")
    (now,) = at_cloud(compute)
    assert (now.flavor, now.id != machine.id) == (SMALL, True)
    assert _addresses(await compute.read(instance)) == _addresses(before)
    told = await timeline(compute, instance)
    assert [each["event"] for each in told] == ["ServerCreated", "Replacing", "Replaced"]
    assert told[1]["fields"] == ["spec.flavorId"]
    assert told[1]["was"] == {"flavor": STANDARD, "image": machine.image}
    ended = await said(compute, instance, "Rebuilding")
    assert (ended.status, ended.reason) == ("False", "Replaced")


async def test_m15_c10_another_image_rebuilds_the_same_server_where_it_is(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute), networking={"publicIP": True})
    before, (machine,) = await compute.read(instance), at_cloud(compute)
    await change(compute, instance, imageId=JAMMY)
    seen = await _watched(compute, instance)
    assert ("provisioning", "Rebuilding") in seen
    (now,) = at_cloud(compute)
    assert (now.id, now.image) == (machine.id, JAMMY)
    assert _addresses(await compute.read(instance)) == _addresses(before)
    assert await events(compute, instance) == ["ServerCreated", "Rebuilding", "Rebuilt"]


async def test_what_is_changed_in_place_destroys_nothing(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    (machine,) = at_cloud(compute)
    group = await make_group(compute, network)
    await rest(compute)
    networking = {"securityGroups": [group], "publicIP": True, "allowedSourceAddresses": ["10.9.0.7/16"]}
    await change(compute, instance, description="mine", networking=networking)
    read = await compute.until(instance, "provisioned")
    assert read["status"]["publicIP"]
    assert read["status"]["powerState"] == "Running"
    server = await compute.store.get(Server, instance)
    assert [each.id for each in server.spec.security_groups] == [group]
    assert [each.id for each in at_cloud(compute)] == [machine.id]
    await rest(compute)
    assert await events(compute, instance) == ["ServerCreated", "ServerChanged"], "and it is asked for once"


async def test_user_data_alone_is_stored_and_does_nothing_until_the_next_rebuild(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    (machine,) = at_cloud(compute)
    await change(compute, instance, userData=encoded("#!/bin/sh\ntouch /new\n"))
    await compute.until(instance, "provisioned")
    await rest(compute)
    server = await compute.store.get(Server, instance)
    assert server.spec.user_data == (await stored(compute, instance)).spec.user_data
    assert at_cloud(compute) == [machine]
    assert await events(compute, instance) == ["ServerCreated", "ServerChanged"]


async def test_another_authority_replaces_and_what_can_be_done_in_place_is_done_before(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute))
    authority = await make_authority(compute, compute.region.project)
    before = await compute.read(instance)
    await change(compute, instance, sshCertificateAuthorityId=authority, networking={"publicIP": True})
    read = await compute.until(instance, "provisioned")
    assert read["status"]["privateIP"] == before["status"]["privateIP"]
    assert read["status"]["publicIP"]
    assert await events(compute, instance) == ["ServerCreated", "ServerChanged", "Replacing", "Replaced"]
    server = await compute.store.get(Server, instance)
    assert server.spec.ssh_certificate_authority_id == authority


async def test_nothing_is_destroyed_for_a_flavor_without_capacity_and_the_next_choice_repairs_it(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute, regionId=SOUTH)
    for number in range(4):
        await compute.region.server(network, f"full-{number}", flavorId=GPU)
    await rest(compute)
    instance = await made(compute, network, flavorId=STANDARD)
    south = compute.region.clouds.clouds[SOUTH].operator
    before = south.servers()
    await choose(compute, instance, flavor_id=GPU)
    await rest(compute, 200)
    read = await compute.read(instance)
    assert read["metadata"]["provisioningStatus"] == "error"
    detail = read["metadata"]["provisioningStatusDetail"]
    assert detail["reason"] == "NoCapacity"
    assert "keeps running, and is replaced when there is capacity" in detail["message"]
    assert "set the old flavor again" in detail["message"]
    assert read["status"]["powerState"] == "Running"
    assert south.servers() == before
    assert await events(compute, instance) == ["ServerCreated"]
    await choose(compute, instance, flavor_id=STANDARD)
    await compute.until(instance, "provisioned")
    assert south.servers() == before


async def test_a_flavor_without_capacity_is_waited_for_and_taken_as_soon_as_there_is_capacity(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute, regionId=SOUTH)
    full = [await compute.region.server(network, f"full-{number}", flavorId=GPU) for number in range(4)]
    instance = await made(compute, network, flavorId=STANDARD)
    await choose(compute, instance, flavor_id=GPU)
    await compute.until(instance, "error")
    await compute.region.root.delete(f"/api/v2/servers/{full[0]}")
    await compute.until(instance, "provisioned")
    south = compute.region.clouds.clouds[SOUTH].operator
    assert [each.flavor for each in south.servers()] == [GPU] * 4


async def test_what_was_refused_is_asked_for_as_another_one_and_what_was_not_answered_as_the_same(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    lost = [True]
    region = compute.app.ports.region.api
    plain = region.replace_server

    async def replace(context: Context, *arguments: Any, **options: Any) -> ServerRead:
        assert context.key == context.operation
        asked.append(context.operation)
        if lost:
            lost.clear()
            raise Unavailable("The answer was lost.")
        return await plain(context, *arguments, **options)

    monkeypatch.setattr(region, "replace_server", replace)
    network = await network_of(compute, regionId=SOUTH)
    for number in range(4):
        await compute.region.server(network, f"full-{number}", flavorId=GPU)
    await rest(compute)
    instance = await made(compute, network, flavorId=STANDARD)
    await choose(compute, instance, flavor_id=GPU)
    await rest(compute, 300)
    assert len(asked) > 3
    assert asked[0] == asked[1]
    assert len(set(asked)) == len(asked) - 1


async def test_a_rebuild_that_fails_says_so_and_the_next_choice_repairs_it(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    before, (machine,) = await compute.read(instance), at_cloud(compute)
    await change(compute, instance, imageId=JAMMY)
    while next(iter(at_cloud(compute))).state != "rebuilding":
        await compute.clock.sleep(0.01)
    compute.region.north.operator.fail(machine.id, "the disk broke")
    await rest(compute)
    read = await compute.read(instance)
    assert (read["metadata"]["provisioningStatus"], read["status"]["powerState"]) == ("error", "Error")
    assert "RebuildFailed" in await events(compute, instance)
    await change(compute, instance, imageId=before["spec"]["imageId"])
    read = await compute.until(instance, "provisioned")
    assert read["status"] == before["status"]
    assert (await events(compute, instance))[-1] == "Replaced"


async def test_changed_again_in_the_middle_of_a_replacement_it_is_the_last_request_that_stays(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD)
    before = await compute.read(instance)
    await change(compute, instance, flavorId=SMALL)
    await compute.clock.sleep(1)
    await change(compute, instance, flavorId=STANDARD, imageId=JAMMY)
    await rest(compute, 120)
    (now,) = at_cloud(compute)
    assert (now.flavor, now.image, now.state) == (STANDARD, JAMMY, "running")
    read = await compute.read(instance)
    assert read["metadata"]["provisioningStatus"] == "provisioned"
    assert read["status"] == before["status"]


async def test_a_server_that_never_came_up_gets_another_in_its_place_when_another_image_is_chosen(
    compute: ComputeEnvironment,
) -> None:
    instance = await compute.instance(await network_of(compute), imageId=DEBIAN)
    for _ in range(2000):
        for machine in at_cloud(compute):
            if machine.state == "building":
                compute.region.north.operator.fail(machine.id, "no disk")
        if (await compute.read(instance))["metadata"]["provisioningStatus"] == "error":
            break
        await compute.clock.sleep(0.05)
    read = await compute.read(instance)
    assert (read["metadata"]["provisioningStatus"], read["status"]["powerState"]) == ("error", "Error")
    assert "no disk" in read["metadata"]["provisioningStatusDetail"]["message"]
    await change(compute, instance, imageId=JAMMY)
    await compute.until(instance, "provisioned")
    assert [(each.image, each.state) for each in at_cloud(compute)] == [(JAMMY, "running")]
    assert (await events(compute, instance))[-2:] == ["Replacing", "Replaced"]


@pytest.mark.parametrize(
    ("verb", "requested"), [("replace_server", {"flavorId": SMALL}), ("update_server", {"imageId": JAMMY})]
)
async def test_c02_who_is_late_with_a_request_that_was_rolled_back_is_refused(
    compute: ComputeEnvironment, verb: str, requested: dict[str, str]
) -> None:
    instance = await made(compute, await network_of(compute), flavorId=STANDARD)
    before, server, asked = await stored(compute, instance), await compute.store.get(Server, instance), list[str]()
    region = compute.app.ports.region.api
    plain: Callable[..., Awaitable[ServerRead]] = getattr(region, verb)

    async def late(*arguments: Any, revision: str) -> ServerRead:
        asked.append(revision)
        if len(asked) == 1:
            await choose(compute, instance, flavor_id=before.spec.flavor_id, image_id=before.spec.image_id)
            tags = (*server.spec.tags, Tag(name="somebody", value="else"))
            await compute.store.update(replace(server, spec=replace(server.spec, tags=tags)))
        return await plain(*arguments, revision=revision)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(region, verb, late)
        await change(compute, instance, **requested)
        await rest(compute)
    assert asked == [f"{server.uid}.{server.metadata.generation}"]
    after = await compute.store.get(Server, instance)
    assert (after.spec.replacement, after.spec.image, after.spec.flavor_id) == (
        server.spec.replacement,
        server.spec.image,
        server.spec.flavor_id,
    )
    assert await events(compute, instance) == ["ServerCreated"]
