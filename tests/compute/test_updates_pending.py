"""Changes of an instance that waits for capacity: they are validated by the server that runs on meanwhile."""

import asyncio

from msgspec.structs import replace

from tests.kit.compute.controllers import at_cloud, choose, events, made, network_of, rest, said, server_of, stored
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.rebuilds import GPU, PLACES, machines, three_for_one_place, waiting
from tests.kit.compute.requests import make_group
from tests.kit.compute.updates import as_it_is, kinds, plan, put
from tests.kit.region.environment import SOUTH, STANDARD

ABSENT = "a1f0c0de-0009-4000-8000-000000000009"
"""What there is not."""


async def test_c03_to_have_its_old_flavor_again_changes_nothing_and_is_told_so(compute: ComputeEnvironment) -> None:
    instance = await waiting(compute)
    before = machines(compute)
    back = await as_it_is(compute, instance, flavorId=STANDARD)
    told = await plan(compute.root, instance, back)
    assert (told["isDestructive"], told["steps"], told["destroyed"]) == (False, [], [])
    assert (await put(compute.root, instance, back)).status == 202
    await compute.until(instance, "provisioned")
    assert machines(compute) == before


async def test_c03_it_has_the_last_place_of_its_old_flavor_itself(compute: ComputeEnvironment) -> None:
    instance = await waiting(compute, flavor=GPU, wanted=ABSENT, taken=PLACES - 1)
    before = machines(compute)
    back = await as_it_is(compute, instance, flavorId=GPU)
    assert (await plan(compute.root, instance, back))["steps"] == []
    assert (await put(compute.root, instance, back)).status == 202
    await compute.until(instance, "provisioned")
    assert machines(compute) == before


async def test_what_is_waited_for_is_not_in_the_plan_of_another_change(compute: ComputeEnvironment) -> None:
    instance = await waiting(compute)
    told = await plan(compute.root, instance, await as_it_is(compute, instance, networking={"publicIP": True}))
    assert (told["isDestructive"], kinds(told)) == (False, ["in-place"])


async def test_c13_a_group_that_went_before_it_came_is_said_and_the_next_choice_repairs_it(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    group = await make_group(compute, network)
    instance = await made(compute, network, networking={"securityGroups": [group]})
    before = at_cloud(compute)
    found = await stored(compute, instance)
    await choose(compute, instance, networking=replace(found.spec.networking, security_group_ids=(ABSENT,)))
    await compute.until(instance, "error")
    assert (await said(compute, instance)).reason == "DependencyNotFound"
    server = await server_of(compute, instance)
    assert server is not None
    assert [each.id for each in server.spec.security_groups] == [group]
    assert at_cloud(compute) == before
    back = await as_it_is(compute, instance, networking={"securityGroups": []})
    told = await plan(compute.root, instance, back)
    assert (kinds(told), told["isDestructive"]) == (["in-place"], False)
    assert (await put(compute.root, instance, back)).status == 202
    await compute.until(instance, "provisioned")
    assert at_cloud(compute)[0].id == before[0].id


async def test_another_flavor_than_the_one_that_is_waited_for_replaces_what_stands(compute: ComputeEnvironment) -> None:
    instance = await waiting(compute)
    flavors = (await compute.region.root.get(f"/api/v2/regions/{SOUTH}/flavors")).json
    other = next(each["metadata"]["id"] for each in flavors if each["metadata"]["id"] not in {STANDARD, GPU})
    told = await plan(compute.root, instance, await as_it_is(compute, instance, flavorId=other))
    assert kinds(told) == ["replace"]
    was = next(each["metadata"]["name"] for each in flavors if each["metadata"]["id"] == STANDARD)
    assert was in told["steps"][0]["changes"][0]["message"]


async def test_c03_of_several_that_want_one_place_nobody_is_without_a_server_and_who_waits_can_go_back(
    compute: ComputeEnvironment,
) -> None:
    instances = await three_for_one_place(compute)
    bodies = [await as_it_is(compute, each, flavorId=GPU) for each in instances]
    asked = [put(compute.root, each, wanted) for each, wanted in zip(instances, bodies, strict=True)]
    assert [reply.status for reply in await asyncio.gather(*asked)] == [202] * 3
    await rest(compute, 200)
    reads = {each: await compute.read(each) for each in instances}
    states = {each: read["metadata"]["provisioningStatus"] for each, read in reads.items()}
    assert sorted(states.values()) == ["error", "error", "provisioned"]
    assert {read["status"]["powerState"] for read in reads.values()} == {"Running"}
    before = machines(compute)
    assert len(before) == PLACES - 1 + 3
    kept = next(each for each, state in states.items() if state == "error")
    back = await as_it_is(compute, kept, flavorId=STANDARD)
    told = await plan(compute.root, kept, back)
    assert (told["isDestructive"], told["steps"]) == (False, [])
    assert (await put(compute.root, kept, back)).status == 202
    await compute.until(kept, "provisioned")
    assert machines(compute) == before
    told = await events(compute, kept)
    assert told.count("Replacing") == told.count("ReplacementCancelled") <= 1, "if region had been asked for it at all"
