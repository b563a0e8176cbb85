"""What happened to an instance, what was done to it, and why it is as it is: read over the API."""

from datetime import datetime
from typing import Any

from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import ABSENT, GPUS, NOT_FOUND, at, made, settle
from tests.kit.compute.timelines import lived, timeline
from tests.kit.identity.environment import expect
from tests.kit.resource_api import rejection


async def test_b02_a_timeline_tells_what_happened_and_what_caused_it(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await lived(compute, tenant)
    events = await timeline(tenant.client, instance)
    in_order = [each["event"] for each in events][::-1]
    assert in_order[:2] == ["OperationStarted", "OperationDone"]
    assert in_order[-1] == "FinalizerRemoved"
    assert in_order.index("ServerCreated") < in_order.index("DeletionRequested")
    times = [datetime.fromisoformat(each["time"]) for each in events]
    assert times == sorted(times, reverse=True)
    first, asked = events[-1], next(each for each in events if each["event"] == "DeletionRequested")
    assert first["message"] == "The instance was requested by ann@example.com."
    assert asked["message"] == "Deletion was requested by ann@example.com."
    for each in (first, asked):
        assert (each["cause"]["type"], each["cause"]["actor"]) == ("request", "ann@example.com")
        assert len(each["cause"]["traceID"]) == 32
    others = [each for each in events if each["cause"]["type"] != "request"]
    assert {each["cause"]["type"] for each in others} >= {"generation", "reconcile", "observation"}
    assert all(each["cause"]["reconcileID"] for each in others)
    assert len({each["incarnation"] for each in events}) == 1


async def test_incarnations_are_told_apart_however_the_timeline_is_paged(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await lived(compute, tenant)
    assert await lived(compute, tenant) == instance
    assert made(await tenant.client.post(INSTANCES, tenant.wanted(compute))) == instance
    await compute.until(instance, "provisioned")
    whole = await timeline(tenant.client, instance)
    by_incarnation = list(dict.fromkeys(each["incarnation"] for each in whole))
    assert len(by_incarnation) == 3
    assert by_incarnation[0] == expect(await tenant.client.get(f"{at(instance)}/explain"), 200)["incarnation"]
    for each in by_incarnation:
        events = [event["event"] for event in whole if event["incarnation"] == each]
        assert (events[-1], events.count("OperationStarted")) == ("OperationStarted", 1)
    for limit in ("1", "3"):
        assert await _in_pages(tenant.client, instance, limit) == whole


async def _in_pages(client: Client, instance: str, limit: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    query = {"limit": limit}
    while True:
        reply = await client.get(f"{at(instance)}/timeline", query)
        page = expect(reply, 200)
        assert 0 < len(page) <= int(limit)
        found += page
        if "x-continue" not in reply.headers:
            return found
        query = {"limit": limit, "continue": reply.headers["x-continue"]}


async def test_a_place_in_one_timeline_is_none_in_another_and_nobody_elses(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    one, other = [made(await tenant.client.post(INSTANCES, tenant.wanted(compute, name))) for name in ("one", "other")]
    place = (await tenant.client.get(f"{at(one)}/timeline", {"limit": "1"})).headers["x-continue"]
    for client, instance, token in [
        (tenant.client, other, place),
        (compute.root, one, place),
        (tenant.client, one, "nonsense"),
    ]:
        reply = await client.get(f"{at(instance)}/timeline", {"continue": token})
        assert (reply.status, reply.json["problems"][0]["pointer"]) == (400, "continue")
    assert len(await timeline(tenant.client, one, **{"continue": place})) > 0


async def test_the_past_is_for_whoever_may_read_the_instance_and_is_nothing_to_others(
    compute: ComputeEnvironment,
) -> None:
    tenant, neighbour = await settle(compute), await settle(compute, "bob")
    identity = compute.region.identity
    elsewhere = await identity.organization("elsewhere")
    stranger = compute.client(await identity.member("eve@example.com", elsewhere, "administrator"))
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    for what in ("timeline", "operations", "explain"):
        path = f"{at(instance)}/{what}"
        assert (await tenant.client.get(path)).status == 200
        assert rejection(await neighbour.client.get(path))[0] == 403
        assert rejection(await stranger.get(path)) == NOT_FOUND
    await compute.until(instance, "provisioned")
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    for what in ("timeline", "operations", "explain"):
        path, never = f"{at(instance)}/{what}", f"{at(ABSENT)}/{what}"
        assert (await tenant.client.get(path)).status == 200
        assert (await compute.root.get(path)).status == 200
        for client in (neighbour.client, stranger):
            assert rejection(await client.get(path)) == rejection(await client.get(never)) == NOT_FOUND
        assert rejection(await tenant.client.get(never)) == NOT_FOUND


async def test_operations_say_who_had_what_done_and_how_it_ended_also_after_the_instance(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    found = expect(await tenant.client.get(f"{at(instance)}/operations"), 200)
    (done,) = found
    assert (done["saga"], done["phase"], done["actor"]) == ("instance.create", "done", "ann@example.com")
    assert {step["state"] for step in done["steps"]} == {"done"}
    assert done["incarnation"] == expect(await tenant.client.get(f"{at(instance)}/explain"), 200)["incarnation"]
    await compute.until(instance, "provisioned")
    await tenant.client.delete(at(instance))
    await compute.until_gone(instance)
    assert expect(await tenant.client.get(f"{at(instance)}/operations"), 200) == found
    (first,) = expect(await tenant.client.get(f"{at(instance)}/operations", {"limit": "1"}), 200)
    assert first in found


async def test_b02_explain_follows_an_instance_through_its_life(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    path = f"{at(instance)}/explain"
    early = expect(await tenant.client.get(path), 200)
    assert early["state"] in {"pending", "waiting"}
    assert [wait["resolvedBy"] for wait in early["waitingFor"]] == ["controller"]
    await compute.until(instance, "provisioned")
    settled = expect(await tenant.client.get(path), 200)
    assert (settled["state"], settled["waitingFor"]) == ("provisioned", [])
    assert settled["messages"] == ["The instance is provisioned and running."]
    await tenant.client.delete(at(instance))
    going = expect(await tenant.client.get(path), 200)
    assert (going["state"], going["waitingFor"][0]["reason"]) == ("deleting", "Deprovisioning")
    await compute.until_gone(instance)
    gone = expect(await tenant.client.get(path), 200)
    assert (gone["state"], gone["incarnation"]) == ("deleted", settled["incarnation"])


async def test_what_is_done_to_a_running_instance_is_told_with_who_did_it(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    assert (await tenant.client.send("POST", f"{at(instance)}/reboot", query={"hard": "true"})).status == 202
    events = await timeline(tenant.client, instance)
    rebooted = next(each for each in events if each["event"] == "Rebooted")
    assert rebooted["message"] == "The instance was rebooted (hard) by ann@example.com."
    assert (rebooted["cause"]["type"], rebooted["facts"]) == ("request", {"hard": True})


async def test_who_was_let_in_is_told_and_what_lets_in_is_not(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    address = expect(await tenant.client.get(f"{at(instance)}/consolesession"), 200)["url"]
    key = expect(await compute.root.get(f"{at(instance)}/sshkey"), 200)["privateKey"]
    assert (await tenant.client.get(f"{at(instance)}/consoleoutput")).status == 200
    events = await timeline(tenant.client, instance)
    handed, opened = events[:2]
    assert (handed["event"], opened["event"]) == ("KeyRead", "ConsoleOpened")
    assert opened["message"] == "The address of the console was read by ann@example.com."
    assert handed["message"].startswith("The private SSH key was read by ")
    assert [each["cause"]["type"] for each in (handed, opened)] == ["request", "request"]
    assert opened["cause"]["actor"] == "ann@example.com"
    assert len(handed["cause"]["traceID"]) == 32
    token = address.rpartition("=")[2] or address
    body = key.splitlines()[1]
    assert not [each for each in events if token in str(each) or body in str(each)]


async def test_nobody_is_told_to_be_let_in_who_was_not(compute: ComputeEnvironment) -> None:
    tenant, neighbour = await settle(compute), await settle(compute, "bob")
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    assert (await tenant.client.post(f"{at(instance)}/stop")).status == 202
    await compute.awaited(instance, lambda reply: reply.json["status"].get("powerState") == "Stopped", "stopped")
    assert (await neighbour.client.get(f"{at(instance)}/sshkey")).status == 403
    assert (await tenant.client.get(f"{at(instance)}/consolesession")).status == 400
    let_in = {"KeyRead", "ConsoleOpened"}
    assert not [each for each in await timeline(tenant.client, instance) if each["event"] in let_in]


async def test_explain_says_who_stopped_it_and_that_nobody_did(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    asked, elsewhere = [
        made(await tenant.client.post(INSTANCES, tenant.wanted(compute, name))) for name in ("one", "two")
    ]
    for each in (asked, elsewhere):
        await compute.until(each, "provisioned")
    assert (await tenant.client.post(f"{at(asked)}/stop")).status == 202
    compute.region.north.operator.stop(elsewhere)
    for each in (asked, elsewhere):
        await compute.awaited(each, lambda reply: reply.json["status"].get("powerState") == "Stopped", "stopped")
    lines = [expect(await tenant.client.get(f"{at(each)}/explain"), 200)["messages"][-1] for each in (asked, elsewhere)]
    assert lines[0].startswith("The instance was stopped by ann@example.com at ")
    assert lines[1].startswith("The instance was stopped without a request to Remuda: ")


async def test_explain_says_that_a_region_has_no_capacity_and_what_can_be_done(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    names = [f"gpu-{number}" for number in range(5)]
    wanted = [tenant.wanted(compute, name, flavorId=GPUS) for name in names]
    instances = [made(await compute.root.post(INSTANCES, each)) for each in wanted]
    await compute.clock.sleep(60.0)
    told_of = [expect(await tenant.client.get(f"{at(each)}/explain"), 200) for each in instances]
    (waiting,) = [each for each in told_of if each["state"] != "provisioned"]
    (wait,) = waiting["waitingFor"]
    assert (wait["reason"], wait["resolvedBy"]) == ("NoCapacity", "user")
    assert wait["message"].startswith("The region has no capacity for this flavor (since ")
    assert wait["since"] < waiting["observedAt"]
    assert waiting["messages"][-1].startswith("A user who may update the instance can resolve this. Wait, ")


async def test_a_server_that_was_removed_behind_our_back_is_an_observation(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    assert (await compute.region.root.delete(f"/api/v2/servers/{instance}")).status == 202

    async def is_recreated() -> bool:
        return "ServerRecreated" in [each["event"] for each in await timeline(tenant.client, instance)]

    await compute.region.identity.eventually("it is recreated", is_recreated)
    events = await timeline(tenant.client, instance)
    again = next(each for each in events if each["event"] == "ServerRecreated")
    assert again["cause"]["type"] == "observation"
    assert again["message"].startswith("The server is being created again: ")
    await compute.until(instance, "provisioned")
