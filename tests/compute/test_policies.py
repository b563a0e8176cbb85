"""What a project demands of all its instances."""

from typing import Any

from remuda.compute.kinds import ProjectPolicy
from tests.compute.asking import ABSENT, Home, at, forbidden, made, settle
from tests.compute.changing import LARGE, plan, put, wanted
from tests.compute.house import INSTANCES, ComputeHouse, in_a_compute
from tests.example.client import Client
from tests.example.contract import Reply
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


def test_nothing_is_demanded_until_somebody_says_so() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home, admin = await settle(house), await _admin(house)
        path = _path(house, home.project)
        before = await home.client.get(path)
        assert (before.status, before.json) == (200, NOTHING)
        reply = await admin.put(path, {"deletion": True})
        assert (reply.status, reply.json) == (200, {"deletion": True, "plan": False})
        after = await home.client.get(path)
        assert (after.json, after.headers["etag"]) == (reply.json, reply.headers["etag"])
        assert before.headers["etag"] != after.headers["etag"]
        assert (await admin.put(path, {})).json == NOTHING, "what is left out is not demanded"

    in_a_compute(scenario)


def test_a_policy_is_for_those_to_set_who_may_change_projects() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home, other = await settle(house), await settle(house, "bob")
        path = _path(house, home.project)
        refused = forbidden("update", endpoint="identity:projects")
        assert refusal(await home.client.put(path, {"plan": True})) == refused
        assert (await other.client.get(path)).status == 403
        assert (await other.client.put(path, {"plan": True})).status == 403
        assert (await house.client(None).get(path)).status == 401
        assert not (await house.store.list(ProjectPolicy)).items
        for reply in (await house.root.get(_path(house, ABSENT)), await house.root.put(_path(house, ABSENT), {})):
            assert refusal(reply) == (404, "resource not found")

    in_a_compute(scenario)


def test_b01_a_policy_is_set_for_the_state_that_was_seen() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        path = _path(house, home.project)
        seen = (await house.root.get(path)).headers["etag"]
        first = await house.root.put(path, {"plan": True}, if_match=seen)
        assert first.status == 200
        assert (await house.root.put(path, {}, if_match=seen)).status == 412
        assert (await house.root.put(path, {}, if_match=first.headers["etag"])).status == 200
        replies = [await house.root.put(path, {"plan": True}, idempotency_key="k") for _ in range(2)]
        assert replies[0].body == replies[1].body

    in_a_compute(scenario)


def test_b02_a_policy_protects_every_instance_of_its_project_from_deletion() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home, other = await settle(house), await settle(house, "bob")
        mine, theirs = [
            made(await each.client.post(INSTANCES, each.wanted(house, name=f"of-{each.project[:8]}")))
            for each in (home, other)
        ]
        await _set(house, home, deletion=True)
        status, words = refusal(await home.client.delete(at(mine)))
        assert status == 403
        assert "policy of its project" in words
        assert "deletion" in words
        assert (await other.client.delete(at(theirs))).status == 202
        await _set(house, home)
        assert (await home.client.delete(at(mine))).status == 202
        await _set(house, home, deletion=True)
        assert (await home.client.delete(at(mine))).status == 202, "what is going is not protected any more"
        await house.until_gone(mine)

    in_a_compute(scenario)


def test_b02_a_policy_demands_the_plan_of_what_destroys() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = made(await home.client.post(INSTANCES, home.wanted(house)))
        await house.until(instance, "provisioned")
        await _set(house, home, plan=True)
        body = wanted(home, house, flavorId=LARGE)
        refused = await put(home.client, instance, body)
        assert (refused.status, refused.json["code"]) == (409, "plan_required")
        agreed: Any = await plan(home.client, instance, body)
        assert refused.json["plan"] == agreed
        assert (await put(home.client, instance, body, plan=agreed["hash"])).status == 202
        await _set(house, home)
        assert (await put(home.client, instance, wanted(home, house))).status == 202

    in_a_compute(scenario)


def test_an_instance_that_protects_itself_says_how_to_lift_that() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = made(await home.client.post(INSTANCES, home.wanted(house, protection={"deletion": True})))
        words = "the instance is protected from deletion: set spec.protection.deletion to false, then delete it"
        assert refusal(await home.client.delete(at(instance))) == (403, words)
        lifted = wanted(home, house, protection={"deletion": False})
        assert (await put(home.client, instance, lifted)).status == 202
        assert (await home.client.delete(at(instance))).status == 202

    in_a_compute(scenario)
