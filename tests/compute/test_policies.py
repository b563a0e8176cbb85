"""What a project demands of all its instances."""

from typing import Any

from remuda.compute.kinds import ProjectPolicy
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.compute.asking import ABSENT, Home, at, forbidden, made, settle
from tests.kit.compute.changing import LARGE, plan, put, wanted
from tests.kit.compute.house import INSTANCES, ComputeHouse
from tests.resources.room import refusal

NOTHING = {"deletion": False, "plan": False}


def _path(house: ComputeHouse, project: str) -> str:
    return f"/api/v2/organizations/{house.region.organization}/projects/{project}/policy"


async def _set(house: ComputeHouse, home: Home, **demands: bool) -> Reply:
    return await house.root.put(_path(house, home.project), demands)


async def _admin(house: ComputeHouse) -> Client:
    identity = house.region.identity
    group = await identity.group(house.region.organization, "administrator", name="admins")
    await identity.user("admin@example.com", house.region.organization, group)
    return house.client(await identity.log_in("admin@example.com"))


async def test_nothing_is_demanded_until_somebody_says_so(compute: ComputeHouse) -> None:
    home, admin = await settle(compute), await _admin(compute)
    path = _path(compute, home.project)
    before = await home.client.get(path)
    assert (before.status, before.json) == (200, NOTHING)
    reply = await admin.put(path, {"deletion": True})
    assert (reply.status, reply.json) == (200, {"deletion": True, "plan": False})
    after = await home.client.get(path)
    assert (after.json, after.headers["etag"]) == (reply.json, reply.headers["etag"])
    assert before.headers["etag"] != after.headers["etag"]
    assert (await admin.put(path, {})).json == NOTHING, "what is left out is not demanded"


async def test_a_policy_is_for_those_to_set_who_may_change_projects(compute: ComputeHouse) -> None:
    home, other = await settle(compute), await settle(compute, "bob")
    path = _path(compute, home.project)
    refused = forbidden("update", endpoint="identity:projects")
    assert refusal(await home.client.put(path, {"plan": True})) == refused
    assert (await other.client.get(path)).status == 403
    assert (await other.client.put(path, {"plan": True})).status == 403
    assert (await compute.client(None).get(path)).status == 401
    assert not (await compute.store.list(ProjectPolicy)).items
    for reply in (await compute.root.get(_path(compute, ABSENT)), await compute.root.put(_path(compute, ABSENT), {})):
        assert refusal(reply) == (404, "resource not found")


async def test_b01_a_policy_is_set_for_the_state_that_was_seen(compute: ComputeHouse) -> None:
    home = await settle(compute)
    path = _path(compute, home.project)
    seen = (await compute.root.get(path)).headers["etag"]
    first = await compute.root.put(path, {"plan": True}, if_match=seen)
    assert first.status == 200
    assert (await compute.root.put(path, {}, if_match=seen)).status == 412
    assert (await compute.root.put(path, {}, if_match=first.headers["etag"])).status == 200
    replies = [await compute.root.put(path, {"plan": True}, idempotency_key="k") for _ in range(2)]
    assert replies[0].body == replies[1].body


async def test_b02_a_policy_protects_every_instance_of_its_project_from_deletion(compute: ComputeHouse) -> None:
    home, other = await settle(compute), await settle(compute, "bob")
    mine, theirs = [
        made(await each.client.post(INSTANCES, each.wanted(compute, name=f"of-{each.project[:8]}")))
        for each in (home, other)
    ]
    await _set(compute, home, deletion=True)
    status, words = refusal(await home.client.delete(at(mine)))
    assert status == 403
    assert "policy of the project" in words
    assert "deletion" in words
    assert (await other.client.delete(at(theirs))).status == 202
    await _set(compute, home)
    assert (await home.client.delete(at(mine))).status == 202
    await _set(compute, home, deletion=True)
    assert (await home.client.delete(at(mine))).status == 202, "what is going is not protected any more"
    await compute.until_gone(mine)


async def test_b02_a_policy_demands_the_plan_of_what_destroys(compute: ComputeHouse) -> None:
    home = await settle(compute)
    instance = made(await home.client.post(INSTANCES, home.wanted(compute)))
    await compute.until(instance, "provisioned")
    await _set(compute, home, plan=True)
    body = wanted(home, compute, flavorId=LARGE)
    refused = await put(home.client, instance, body)
    assert (refused.status, refused.json["code"]) == (409, "plan_required")
    agreed: Any = await plan(home.client, instance, body)
    assert refused.json["plan"] == agreed
    assert (await put(home.client, instance, body, plan=agreed["hash"])).status == 202
    await _set(compute, home)
    assert (await put(home.client, instance, wanted(home, compute))).status == 202


async def test_an_instance_that_protects_itself_says_how_to_lift_that(compute: ComputeHouse) -> None:
    home = await settle(compute)
    instance = made(await home.client.post(INSTANCES, home.wanted(compute, protection={"deletion": True})))
    words = "The instance is protected from deletion. Set spec.protection.deletion to false before you delete it."
    assert refusal(await home.client.delete(at(instance))) == (403, words)
    lifted = wanted(home, compute, protection={"deletion": False})
    assert (await put(home.client, instance, lifted)).status == 202
    assert (await home.client.delete(at(instance))).status == 202
