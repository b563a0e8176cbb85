"""What a project demands of all its instances."""

from typing import Any

from remuda.compute.kinds import ProjectPolicy
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import ABSENT, Tenant, at, forbidden, made, settle
from tests.kit.compute.updates import LARGE, plan, put, wanted
from tests.kit.resource_api import rejection

NOTHING = {"deletion": False, "plan": False}


def _path(compute: ComputeEnvironment, project: str) -> str:
    return f"/api/v2/organizations/{compute.region.organization}/projects/{project}/policy"


async def _set(compute: ComputeEnvironment, tenant: Tenant, **demands: bool) -> Reply:
    return await compute.root.put(_path(compute, tenant.project), demands)


async def _admin(compute: ComputeEnvironment) -> Client:
    identity = compute.region.identity
    group = await identity.group(compute.region.organization, "administrator", name="admins")
    await identity.user("admin@example.com", compute.region.organization, group)
    return compute.client(await identity.log_in("admin@example.com"))


async def test_nothing_is_demanded_until_somebody_says_so(compute: ComputeEnvironment) -> None:
    tenant, admin = await settle(compute), await _admin(compute)
    path = _path(compute, tenant.project)
    before = await tenant.client.get(path)
    assert (before.status, before.json) == (200, NOTHING)
    reply = await admin.put(path, {"deletion": True})
    assert (reply.status, reply.json) == (200, {"deletion": True, "plan": False})
    after = await tenant.client.get(path)
    assert (after.json, after.headers["etag"]) == (reply.json, reply.headers["etag"])
    assert before.headers["etag"] != after.headers["etag"]
    assert (await admin.put(path, {})).json == NOTHING, "what is left out is not demanded"


async def test_a_policy_is_for_those_to_set_who_may_change_projects(compute: ComputeEnvironment) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    path = _path(compute, tenant.project)
    refused = forbidden("update", endpoint="identity:projects")
    assert rejection(await tenant.client.put(path, {"plan": True})) == refused
    assert (await other.client.get(path)).status == 403
    assert (await other.client.put(path, {"plan": True})).status == 403
    assert (await compute.client(None).get(path)).status == 401
    assert not (await compute.store.list(ProjectPolicy)).items
    for reply in (await compute.root.get(_path(compute, ABSENT)), await compute.root.put(_path(compute, ABSENT), {})):
        assert rejection(reply) == (404, "resource not found")


async def test_b01_a_policy_is_set_for_the_state_that_was_seen(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    path = _path(compute, tenant.project)
    seen = (await compute.root.get(path)).headers["etag"]
    first = await compute.root.put(path, {"plan": True}, if_match=seen)
    assert first.status == 200
    assert (await compute.root.put(path, {}, if_match=seen)).status == 412
    assert (await compute.root.put(path, {}, if_match=first.headers["etag"])).status == 200
    replies = [await compute.root.put(path, {"plan": True}, idempotency_key="k") for _ in range(2)]
    assert replies[0].body == replies[1].body


async def test_b02_a_policy_protects_every_instance_of_its_project_from_deletion(compute: ComputeEnvironment) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    mine, theirs = [
        made(await each.client.post(INSTANCES, each.wanted(compute, name=f"of-{each.project[:8]}")))
        for each in (tenant, other)
    ]
    await _set(compute, tenant, deletion=True)
    status, words = rejection(await tenant.client.delete(at(mine)))
    assert status == 403
    assert "policy of the project" in words
    assert "deletion" in words
    assert (await other.client.delete(at(theirs))).status == 202
    await _set(compute, tenant)
    assert (await tenant.client.delete(at(mine))).status == 202
    await _set(compute, tenant, deletion=True)
    assert (await tenant.client.delete(at(mine))).status == 202, "what is going is not protected any more"
    await compute.until_gone(mine)


async def test_b02_a_policy_demands_the_plan_of_what_destroys(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    await _set(compute, tenant, plan=True)
    body = wanted(tenant, compute, flavorId=LARGE)
    refused = await put(tenant.client, instance, body)
    assert (refused.status, refused.json["code"]) == (409, "plan_required")
    agreed: Any = await plan(tenant.client, instance, body)
    assert refused.json["plan"] == agreed
    assert (await put(tenant.client, instance, body, plan=agreed["hash"])).status == 202
    await _set(compute, tenant)
    assert (await put(tenant.client, instance, wanted(tenant, compute))).status == 202


async def test_an_instance_that_protects_itself_says_how_to_lift_that(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, protection={"deletion": True})))
    words = "The instance is protected from deletion: set spec.protection.deletion to false, then delete it."
    assert rejection(await tenant.client.delete(at(instance))) == (403, words)
    lifted = wanted(tenant, compute, protection={"deletion": False})
    assert (await put(tenant.client, instance, lifted)).status == 202
    assert (await tenant.client.delete(at(instance))).status == 202
