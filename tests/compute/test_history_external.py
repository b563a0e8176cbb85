"""What a timeline tells of what nobody here asked for, and what it leaves out; and which of several lives is meant."""

import asyncio
from typing import Any

import pytest

from remuda.region.kinds.networks import Network
from tests.kit.compute.controllers import at_cloud, change, network_of, rest, said
from tests.kit.compute.controllers import made as made_on
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import DEBIAN, at, made, settle
from tests.kit.compute.timelines import lived, timeline
from tests.kit.compute.updates import LARGE, ROCKY
from tests.kit.identity.environment import expect


def sentences(events: list[dict[str, Any]]) -> list[str]:
    """Return what is said, in the order in which it happened."""
    return [each["message"] for each in events][::-1]


@pytest.mark.parametrize("is_off", [False, True])
async def test_a_server_that_vanished_at_the_cloud_is_recreated_and_the_timeline_says_why(
    compute: ComputeEnvironment, *, is_off: bool
) -> None:
    instance = await made_on(compute, await network_of(compute))
    (machine,) = at_cloud(compute)
    if is_off:
        compute.region.north.operator.stop(machine.id)
        await rest(compute, 20)
    compute.region.north.operator.vanish(machine.id)
    await rest(compute)
    (now,) = at_cloud(compute)
    assert now.id != machine.id
    events = await timeline(compute.root, instance)
    (again,) = [each for each in events if each["event"] == "ServerRecreated"]
    assert again["cause"]["type"] == "observation"
    assert again["message"].startswith("The server is being created again: ")
    assert again["message"].endswith(
        f". Data on its root disk is lost.{' The instance was stopped and is started.' if is_off else ''}"
    )
    read = await compute.read(instance)
    assert (read["metadata"]["provisioningStatus"], read["status"]["powerState"]) == ("provisioned", "Running")
    await rest(compute)
    assert len(await timeline(compute.root, instance)) == len(events), "it is told once"


@pytest.mark.parametrize("is_asked_for", [False, True])
async def test_a_stop_is_over_when_another_server_takes_the_place_of_the_one_that_was_stopped(
    compute: ComputeEnvironment, *, is_asked_for: bool
) -> None:
    instance = await made_on(compute, await network_of(compute))
    (machine,) = at_cloud(compute)
    assert (await compute.root.post(f"{at(instance)}/stop")).status == 202
    await rest(compute, 20)
    if is_asked_for:
        await change(compute, instance, flavorId=LARGE)
    else:
        compute.region.north.operator.vanish(machine.id)
    await rest(compute)
    assert (await compute.read(instance))["status"]["powerState"] == "Running"
    (other,) = at_cloud(compute)
    compute.region.north.operator.stop(other.id)
    await rest(compute, 20)
    sentences = expect(await compute.root.get(f"{at(instance)}/explain"), 200)["messages"]
    assert sentences[-1].startswith("The instance was stopped without a request to Remuda: ")


async def test_what_is_switched_at_the_cloud_is_told(compute: ComputeEnvironment) -> None:
    instance = await made_on(compute, await network_of(compute))
    (machine,) = at_cloud(compute)
    compute.region.north.operator.stop(machine.id)
    await rest(compute, 20)
    servers = compute.region.north.provider.servers
    assert servers is not None
    await servers.start_server(machine.handle)
    await rest(compute, 20)
    events = await timeline(compute.root, instance)
    assert sentences(events)[-2:] == ["The instance is stopped.", "The instance is running."]
    assert {each["cause"]["type"] for each in events[:2]} == {"observation"}


async def test_c13_drift_is_shown_to_whoever_has_the_instance_until_it_is_over(compute: ComputeEnvironment) -> None:
    instance = await made_on(compute, await network_of(compute))
    servers = compute.region.north.provider.servers
    assert servers is not None
    await servers.rebuild_server(at_cloud(compute)[0].handle, ROCKY)
    await rest(compute)
    drifted = await said(compute, instance, "Drifted")
    assert (drifted.status, drifted.message) == ("True", f"its image is {ROCKY}")
    shown = expect(await compute.root.get(f"{at(instance)}/explain"), 200)
    assert shown["state"] == "provisioned"
    assert shown["messages"][1].startswith("The server was changed at the provider (since ")
    (event,) = [each for each in await timeline(compute.root, instance) if each["facts"].get("type") == "Drifted"]
    assert event["message"] == f"The server was changed at the provider: its image is {ROCKY}."
    assert event["cause"]["type"] == "observation"
    await servers.rebuild_server(at_cloud(compute)[0].handle, DEBIAN)
    await rest(compute)
    assert (await said(compute, instance, "Drifted")).status == "False"
    assert (
        sentences(await timeline(compute.root, instance)).count("The server at the provider is as requested again.")
        == 1
    )


async def test_who_asks_for_a_name_that_is_taken_leaves_nothing_in_the_past_of_the_one_that_has_it(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    before = await timeline(tenant.client, instance)
    wanted = tenant.wanted(compute)
    replies = await asyncio.gather(*(tenant.client.post(INSTANCES, wanted) for _ in range(8)))
    assert {reply.status for reply in replies} == {409}
    assert await timeline(tenant.client, instance) == before
    (only,) = expect(await tenant.client.get(f"{at(instance)}/operations"), 200)
    assert only["phase"] == "done"
    assert (await tenant.client.post(f"{at(instance)}/stop")).status == 202
    await compute.awaited(instance, lambda reply: reply.json["status"].get("powerState") == "Stopped", "stopped")
    whole = await timeline(tenant.client, instance)
    assert whole[-len(before) :] == before
    assert "generation" not in {each["cause"]["type"] for each in whole[: -len(before)]}, "nothing else is wanted"
    found, place = list[Any](), dict[str, str]()
    while True:
        reply = await tenant.client.get(f"{at(instance)}/timeline", {"limit": "1"} | place)
        found += expect(reply, 200)
        if "x-continue" not in reply.headers:
            break
        place = {"continue": reply.headers["x-continue"]}
    assert found == whole, "wherever a page begins"


async def test_operations_of_several_lives_are_told_apart(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await lived(compute, tenant)
    assert made(await tenant.client.post(INSTANCES, tenant.wanted(compute))) == instance
    await compute.until(instance, "provisioned")
    read = expect(await tenant.client.get(at(instance)), 200)
    spec = read["spec"] | {"networking": {"publicIP": True}}
    assert (await tenant.client.put(at(instance), {"metadata": {"name": "instance"}, "spec": spec})).status == 202
    operations = expect(await tenant.client.get(f"{at(instance)}/operations"), 200)
    by_saga = sorted((each["saga"], each["incarnation"]) for each in operations)
    told_of = {
        each["cause"]["operationID"]: each["incarnation"]
        for each in await timeline(tenant.client, instance)
        if each["cause"].get("operationID")
    }
    assert [saga for saga, _ in by_saga] == ["instance.create", "instance.create", "instance.update"]
    assert {each["id"]: each["incarnation"] for each in operations} == told_of
    assert len(set(told_of.values())) == 2


async def test_a_change_is_told_with_what_changes_and_images_by_their_names(compute: ComputeEnvironment) -> None:
    instance = await made_on(compute, await network_of(compute))
    await change(compute, instance, imageId=ROCKY)
    await rest(compute)
    lines = sentences(await timeline(compute.root, instance))
    (asked,) = [each for each in lines if each.startswith("An update was requested by ")]
    (rebuilding,) = [each for each in lines if each.startswith("The server is being rebuilt from")]
    assert ": The image changes from " in asked
    assert ROCKY not in asked
    assert "rebuilt from image rocky" in rebuilding
    assert ROCKY not in rebuilding


async def test_a_server_that_is_there_is_changed_or_stopped_and_not_made(compute: ComputeEnvironment) -> None:
    instance = await made_on(compute, await network_of(compute))
    before = len(await timeline(compute.root, instance))
    await change(compute, instance, networking={"publicIP": True})
    await rest(compute)
    assert (await compute.root.post(f"{at(instance)}/stop")).status == 202
    await rest(compute)
    lines = sentences(await timeline(compute.root, instance))[before:]
    assert [line for line in lines if line.startswith("The instance is not provisioned: ")] == [
        "The instance is not provisioned: the update operation is still running.",
        "The instance is not provisioned: the server is being updated.",
        "The instance is not provisioned: the server is stopping.",
    ]


async def test_what_is_gone_says_why_and_shows_nothing_that_is_for_us(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    given_up = await lived(compute, tenant)
    taken = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "taken")))
    await compute.until(taken, "provisioned")
    network = await compute.store.get(Network, tenant.network)
    await compute.store.delete(Network, tenant.network, uid=network.uid)
    await compute.until_gone(taken)
    why = [
        expect(await tenant.client.get(f"{at(each)}/explain"), 200)["messages"][0].partition("UTC: ")[2]
        for each in (given_up, taken)
    ]
    assert why == ["deletion was requested by ann@example.com.", "its network was deleted."]
    for event in await timeline(tenant.client, given_up):
        assert not {"labels", "finalizer"} & set(event.get("facts", {}))
