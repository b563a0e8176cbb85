"""The plan of a change: told beforehand, agreed to by its hash, demanded where something is protected."""

from typing import Any

import msgspec
import pytest

from remuda.compute.kinds import ComputeInstance
from tests.compute.asking import GPUS, Home, at, encoded, held, made, make_authority, settle
from tests.compute.changing import LARGE, ROCKY, SMALL, kinds, named, plan, put, wanted
from tests.compute.house import INSTANCES, ComputeHouse, in_a_compute
from tests.example.contract import Reply
from tests.resources.room import refusal

ADDRESSES = {"privateIP", "publicIP", "macAddress"}


async def _instance(house: ComputeHouse, home: Home, **spec: Any) -> str:
    instance = made(await home.client.post(INSTANCES, home.wanted(house, **spec)))
    await house.until(instance, "provisioned")
    return instance


def _refused(reply: Reply, code: str) -> Any:
    assert (reply.status, reply.json["error"], reply.json["code"]) == (409, "conflict", code), reply.body.decode()
    return reply.json["plan"]


def test_b02_c03_a_dry_run_tells_what_is_lost_and_what_survives_and_changes_nothing() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home, networking={"publicIP": True})
        before = await house.store.get(ComputeInstance, instance)
        read = (await home.client.get(at(instance))).json
        told = await plan(home.client, instance, wanted(home, house, flavorId=GPUS, networking={"publicIP": True}))
        assert kinds(told) == ["replace"]
        assert set(named(told["lost"])) == {"rootDisk", "sshHostKeys", "memory"}
        survives = named(told["survives"])
        assert {name: survives[name] for name in ADDRESSES} == {name: read["status"][name] for name in ADDRESSES}
        assert (survives["id"], survives["name"]) == (instance, "instance")
        assert told["isDestructive"]
        assert told["downtime"]["extent"] == "seconds"
        assert {each["kind"]: each["delta"] for each in told["quota"]} == {"servers": 0, "gpus": 4, "floatingips": 0}
        (change,) = told["steps"][0]["changes"]
        assert change["field"] == "spec.flavorId"
        assert "sim-standard-4" in change["sentence"]
        assert "4 x H100" in change["sentence"]
        await house.clock.sleep(60)
        assert await house.store.get(ComputeInstance, instance) == before
        assert await held(house) == [{"servers": 1, "floatingips": 1}]

    in_a_compute(scenario)


def test_b02_every_kind_of_change_has_its_class() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        authority = await make_authority(house, home.project)
        data = encoded("#cloud-config\n")
        for spec, expected in (
            ({}, []),
            ({"networking": {"publicIP": False}}, []),
            ({"networking": {"publicIP": True}}, ["in-place"]),
            ({"protection": {"deletion": True, "plan": False}}, ["in-place"]),
            ({"userData": data}, ["deferred"]),
            ({"imageId": ROCKY}, ["rebuild"]),
            ({"imageId": ROCKY, "userData": data}, ["rebuild"]),
            ({"flavorId": SMALL}, ["replace"]),
            ({"flavorId": SMALL, "imageId": ROCKY}, ["replace"]),
            ({"sshCertificateAuthorityId": authority}, ["replace"]),
            ({"networking": {"publicIP": True}, "flavorId": SMALL}, ["in-place", "replace"]),
        ):
            assert kinds(await plan(home.client, instance, wanted(home, house, **spec))) == expected, spec
        described = wanted(home, house, metadata={"description": "x", "tags": [{"name": "a", "value": "b"}]})
        told = await plan(home.client, instance, described)
        assert [each["field"] for each in told["steps"][0]["changes"]] == ["metadata.description", "metadata.tags"]
        assert not told["isDestructive"]

    in_a_compute(scenario)


def test_b02_the_plan_that_was_agreed_to_is_done() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        body = wanted(home, house, imageId=ROCKY)
        agreed = (await plan(home.client, instance, body))["hash"]
        assert (await plan(home.client, instance, body))["hash"] == agreed, "asked again it is the same"
        done = await put(home.client, instance, body, plan=agreed)
        assert (done.status, done.json["spec"]["imageId"]) == (202, ROCKY)
        settled = await house.until(instance, "provisioned")
        assert settled["spec"]["imageId"] == ROCKY

    in_a_compute(scenario)


def test_b02_another_plan_than_was_agreed_to_is_refused_with_the_present_one() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        body = wanted(home, house, imageId=ROCKY)
        agreed = (await plan(home.client, instance, body))["hash"]
        assert (await put(house.root, instance, wanted(home, house, metadata={"description": "new"}))).status == 202
        present = _refused(await put(home.client, instance, body, plan=agreed), "plan_changed")
        assert present["hash"] != agreed
        assert kinds(present) == ["in-place", "rebuild"], "it would take the description away, too"
        assert present == await plan(home.client, instance, body)
        assert (await house.read(instance))["spec"]["imageId"] != ROCKY
        assert (await put(home.client, instance, body, plan=present["hash"])).status == 202
        other = wanted(home, house, imageId=ROCKY, flavorId=SMALL)
        _refused(await put(home.client, instance, other, plan=present["hash"]), "plan_changed")

    in_a_compute(scenario)


def test_b02_a_plan_that_is_done_already_is_no_conflict() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        body = wanted(home, house, flavorId=LARGE)
        agreed = (await plan(home.client, instance, body))["hash"]
        keyed = {"idempotency-key": "k"}
        for headers in (keyed, keyed, {}):
            reply = await put(home.client, instance, body, headers, plan=agreed)
            assert (reply.status, reply.json["spec"]["flavorId"]) == (202, LARGE)
        await house.until(instance, "provisioned")
        changes = (await house.store.get(ComputeInstance, instance)).metadata.generation
        assert changes == 2

    in_a_compute(scenario)


def test_b02_what_is_only_observed_makes_no_other_plan() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = made(await home.client.post(INSTANCES, home.wanted(house)))
        body = wanted(home, house, flavorId=LARGE)
        early = await plan(home.client, instance, body)
        assert "privateIP" not in {each["thing"] for each in early["survives"] if "value" in each}
        await house.until(instance, "provisioned")
        assert (await home.client.post(at(instance, "stop"))).status == 202
        await house.clock.sleep(30)
        late = await plan(home.client, instance, body)
        assert late["hash"] == early["hash"]
        assert named(late["survives"])["privateIP"]

    in_a_compute(scenario)


def test_b02_an_instance_made_again_under_its_name_has_other_plans() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        body = wanted(home, house, flavorId=LARGE)
        agreed = (await plan(home.client, instance, body))["hash"]
        await home.client.delete(at(instance))
        await house.until_gone(instance)
        assert await _instance(house, home) == instance
        _refused(await put(home.client, instance, body, plan=agreed), "plan_changed")

    in_a_compute(scenario)


def test_b02_a_protected_instance_demands_the_plan_of_what_destroys_and_of_nothing_else() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        protected = {"protection": {"deletion": False, "plan": True}}
        public = {"networking": {"publicIP": True}}
        instance = await _instance(house, home, **protected, **public)
        read = await house.read(instance)
        for spec in ({"flavorId": SMALL, **public}, {"imageId": ROCKY, **public}, {}):
            body = wanted(home, house, **spec)
            demanded = _refused(await put(home.client, instance, body), "plan_required")
            assert demanded["isDestructive"]
            assert demanded == await plan(home.client, instance, body)
        assert named(demanded["lost"]) == {"publicIP": read["status"]["publicIP"]}
        assert (await house.read(instance))["spec"] == read["spec"]
        harmless = wanted(home, house, metadata={"description": "x"}, userData=encoded("#!/bin/sh\n"), **public)
        assert (await put(home.client, instance, harmless)).status == 202
        lifted = wanted(home, house, flavorId=SMALL, protection={"deletion": False, "plan": False}, **public)
        assert (await put(home.client, instance, lifted)).status == 409, "it is not lifted by what it protects from"
        agreed = (await plan(home.client, instance, lifted))["hash"]
        assert (await put(home.client, instance, lifted, plan=agreed)).status == 202
        assert "protection" not in (await house.read(instance))["spec"]

    in_a_compute(scenario)


def test_protection_that_a_change_does_not_mention_stays() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        protection = {"deletion": True, "plan": True}
        instance = await _instance(house, home, protection=protection)
        reply = await put(home.client, instance, wanted(home, house, metadata={"description": "x"}))
        assert reply.json["spec"]["protection"] == protection
        assert kinds(await plan(home.client, instance, wanted(home, house, metadata={"description": "x"}))) == []

    in_a_compute(scenario)


def test_a_plan_does_not_tell_what_user_data_says() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        data, other = encoded("#cloud-config\n# canary\n"), encoded("#cloud-config\n# another canary\n")
        instance = await _instance(house, home, userData=data, protection={"plan": True})
        body = wanted(home, house, userData=other, imageId=ROCKY)
        for reply in (await put(home.client, instance, body, dryRun="true"), await put(home.client, instance, body)):
            assert reply.status in {200, 409}
            assert not [each for each in (data, other) if each.encode() in reply.body]

    in_a_compute(scenario)


def test_a_hash_that_is_none_is_told_before_anybody_is_asked() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        for odd in ("x", "", "A" * 32, "0" * 31):
            reply = await put(house.client(None), instance, wanted(home, house), plan=odd)
            assert refusal(reply)[0] == 400
        reply = await put(home.client, instance, wanted(home, house), dryRun="maybe")
        assert refusal(reply)[0] == 400

    in_a_compute(scenario)


async def _limit(house: ComputeHouse, home: Home, **limits: int) -> None:
    """Let a project have no more than this."""
    path = f"/api/v1/organizations/{house.region.organization}/projects/{home.project}/quotas"
    quotas = [{"kind": kind, "quantity": quantity} for kind, quantity in limits.items()]
    identity = house.region.identity
    reply = await identity.client(identity.root).put(path, {"quotas": quotas})
    assert reply.status == 200, reply


def test_m17_a_dry_run_says_that_the_change_would_be_refused_by_the_quota() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        body = wanted(home, house, flavorId=GPUS)
        fits = await plan(home.client, instance, body)
        assert fits["blockers"] == []
        await _limit(house, home, gpus=3)
        told = await plan(home.client, instance, body)
        assert [each["reason"] for each in told["blockers"]] == ["QuotaExceeded"]
        assert told["blockers"][0]["sentence"].startswith(
            "It would be refused: it takes 4 more of gpus, and the quota of its project and organization leaves 3."
        )
        assert {**told, "blockers": []} == fits, "what is free is in no hash"
        status, why = refusal(await put(home.client, instance, body, plan=told["hash"]))
        assert (status, why) == (403, "total gpus allocation of 4 would exceed project quota limit of 3")
        await _limit(house, home, gpus=4)
        assert (await plan(home.client, instance, body))["blockers"] == []
        assert (await put(home.client, instance, body, plan=told["hash"])).status == 202

    in_a_compute(scenario)


def test_what_costs_no_more_is_no_matter_of_the_quota() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home, networking={"publicIP": True})
        await _limit(house, home, servers=1, floatingips=1, gpus=0)
        for spec in ({"flavorId": LARGE, "networking": {"publicIP": True}}, {"networking": {"publicIP": False}}):
            assert (await plan(home.client, instance, wanted(home, house, **spec)))["blockers"] == []

    in_a_compute(scenario)


def test_a_dry_run_is_audited_as_one() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        await plan(home.client, instance, wanted(home, house, flavorId=LARGE))
        page = await house.app.ports.log.read("audit", f"organization/{house.region.organization}", limit=1000)
        records = [msgspec.json.decode(each.data) for each in page.entries]
        told = [each["result"] for each in records if each["operation"]["verb"] == "PUT"]
        assert told[-1] == {"status": 200}

    in_a_compute(scenario)


def test_ids_in_capitals_are_the_same_ones_and_plan_no_change() -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        body = home.wanted(house)
        for name in ("organizationId", "projectId", "networkId", "flavorId", "imageId"):
            body["spec"][name] = body["spec"][name].upper()
        instance = made(await home.client.post(INSTANCES, body))
        read = await house.until(instance, "provisioned")
        assert read["spec"]["flavorId"] == body["spec"]["flavorId"].lower()
        assert (await home.client.get(at(instance.upper()))).json == read
        listed = await home.client.get(INSTANCES, [("networkID", read["status"]["networkId"].upper())])
        assert [each["metadata"]["id"] for each in listed.json] == [instance]
        same = {"metadata": {"name": read["metadata"]["name"]}, "spec": body["spec"]}
        assert (await plan(home.client, instance.upper(), same))["steps"] == []

    in_a_compute(scenario)


@pytest.mark.parametrize(
    ("spec", "words", "power"),
    [
        ({"imageId": ROCKY}, "if it is stopped, it does so when it is next started", "Stopped"),
        ({"flavorId": SMALL}, "and starts, also if the old one is stopped", "Running"),
    ],
)
def test_what_is_stopped_stays_so_when_it_is_rebuilt_and_starts_when_it_is_replaced_and_the_plan_says_so(
    spec: dict[str, str], words: str, power: str
) -> None:
    async def scenario(house: ComputeHouse) -> None:
        home = await settle(house)
        instance = await _instance(house, home)
        assert (await home.client.post(at(instance, "stop"))).status == 202
        await house.awaited(instance, lambda reply: reply.json["status"]["powerState"] == "Stopped", "stopped")
        (step,) = (await plan(home.client, instance, wanted(home, house, **spec)))["steps"]
        assert words in step["sentence"]
        assert (await put(home.client, instance, wanted(home, house, **spec))).status == 202
        assert (await house.until(instance, "provisioned"))["status"]["powerState"] == power

    in_a_compute(scenario)
