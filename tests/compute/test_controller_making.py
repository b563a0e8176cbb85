"""How an instance comes to have its server, and how both go."""

import asyncio

import pytest

from remuda.compute.instances.rules import charge_for
from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.kernel.ids import derived_id
from remuda.quota.ports import Late
from remuda.quota.reservation import settle_charge
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import NAME, PAYING_PROJECT
from remuda.store.contract import Change
from tests.compute.asking import at, held, is_nothing
from tests.compute.controlling import (
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
from tests.compute.house import ComputeHouse, in_a_compute


def test_m11_c01_the_server_is_linked_before_it_is_there_and_carries_the_tag() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await house.instance(network, "web")
        before = await stored(house, instance)
        assert before.spec.server_id == derived_id(network, "web")
        await house.until(instance, "provisioned")
        server = await server_of(house, before.spec.server_id)
        assert server is not None
        tags = {tag.name: tag.value for tag in server.spec.tags}
        assert tags == {INSTANCE_TAG: instance, INCARNATION: before.uid}
        assert server.metadata.labels[NAME] == "web"
        assert server.metadata.labels[PAYING_PROJECT] == house.region.project
        assert len(at_cloud(house)) == 1

    in_a_compute(scenario)


def test_m12_m14_provisioned_first_shows_with_everything_final_and_takes_one_write() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        changes: list[Change[ComputeInstance]] = []

        async def watch() -> None:
            since = (await house.store.list_names(ComputeInstance, limit=1)).version
            async for event in house.store.watch(ComputeInstance, since=since):
                if isinstance(event, Change):
                    changes.append(event)  # noqa: PERF401  what is watched never ends

        watching = asyncio.create_task(watch())
        instance = await house.instance(network, networking={"publicIP": True})
        read = await house.until(instance, "provisioned")
        server = await server_of(house, instance)
        assert server is not None
        told = server.status
        assert read["status"]["powerState"] == "Running"
        assert (read["status"]["privateIP"], read["status"]["publicIP"]) == (told.private_ip, told.public_ip)
        assert read["status"]["macAddress"] == told.mac_address
        assert all((told.private_ip, told.public_ip, told.mac_address))
        assert read["metadata"]["healthStatus"] == "healthy"
        await rest(house)
        watching.cancel()
        written = [change for change in changes if change.resource.name == instance]
        assert [change.type for change in written] == ["added", "modified"], "made, and provisioned"
        assert await events(house, instance) == ["ServerMade"]

    in_a_compute(scenario, is_instant=True)


def test_m14_while_region_is_at_it_the_instance_says_so_and_nothing_is_polled() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await house.instance(await network_of(house))
        seen: list[tuple[str, str | None]] = []
        while not seen or seen[-1][0] != "provisioned":
            read = await house.read(instance)
            now = read["metadata"]["provisioningStatus"], read["status"].get("powerState")
            if not seen or seen[-1] != now:
                seen.append(now)
            await house.clock.sleep(0.05)
        assert seen[0] == ("pending", None)
        assert seen[-1] == ("provisioned", "Running")
        assert all(status in {"pending", "provisioning"} for status, _ in seen[:-1])

    in_a_compute(scenario)


def test_m13_the_server_goes_first_and_the_allocation_only_when_it_is_gone() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        assert (await house.root.delete(at(instance))).status == 202
        while await server_of(house, instance) is not None:
            assert await held(house) == [{"servers": 1}]
            assert (await house.read(instance))["metadata"]["provisioningStatus"] == "deprovisioning"
            await house.clock.sleep(0.02)
        await house.until_gone(instance)
        await is_nothing(house)
        assert not at_cloud(house)

    in_a_compute(scenario)


def test_m13_deleted_at_any_moment_of_its_making_nothing_is_left() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        for number in range(30):
            instance = await house.instance(network, "short")
            await house.clock.sleep(number * 0.09)
            assert (await house.root.delete(at(instance))).status == 202
            await house.until_gone(instance)
            await is_nothing(house)
        await rest(house, 120)
        await is_nothing(house)
        assert not at_cloud(house)

    in_a_compute(scenario)


def test_a_server_deleted_behind_our_back_is_looked_for_twice_and_made_again() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        before = await server_of(house, instance)
        await delete_server(house, instance)
        await rest(house)
        after = await server_of(house, instance)
        assert before is not None
        assert after is not None
        assert after.uid != before.uid
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
        (told,) = [each for each in await timeline(house, instance) if each["event"] == "MadeAgain"]
        assert "nobody had asked" in told["why"]
        assert len(at_cloud(house)) == 1
        assert await held(house) == [{"servers": 1}]

    in_a_compute(scenario)


def test_a_server_that_an_earlier_instance_left_behind_is_removed_first() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = derived_id(network, "web")
        earlier = "e0000000-0000-4000-8000-000000000001"
        assert await tagged_server(house, network, "web", instance=instance, uid=earlier) == instance
        await rest(house)
        left = await server_of(house, instance)
        assert await made(house, network, "web") == instance
        now = await server_of(house, instance)
        assert left is not None
        assert now is not None
        assert now.uid != left.uid
        assert {tag.value for tag in now.spec.tags} == {instance, (await stored(house, instance)).uid}
        assert "LeftoverRemoved" in await events(house, instance)

    in_a_compute(scenario)


def test_a_server_of_somebody_else_with_the_name_is_left_alone() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        foreign = await house.region.server(network, "web")
        await house.region.until(f"/api/v2/servers/{foreign}", "provisioned")
        instance = await house.instance(network, "web")
        await rest(house, 10)
        assert (await said(house, instance)).reason == "NameTaken"
        server = await server_of(house, foreign)
        assert server is not None
        assert not server.is_marked
        assert server.spec.tags == ()
        await delete_server(house, foreign)
        await rest(house, 120)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"

    in_a_compute(scenario)


def test_c01_an_instance_of_an_existing_cluster_finds_its_server_by_the_tag_and_marks_it_as_its_own() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network, "web")
        body = (await as_compute(house).get(f"/api/v2/servers/{instance}")).json
        wanted = {
            "metadata": {"name": "web", "tags": [{"name": INSTANCE_TAG, "value": instance}]},
            "spec": body["spec"],
        }
        assert (await as_compute(house).put(f"/api/v2/servers/{instance}", wanted)).status == 202
        await rest(house)
        server = await house.store.get(Server, instance)
        assert {tag.name for tag in server.spec.tags} == {INSTANCE_TAG, INCARNATION}
        assert "Replacing" not in await events(house, instance)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"

    in_a_compute(scenario)


def test_c08_what_it_costs_is_held_again_before_a_server_is_made_again() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        charge, identity = charge_for(await stored(house, instance)), house.app.ports.identity
        await identity.release(charge)
        quotas = f"/api/v1/organizations/{house.region.organization}/quotas"
        people = house.region.identity
        platform = people.client(people.root)
        assert (await platform.put(quotas, {"quotas": [{"kind": "servers", "quantity": 0}]})).status == 200
        await delete_server(house, instance)
        await rest(house)
        assert (await said(house, instance)).reason == "QuotaExceeded"
        assert not at_cloud(house)
        assert (await platform.put(quotas, {"quotas": [{"kind": "servers", "quantity": 1}]})).status == 200
        await rest(house, 120)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
        assert await held(house) == [{"servers": 1}]

    in_a_compute(scenario)


def test_m13_who_comes_late_to_an_instance_that_is_gone_holds_nothing_for_it() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        before = await stored(house, instance)
        assert (await house.root.delete(at(instance))).status == 202
        await rest(house)
        with pytest.raises(Late):
            await settle_charge(house.app.ports.identity, charge_for(before))
        assert not await held(house)

    in_a_compute(scenario)


def test_m13_a_deletion_takes_all_servers_of_the_incarnation() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        uid = (await stored(house, instance)).uid
        await tagged_server(house, network, "twin", instance=instance, uid=uid)
        foreign = await tagged_server(
            house, network, "other", instance=instance, uid="e0000000-0000-4000-8000-00000000000e"
        )
        await rest(house)
        await house.root.delete(at(instance))
        await house.until_gone(instance)
        assert [each.name for each in (await house.store.list(Server)).items] == [foreign]
        assert await held(house) == []

    in_a_compute(scenario)
