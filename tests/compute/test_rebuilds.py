"""An instance is rebuilt from its own image: broken, running or stopped, with plan and consent as for another image."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.region.kinds.servers import Server
from remuda.store.logs import subject_of
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.compute.controllers import at_cloud, rest, restarted, stored
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import ABSENT, DEBIAN, NOT_FOUND, Tenant, at, encoded, held, made, settle
from tests.kit.compute.updates import ROCKY, kinds, named, put, wanted
from tests.kit.resource_api import rejection

OF_THE_DISK = {"rootDisk", "sshHostKeys", "memory"}
PUBLIC = {"networking": {"publicIP": True}}


async def _begin(compute: ComputeEnvironment, **spec: Any) -> tuple[Tenant, str]:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, **spec)))
    await compute.until(instance, "provisioned")
    return tenant, instance


async def _rebuild(client: Client, instance: str, headers: Any = None, **query: str) -> Reply:
    return await client.send("POST", at(instance, "rebuild"), query=query, headers=headers or {})


async def _plan(client: Client, instance: str) -> Any:
    reply = await _rebuild(client, instance, dryRun="true")
    assert reply.status == 200, reply.body.decode()
    return reply.json


def _accepted(reply: Reply) -> Any:
    assert reply.status == 202, reply.body.decode()
    return reply.json


async def _until_power(compute: ComputeEnvironment, instance: str, power: str) -> None:
    await compute.awaited(instance, lambda reply: reply.json["status"]["powerState"] == power, power)


async def _events(compute: ComputeEnvironment, instance: str) -> list[dict[str, Any]]:
    page = await compute.store.read("timeline", subject_of(INSTANCE.qualified, instance), limit=1000)
    return [msgspec.json.decode(entry.data) for entry in page.entries]


def _counts(compute: ComputeEnvironment) -> list[tuple[str, int]]:
    return [(each.state, each.rebuilds) for each in at_cloud(compute)]


async def test_a_running_instance_is_rebuilt_from_its_image_and_keeps_its_addresses(
    compute: ComputeEnvironment,
) -> None:
    _, instance = await _begin(compute, **PUBLIC)
    before, (server,) = await compute.read(instance), at_cloud(compute)
    shown = _accepted(await _rebuild(compute.root, instance))
    assert (shown["metadata"]["provisioningStatus"], shown["status"]["powerState"]) == ("provisioning", "Rebuilding")
    assert shown["status"] == before["status"] | {"powerState": "Rebuilding", "rebuilds": 1}
    assert shown["spec"] == before["spec"]
    after = await compute.until(instance, "provisioned")
    assert after["status"] == before["status"] | {"rebuilds": 1}
    assert [(each.id, each.rebuilds, each.image) for each in at_cloud(compute)] == [(server.id, 1, DEBIAN)]
    assert (await stored(compute, instance)).metadata.generation == 2
    assert await held(compute) == [{"servers": 1, "floatingips": 1}]
    told = [each["event"] for each in await _events(compute, instance)]
    assert [each for each in told if "Reb" in each] == ["RebuildRequested", "Rebuilding", "Rebuilt"]
    requested = next(each for each in await _events(compute, instance) if each["event"] == "RebuildRequested")
    assert requested["image"] == DEBIAN
    timeline = (await compute.root.get(at(instance, "timeline"))).json
    assert "A rebuild from image debian-12-amd64 was requested by" in " ".join(each["message"] for each in timeline)


async def test_an_instance_whose_server_failed_says_how_it_is_repaired_and_is(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute)
    compute.region.north.operator.fail(at_cloud(compute)[0].id, "the disk broke")
    await _until_power(compute, instance, "Error")
    read = await compute.read(instance)
    assert (read["metadata"]["healthStatus"], read["metadata"]["healthStatusDetail"]["message"]) == (
        "error",
        "the disk broke",
    )
    explained = (await tenant.client.get(at(instance, "explain"))).json
    assert "Rebuild the instance" in " ".join(explained["messages"])
    told = await _plan(tenant.client, instance)
    assert (kinds(told), set(named(told["destroyed"]))) == (["rebuild"], {"rootDisk", "sshHostKeys"})
    shown = _accepted(await _rebuild(tenant.client, instance, plan=told["hash"]))
    assert shown["status"]["powerState"] == "Rebuilding"
    await compute.until(instance, "provisioned")
    await _until_power(compute, instance, "Running")
    assert (await compute.read(instance))["metadata"]["healthStatus"] == "healthy"
    assert _counts(compute) == [("running", 1)]
    assert (await tenant.client.get(at(instance, "explain"))).json["state"] == "provisioned"


async def test_an_instance_that_never_started_gets_another_server(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    while (await compute.read(instance))["metadata"]["provisioningStatus"] != "error":
        for each in at_cloud(compute):
            if each.state == "building":
                compute.region.north.operator.fail(each.id, "no machine starts")
        await compute.clock.sleep(0.1)
    told = await _plan(tenant.client, instance)
    assert kinds(told) == ["replace"]
    _accepted(await _rebuild(tenant.client, instance, plan=told["hash"]))
    await compute.until(instance, "provisioned")
    assert _counts(compute) == [("running", 1)]
    assert (await compute.store.get(Server, instance)).spec.replacement == 1


async def test_an_instance_whose_rebuild_failed_is_in_error_with_the_cause_and_the_next_replaces_its_server(
    compute: ComputeEnvironment,
) -> None:
    tenant, instance = await _begin(compute)
    (before,) = at_cloud(compute)
    _accepted(await _rebuild(tenant.client, instance))
    while at_cloud(compute)[0].state != "rebuilding":
        await compute.clock.sleep(0.01)
    compute.region.north.operator.fail(before.id, "the disk broke")
    read = await compute.until(instance, "error")
    assert read["status"]["powerState"] == "Error"
    assert "the rebuild failed" in read["metadata"]["provisioningStatusDetail"]["message"]
    assert [each["event"] for each in await _events(compute, instance)].count("RebuildFailed") == 1
    explained = (await tenant.client.get(at(instance, "explain"))).json
    assert "Rebuild the instance" in " ".join(explained["messages"])
    assert kinds(await _plan(tenant.client, instance)) == ["replace"]
    _accepted(await _rebuild(tenant.client, instance))
    await compute.until(instance, "provisioned")
    assert [(each.state, each.rebuilds) for each in at_cloud(compute)] == [("running", 2)]
    assert at_cloud(compute)[0].id != before.id


async def test_a_stopped_instance_stays_stopped(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute)
    assert (await tenant.client.post(at(instance, "stop"))).status == 202
    await _until_power(compute, instance, "Stopped")
    assert (await tenant.client.post(at(instance, "stop"))).status == 202, "it is stopped as requested"
    _accepted(await _rebuild(tenant.client, instance))
    read = await compute.until(instance, "provisioned")
    assert (read["status"]["powerState"], _counts(compute)) == ("Stopped", [("stopped", 1)])


async def test_b02_a_rebuild_is_planned_agreed_to_and_done_once(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute)
    before = await stored(compute, instance)
    told = await _plan(tenant.client, instance)
    assert told == await _plan(tenant.client, instance), "asked again it is the same"
    assert (kinds(told), set(named(told["destroyed"]))) == (["rebuild"], OF_THE_DISK)
    (change,) = told["steps"][0]["changes"]
    assert change["field"] == "status.rebuilds"
    assert "debian-12-amd64" in change["message"]
    assert all(each["delta"] == 0 for each in told["quota"])
    assert await stored(compute, instance) == before, "a dry run changes nothing"
    _accepted(await _rebuild(tenant.client, instance, plan=told["hash"]))
    again = await _rebuild(tenant.client, instance, plan=told["hash"])
    assert (again.status, again.json["code"]) == (409, "plan_changed"), "it was another rebuild"
    await compute.until(instance, "provisioned")
    assert _counts(compute) == [("running", 1)]
    other = await put(tenant.client, instance, wanted(tenant, compute, imageId=ROCKY), plan=told["hash"])
    assert (other.status, other.json["code"]) == (409, "plan_changed")


async def test_b02_a_protected_instance_or_project_demands_the_plan(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute, protection={"deletion": False, "plan": True})
    refused = await _rebuild(tenant.client, instance)
    assert (refused.status, refused.json["code"]) == (409, "plan_required")
    assert refused.json["plan"] == await _plan(tenant.client, instance)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
    _accepted(await _rebuild(tenant.client, instance, plan=refused.json["plan"]["hash"]))
    await compute.until(instance, "provisioned")
    lifted = wanted(tenant, compute, protection={"deletion": False, "plan": False})
    assert (await put(tenant.client, instance, lifted)).status == 202
    policy = f"/api/v2/organizations/{compute.region.organization}/projects/{tenant.project}/policy"
    assert (await compute.root.put(policy, {"plan": True})).status == 200
    assert (await _rebuild(tenant.client, instance)).json["code"] == "plan_required"
    assert _counts(compute) == [("running", 1)]


async def test_b01_a_rebuild_holds_for_the_state_that_the_caller_has_seen(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute)
    seen = (await tenant.client.get(at(instance))).headers["etag"]
    for query in ({"dryRun": "true"}, {}):
        reply = await _rebuild(tenant.client, instance, {"if-match": seen}, **query)
        assert reply.status in {200, 202}
    assert reply.headers["etag"] != seen
    assert (await _rebuild(tenant.client, instance, {"if-match": seen})).status == 412, "it would be the second"
    assert (await stored(compute, instance)).spec.rebuilds == 1


async def test_a_repeat_under_its_key_is_no_second_rebuild(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute, userData=encoded("#cloud-config\n"))
    keyed = {"idempotency-key": "mine"}
    first = _accepted(await _rebuild(tenant.client, instance, keyed))
    again = await _rebuild(tenant.client, instance, keyed)
    assert (again.status, again.headers["idempotency-replayed"]) == (202, "true")
    assert again.json["spec"] == first["spec"]
    await compute.until(instance, "provisioned")
    assert _counts(compute) == [("running", 1)]
    _accepted(await _rebuild(tenant.client, instance, {"idempotency-key": "another"}))
    await compute.until(instance, "provisioned")
    assert _counts(compute) == [("running", 2)]


async def test_a_rebuild_is_audited_and_its_plan_too(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute)
    await _plan(tenant.client, instance)
    _accepted(await _rebuild(tenant.client, instance))
    page = await compute.app.ports.log.read("audit", f"organization/{compute.region.organization}", limit=1000)
    records = [msgspec.json.decode(each.data) for each in page.entries]
    told = [each["result"]["status"] for each in records if each["operation"].get("action") == "rebuild"]
    assert told == [200, 202]


async def test_who_may_not_update_may_not_rebuild_and_what_is_not_there_or_goes_is_not_rebuilt(
    compute: ComputeEnvironment,
) -> None:
    tenant, instance = await _begin(compute)
    reader = await settle(compute, "bob", role="reader")
    assert (await _rebuild(reader.client, instance)).status == 403
    assert rejection(await _rebuild(tenant.client, ABSENT)) == NOT_FOUND
    assert (await _rebuild(tenant.client, instance, plan="x")).status == 400
    assert (await tenant.client.delete(at(instance))).status == 202
    assert (await _rebuild(tenant.client, instance)).status in {400, 404}
    await compute.until_gone(instance)


async def test_an_image_that_is_no_longer_offered_rebuilds_nothing(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute)
    found = await stored(compute, instance)
    await compute.store.update(replace(found, spec=replace(found.spec, image_id=ABSENT, pause=True)))
    before = await stored(compute, instance)
    for query in ({"dryRun": "true"}, {}):
        reply = await _rebuild(tenant.client, instance, **query)
        assert rejection(reply) == (400, "requested image does not exist or is not accessible")
    assert await stored(compute, instance) == before


async def test_an_instance_that_knows_fewer_rebuilds_than_its_server_is_rebuilt_when_that_is_requested(
    compute: ComputeEnvironment,
) -> None:
    tenant, instance = await _begin(compute)
    for _ in range(2):
        _accepted(await _rebuild(tenant.client, instance))
        await compute.until(instance, "provisioned")
    found = await stored(compute, instance)  # as after a restore of compute from an older backup
    assert found.status.applied is not None
    older = replace(found.status, applied=replace(found.status.applied, rebuilds=0))
    found = await compute.store.update_status(replace(found, status=older))
    await compute.store.update(replace(found, spec=replace(found.spec, rebuilds=0)))
    await rest(compute)
    assert _counts(compute) == [("running", 2)], "nobody requested anything"
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
    told = [each["event"] for each in await _events(compute, instance)]
    assert told.count("Rebuilt") == 2
    _accepted(await _rebuild(tenant.client, instance))
    await compute.until(instance, "provisioned")
    assert _counts(compute) == [("running", 3)]


async def _nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize("after_s", [0, 0.001, 0.01, 0.1, 0.3, 1, 2, 3])
async def test_c11_ended_in_the_middle_of_a_rebuild_it_is_finished_once(
    compute: ComputeEnvironment, after_s: float
) -> None:
    tenant, instance = await _begin(compute)
    _accepted(await _rebuild(tenant.client, instance))
    await compute.clock.sleep(after_s)
    async with restarted(compute, _nothing):
        await compute.until(instance, "provisioned")
        await rest(compute)
        assert _counts(compute) == [("running", 1)]
        told = [each["event"] for each in await _events(compute, instance)]
        assert (told.count("Rebuilding"), told.count("Rebuilt")) == (1, 1)
        assert (await compute.store.get(ComputeInstance, instance)).spec.rebuilds == 1
