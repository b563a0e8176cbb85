"""What was agreed to is what is done, also where the server waits for capacity or has failed."""

import asyncio
from typing import Any

from tests.kit.compute.controllers import at_cloud, delete_server, events, made, network_of, rest, server_of
from tests.kit.compute.environment import JAMMY, ComputeEnvironment
from tests.kit.compute.rebuilds import GPU, machines, three_for_one_place, waiting
from tests.kit.compute.requests import GPUS, at
from tests.kit.compute.updates import ROCKY, SMALL, as_it_is, kinds, plan, put
from tests.kit.region.environment import STANDARD


async def agreed(compute: ComputeEnvironment, instance: str, body: Any) -> Any:
    """Have a plan made, and done."""
    told = await plan(compute.root, instance, body)
    assert (await put(compute.root, instance, body, plan=told["hash"])).status == 202
    return told


def fields(told: Any) -> list[str]:
    return [change["field"] for step in told["steps"] for change in step["changes"]]


async def test_c03_who_waits_stopped_for_capacity_and_takes_another_image_instead_is_told_that_it_is_replaced(
    compute: ComputeEnvironment,
) -> None:
    instances = await three_for_one_place(compute)
    for each in instances:
        assert (await compute.root.post(at(each, "stop"))).status == 202
    await rest(compute)
    bodies = [await as_it_is(compute, each, flavorId=GPU) for each in instances]
    await asyncio.gather(*(put(compute.root, each, body) for each, body in zip(instances, bodies, strict=True)))
    await rest(compute, 200)
    reads = [await compute.read(each) for each in instances]
    kept = next(read["metadata"]["id"] for read in reads if read["metadata"]["provisioningStatus"] == "error")
    before = set(machines(compute))
    told = await agreed(compute, kept, await as_it_is(compute, kept, flavorId=STANDARD, imageId=ROCKY))
    assert (kinds(told), fields(told)) == (["replace"], ["spec.imageId"])
    await compute.until(kept, "provisioned")
    assert (await events(compute, kept))[-2:] == ["Replacing", "Replaced"]
    assert len(before - set(machines(compute))) == 1
    assert (await compute.read(kept))["status"]["powerState"] == "Running"


async def test_c03_another_image_of_one_that_waits_for_capacity_comes_with_the_flavor_and_is_told_so(
    compute: ComputeEnvironment,
) -> None:
    instance = await waiting(compute)
    told = await agreed(compute, instance, await as_it_is(compute, instance, imageId=ROCKY))
    assert (kinds(told), fields(told)) == (["replace"], ["spec.imageId", "spec.flavorId"])
    servers = (await compute.region.root.get("/api/v2/servers")).json
    await delete_server(compute, next(each["metadata"]["id"] for each in servers if each["metadata"]["id"] != instance))
    await compute.until(instance, "provisioned")
    server = await server_of(compute, instance)
    assert server is not None
    assert (server.spec.flavor_id, server.spec.image.id) == (GPU, ROCKY)
    assert (await events(compute, instance)).count("Replacing") == 1


async def test_c13_another_image_after_a_failed_rebuild_is_told_to_take_another_server(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute))
    assert (await put(compute.root, instance, await as_it_is(compute, instance, imageId=ROCKY))).status == 202
    while at_cloud(compute)[0].state != "rebuilding":
        await compute.clock.sleep(0.01)
    before = at_cloud(compute)[0].id
    compute.region.north.operator.fail(before, "the disk broke")
    await compute.until(instance, "error")
    told = await agreed(compute, instance, await as_it_is(compute, instance, imageId=JAMMY))
    assert kinds(told) == ["replace"]
    await compute.until(instance, "provisioned")
    assert [each.id for each in at_cloud(compute)] != [before]


async def test_c10_what_is_held_until_a_replacement_is_done_makes_no_other_plan(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute), flavorId=GPUS)
    assert (await put(compute.root, instance, await as_it_is(compute, instance, flavorId=STANDARD))).status == 202
    body = await as_it_is(compute, instance)
    body["metadata"]["description"] = "smaller now"
    told = await plan(compute.root, instance, body)
    assert {each["delta"] for each in told["quota"]} == {0}
    await compute.until(instance, "provisioned")
    assert (await put(compute.root, instance, body, plan=told["hash"])).status == 202


async def test_m12_a_description_that_comes_with_another_flavor_is_not_all_that_is_done(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute))
    body = await as_it_is(compute, instance, flavorId=SMALL)
    body["metadata"]["description"] = "the small shop"
    assert (await put(compute.root, instance, body)).status == 202
    await compute.until(instance, "provisioned")
    assert [each.flavor for each in at_cloud(compute)] == [SMALL]
    assert (await events(compute, instance))[-3:] == ["ServerChanged", "Replacing", "Replaced"]


async def test_m12_a_description_is_changed_without_a_wait(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    body = await as_it_is(compute, instance)
    body["metadata"]["description"] = "the shop"
    assert (await put(compute.root, instance, body)).status == 202
    seen = set()
    for _ in range(20):
        seen.add((await compute.read(instance))["metadata"]["provisioningStatus"])
        await compute.clock.sleep(0.1)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
    assert seen == {"provisioned"}, "nothing was under way"
    assert (await events(compute, instance))[-1] == "ServerChanged"
