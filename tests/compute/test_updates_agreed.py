"""What was agreed to is what is done, also where the server waits for room or has failed."""

import asyncio
from typing import Any

from tests.compute.asking import GPUS, at
from tests.compute.changing import ROCKY, SMALL, as_it_is, kinds, plan, put
from tests.compute.controlling import at_cloud, delete_server, events, made, network_of, rest, server_of
from tests.compute.house import JAMMY, ComputeHouse, in_a_compute
from tests.compute.test_updates_standing import GPU, machines, three_for_one_place, waiting
from tests.region.house import STANDARD


async def agreed(house: ComputeHouse, instance: str, body: Any) -> Any:
    """Have a plan made, and done."""
    told = await plan(house.root, instance, body)
    assert (await put(house.root, instance, body, plan=told["hash"])).status == 202
    return told


def fields(told: Any) -> list[str]:
    return [change["field"] for step in told["steps"] for change in step["changes"]]


def test_c03_who_waits_stopped_for_room_and_takes_another_image_instead_is_told_that_it_is_replaced() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instances = await three_for_one_place(house)
        for each in instances:
            assert (await house.root.post(at(each, "stop"))).status == 202
        await rest(house)
        bodies = [await as_it_is(house, each, flavorId=GPU) for each in instances]
        await asyncio.gather(*(put(house.root, each, body) for each, body in zip(instances, bodies, strict=True)))
        await rest(house, 200)
        reads = [await house.read(each) for each in instances]
        kept = next(read["metadata"]["id"] for read in reads if read["metadata"]["provisioningStatus"] == "error")
        before = set(machines(house))
        told = await agreed(house, kept, await as_it_is(house, kept, flavorId=STANDARD, imageId=ROCKY))
        assert (kinds(told), fields(told)) == (["replace"], ["spec.imageId"])
        await house.until(kept, "provisioned")
        assert (await events(house, kept))[-2:] == ["Replacing", "Rebuilt"]
        assert len(before - set(machines(house))) == 1
        assert (await house.read(kept))["status"]["powerState"] == "Running"

    in_a_compute(scenario)


def test_c03_another_image_of_one_that_waits_for_room_comes_with_the_flavor_and_is_told_so() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await waiting(house)
        told = await agreed(house, instance, await as_it_is(house, instance, imageId=ROCKY))
        assert (kinds(told), fields(told)) == (["replace"], ["spec.imageId", "spec.flavorId"])
        servers = (await house.region.root.get("/api/v2/servers")).json
        await delete_server(
            house, next(each["metadata"]["id"] for each in servers if each["metadata"]["id"] != instance)
        )
        await house.until(instance, "provisioned")
        server = await server_of(house, instance)
        assert server is not None
        assert (server.spec.flavor_id, server.spec.image.id) == (GPU, ROCKY)
        assert (await events(house, instance)).count("Replacing") == 1

    in_a_compute(scenario)


def test_c13_another_image_after_a_failed_rebuild_is_told_to_take_another_server() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        assert (await put(house.root, instance, await as_it_is(house, instance, imageId=ROCKY))).status == 202
        while at_cloud(house)[0].state != "rebuilding":
            await house.clock.sleep(0.01)
        before = at_cloud(house)[0].id
        house.region.north.operator.fail(before, "the disk broke")
        await house.until(instance, "error")
        told = await agreed(house, instance, await as_it_is(house, instance, imageId=JAMMY))
        assert kinds(told) == ["replace"]
        await house.until(instance, "provisioned")
        assert [each.id for each in at_cloud(house)] != [before]

    in_a_compute(scenario)


def test_c10_what_is_held_until_a_replacement_is_done_makes_no_other_plan() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), flavorId=GPUS)
        assert (await put(house.root, instance, await as_it_is(house, instance, flavorId=STANDARD))).status == 202
        body = await as_it_is(house, instance)
        body["metadata"]["description"] = "smaller now"
        told = await plan(house.root, instance, body)
        assert {each["delta"] for each in told["quota"]} == {0}
        await house.until(instance, "provisioned")
        assert (await put(house.root, instance, body, plan=told["hash"])).status == 202

    in_a_compute(scenario)


def test_m12_a_description_that_comes_with_another_flavor_is_not_all_that_is_done() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        body = await as_it_is(house, instance, flavorId=SMALL)
        body["metadata"]["description"] = "the small shop"
        assert (await put(house.root, instance, body)).status == 202
        await house.until(instance, "provisioned")
        assert [each.flavor for each in at_cloud(house)] == [SMALL]
        assert (await events(house, instance))[-3:] == ["ServerChanged", "Replacing", "Rebuilt"]

    in_a_compute(scenario)


def test_m12_a_description_is_changed_without_a_wait() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        body = await as_it_is(house, instance)
        body["metadata"]["description"] = "the shop"
        assert (await put(house.root, instance, body)).status == 202
        seen = set()
        for _ in range(20):
            seen.add((await house.read(instance))["metadata"]["provisioningStatus"])
            await house.clock.sleep(0.1)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
        assert seen == {"provisioned"}, "nothing was under way"
        assert (await events(house, instance))[-1] == "ServerChanged"

    in_a_compute(scenario)
