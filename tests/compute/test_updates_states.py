"""What a plan tells of an instance that is stopped, broken, or on its way to another server."""

from typing import Any

from tests.kit.compute.controllers import at_cloud
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, made, settle
from tests.kit.compute.updates import LARGE, ROCKY, kinds, named, plan, put, wanted

OF_THE_DISK = {"rootDisk", "sshHostKeys", "memory"}
PORTED = {"id", "name", "privateIP", "macAddress"}
OTHER_WORDS = {"description": "in other words"}


async def _begin(compute: ComputeEnvironment) -> tuple[Tenant, str]:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    return tenant, instance


async def _until_it_is(compute: ComputeEnvironment, instance: str, power: str) -> None:
    await compute.awaited(instance, lambda reply: reply.json["status"]["powerState"] == power, power)


def _in_place(told: Any) -> tuple[str, str]:
    """Return what is said of a change that destroys nothing: of its step, and of how long it takes."""
    assert kinds(told) == ["in-place"]
    assert (told["isDestructive"], told["destroyed"], told["downtime"]["extent"]) == (False, [], "none")
    return told["steps"][0]["message"], told["downtime"]["message"]


async def test_b02_while_an_instance_is_replaced_no_plan_promises_that_its_disk_survives(
    compute: ComputeEnvironment,
) -> None:
    tenant, instance = await _begin(compute)
    described = wanted(tenant, compute, metadata=OTHER_WORDS, flavorId=LARGE)
    assert (await put(tenant.client, instance, wanted(tenant, compute, flavorId=LARGE))).status == 202
    asked_for = await plan(tenant.client, instance, described)
    await _until_it_is(compute, instance, "Rebuilding")
    under_way = await plan(tenant.client, instance, described)
    for told in (asked_for, under_way):
        step, downtime = _in_place(told)
        assert set(named(told["preserved"])) == PORTED
        assert "runs" not in step
        assert "already being rebuilt or replaced, with a new root disk" in downtime
    await compute.until(instance, "provisioned")
    ended = await plan(tenant.client, instance, described)
    assert set(named(ended["preserved"])) == PORTED | OF_THE_DISK
    assert _in_place(ended) == ("The change is applied while the instance runs.", "There is no downtime.")
    assert {asked_for["hash"], under_way["hash"]} == {ended["hash"]}


async def test_b02_what_an_instance_that_is_replaced_would_lose_needs_consent_all_the_same(
    compute: ComputeEnvironment,
) -> None:
    tenant, instance = await _begin(compute)
    protected: dict[str, Any] = {"flavorId": LARGE, "protection": {"plan": True}}
    assert (await put(tenant.client, instance, wanted(tenant, compute, **protected))).status == 202
    await _until_it_is(compute, instance, "Rebuilding")
    body = wanted(tenant, compute, **protected, imageId=ROCKY)
    refused = await put(tenant.client, instance, body)
    assert (refused.status, refused.json["code"]) == (409, "plan_required")
    told = refused.json["plan"]
    assert set(named(told["destroyed"])) == {"rootDisk", "sshHostKeys"}
    assert (told["isDestructive"], told["downtime"]["extent"]) == (True, "seconds")
    assert (await put(tenant.client, instance, body, plan=told["hash"])).status == 202
    await compute.until(instance, "provisioned")


async def test_b02_of_a_stopped_instance_nothing_is_said_to_run_and_its_plan_holds_when_it_is_started(
    compute: ComputeEnvironment,
) -> None:
    tenant, instance = await _begin(compute)
    assert (await tenant.client.post(at(instance, "stop"))).status == 202
    await _until_it_is(compute, instance, "Stopped")
    told = await plan(tenant.client, instance, wanted(tenant, compute, metadata=OTHER_WORDS))
    step, downtime = _in_place(told)
    assert set(named(told["preserved"])) == PORTED | {"rootDisk", "sshHostKeys"}
    assert "runs" not in step
    assert "no further downtime" in downtime
    body = wanted(tenant, compute, imageId=ROCKY)
    told = await plan(tenant.client, instance, body)
    assert set(named(told["destroyed"])) == {"rootDisk", "sshHostKeys"}
    assert "memory" not in named(told["preserved"])
    assert (told["isDestructive"], told["downtime"]["extent"]) == (True, "none")
    assert (await tenant.client.post(at(instance, "start"))).status == 202
    await _until_it_is(compute, instance, "Running")
    running = await plan(tenant.client, instance, body)
    assert set(named(running["destroyed"])) == OF_THE_DISK
    assert running["hash"] == told["hash"]
    assert (await put(tenant.client, instance, body, plan=told["hash"])).status == 202


async def test_b02_of_a_broken_instance_nothing_is_said_to_run(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute)
    compute.region.north.operator.fail(at_cloud(compute)[0].id, "the disk broke")
    await _until_it_is(compute, instance, "Error")
    told = await plan(tenant.client, instance, wanted(tenant, compute, metadata=OTHER_WORDS))
    step, downtime = _in_place(told)
    assert "memory" not in named(told["preserved"])
    assert "runs" not in step
    assert "no further downtime" in downtime
