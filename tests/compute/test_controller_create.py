"""How an instance comes to have its server, and how both go."""

import asyncio

import pytest

from remuda.compute.instances.rules import charge_of
from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.kernel.ids import derived_id
from remuda.quota.lifecycle import confirm_quota
from remuda.quota.ports import StaleTokenError
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import NAME, PAYING_PROJECT
from remuda.store.contract import Change
from tests.kit.compute.controllers import (
    as_compute,
    at_cloud,
    delete_server,
    events,
    made,
    network_of,
    rest,
    said,
    server_of,
    stored,
    tagged_server,
    timeline,
)
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import at, held, is_nothing
from tests.kit.environment import options


async def test_m11_c01_the_server_is_linked_before_it_is_there_and_carries_the_tag(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instance = await compute.instance(network, "web")
    before = await stored(compute, instance)
    assert before.spec.server_id == derived_id(network, "web")
    await compute.until(instance, "provisioned")
    server = await server_of(compute, before.spec.server_id)
    assert server is not None
    tags = {tag.name: tag.value for tag in server.spec.tags}
    assert tags == {INSTANCE_TAG: instance, INCARNATION: before.uid}
    assert server.metadata.labels[NAME] == "web"
    assert server.metadata.labels[PAYING_PROJECT] == compute.region.project
    assert len(at_cloud(compute)) == 1


@options(is_instant=True)
async def test_m12_m14_provisioned_first_shows_with_everything_final_and_takes_one_write(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    changes: list[Change[ComputeInstance]] = []

    async def watch() -> None:
        since = (await compute.store.list_names(ComputeInstance, limit=1)).version
        async for event in compute.store.watch(ComputeInstance, since=since):
            if isinstance(event, Change):
                changes.append(event)  # noqa: PERF401  what is watched never ends

    watching = asyncio.create_task(watch())
    instance = await compute.instance(network, networking={"publicIP": True})
    read = await compute.until(instance, "provisioned")
    server = await server_of(compute, instance)
    assert server is not None
    told = server.status
    assert read["status"]["powerState"] == "Running"
    assert (read["status"]["privateIP"], read["status"]["publicIP"]) == (told.private_ip, told.public_ip)
    assert read["status"]["macAddress"] == told.mac_address
    assert all((told.private_ip, told.public_ip, told.mac_address))
    assert read["metadata"]["healthStatus"] == "healthy"
    await rest(compute)
    watching.cancel()
    written = [change for change in changes if change.resource.name == instance]
    assert [change.type for change in written] == ["added", "modified"], "made, and provisioned"
    assert await events(compute, instance) == ["ServerCreated"]


async def test_m14_while_region_is_at_it_the_instance_says_so_and_nothing_is_polled(
    compute: ComputeEnvironment,
) -> None:
    instance = await compute.instance(await network_of(compute))
    seen: list[tuple[str, str | None]] = []
    while not seen or seen[-1][0] != "provisioned":
        read = await compute.read(instance)
        now = read["metadata"]["provisioningStatus"], read["status"].get("powerState")
        if not seen or seen[-1] != now:
            seen.append(now)
        await compute.clock.sleep(0.05)
    assert seen[0] == ("pending", None)
    assert seen[-1] == ("provisioned", "Running")
    assert all(status in {"pending", "provisioning"} for status, _ in seen[:-1])


async def test_m13_the_server_goes_first_and_the_allocation_only_when_it_is_gone(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    assert (await compute.root.delete(at(instance))).status == 202
    while await server_of(compute, instance) is not None:
        assert await held(compute) == [{"servers": 1}]
        assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "deprovisioning"
        await compute.clock.sleep(0.02)
    await compute.until_gone(instance)
    await is_nothing(compute)
    assert not at_cloud(compute)


async def test_m13_deleted_at_any_moment_of_its_making_nothing_is_left(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    for number in range(30):
        instance = await compute.instance(network, "short")
        await compute.clock.sleep(number * 0.09)
        assert (await compute.root.delete(at(instance))).status == 202
        await compute.until_gone(instance)
        await is_nothing(compute)
    await rest(compute, 120)
    await is_nothing(compute)
    assert not at_cloud(compute)


async def test_a_server_deleted_behind_our_back_is_looked_for_twice_and_recreated(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    before = await server_of(compute, instance)
    await delete_server(compute, instance)
    await rest(compute)
    after = await server_of(compute, instance)
    assert before is not None
    assert after is not None
    assert after.uid != before.uid
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
    (told,) = [each for each in await timeline(compute, instance) if each["event"] == "ServerRecreated"]
    assert "without a request" in told["reason"]
    assert len(at_cloud(compute)) == 1
    assert await held(compute) == [{"servers": 1}]


async def test_a_server_that_an_earlier_instance_left_behind_is_removed_first(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instance = derived_id(network, "web")
    earlier = "e0000000-0000-4000-8000-000000000001"
    assert await tagged_server(compute, network, "web", instance=instance, uid=earlier) == instance
    await rest(compute)
    left = await server_of(compute, instance)
    assert await made(compute, network, "web") == instance
    now = await server_of(compute, instance)
    assert left is not None
    assert now is not None
    assert now.uid != left.uid
    assert {tag.value for tag in now.spec.tags} == {instance, (await stored(compute, instance)).uid}
    assert "PreviousServerDeleted" in await events(compute, instance)


async def test_a_server_of_somebody_else_with_the_name_is_left_alone(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    foreign = await compute.region.server(network, "web")
    await compute.region.until(f"/api/v2/servers/{foreign}", "provisioned")
    instance = await compute.instance(network, "web")
    await rest(compute, 10)
    assert (await said(compute, instance)).reason == "NameTaken"
    server = await server_of(compute, foreign)
    assert server is not None
    assert not server.is_deleting
    assert server.spec.tags == ()
    await delete_server(compute, foreign)
    await rest(compute, 120)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"


async def test_c01_an_instance_of_an_existing_cluster_finds_its_server_by_the_tag_and_marks_it_as_its_own(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    instance = await made(compute, network, "web")
    body = (await as_compute(compute).get(f"/api/v2/servers/{instance}")).json
    wanted = {
        "metadata": {"name": "web", "tags": [{"name": INSTANCE_TAG, "value": instance}]},
        "spec": body["spec"],
    }
    assert (await as_compute(compute).put(f"/api/v2/servers/{instance}", wanted)).status == 202
    await rest(compute)
    server = await compute.store.get(Server, instance)
    assert {tag.name for tag in server.spec.tags} == {INSTANCE_TAG, INCARNATION}
    assert "Replacing" not in await events(compute, instance)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"


async def test_c08_what_it_costs_is_held_again_before_a_server_is_recreated(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    charge, identity = charge_of(await stored(compute, instance)), compute.app.ports.identity
    await identity.release(charge)
    quotas = f"/api/v1/organizations/{compute.region.organization}/quotas"
    users_api = compute.region.identity
    platform = users_api.client(users_api.root)
    assert (await platform.put(quotas, {"quotas": [{"kind": "servers", "quantity": 0}]})).status == 200
    await delete_server(compute, instance)
    await rest(compute)
    assert (await said(compute, instance)).reason == "QuotaExceeded"
    assert not at_cloud(compute)
    assert (await platform.put(quotas, {"quotas": [{"kind": "servers", "quantity": 1}]})).status == 200
    await rest(compute, 120)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
    assert await held(compute) == [{"servers": 1}]


async def test_m13_who_comes_late_to_an_instance_that_is_gone_holds_nothing_for_it(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    before = await stored(compute, instance)
    assert (await compute.root.delete(at(instance))).status == 202
    await rest(compute)
    with pytest.raises(StaleTokenError):
        await confirm_quota(compute.app.ports.identity, charge_of(before))
    assert not await held(compute)


async def test_m13_a_deletion_takes_all_servers_of_the_incarnation(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    uid = (await stored(compute, instance)).uid
    await tagged_server(compute, network, "twin", instance=instance, uid=uid)
    foreign = await tagged_server(
        compute, network, "other", instance=instance, uid="e0000000-0000-4000-8000-00000000000e"
    )
    await rest(compute)
    await compute.root.delete(at(instance))
    await compute.until_gone(instance)
    assert [each.name for each in (await compute.store.list(Server)).items] == [foreign]
    assert await held(compute) == []
