"""The plan of a change: told beforehand, agreed to by its hash, demanded where something is protected."""

from typing import Any

import msgspec
import pytest

from remuda.compute.kinds import ComputeInstance
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import GPUS, Tenant, at, encoded, held, made, make_authority, settle
from tests.kit.compute.updates import LARGE, ROCKY, SMALL, kinds, named, plan, put, wanted
from tests.kit.resource_api import rejection

ADDRESSES = {"privateIP", "publicIP", "macAddress"}


async def _instance(compute: ComputeEnvironment, tenant: Tenant, **spec: Any) -> str:
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, **spec)))
    await compute.until(instance, "provisioned")
    return instance


def _refused(reply: Reply, code: str) -> Any:
    assert (reply.status, reply.json["error"], reply.json["code"]) == (409, "conflict", code), reply.body.decode()
    return reply.json["plan"]


async def test_b02_c03_a_dry_run_tells_what_is_lost_and_what_survives_and_changes_nothing(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant, networking={"publicIP": True})
    before = await compute.store.get(ComputeInstance, instance)
    read = (await tenant.client.get(at(instance))).json
    told = await plan(tenant.client, instance, wanted(tenant, compute, flavorId=GPUS, networking={"publicIP": True}))
    assert kinds(told) == ["replace"]
    assert set(named(told["destroyed"])) == {"rootDisk", "sshHostKeys", "memory"}
    survives = named(told["preserved"])
    assert {name: survives[name] for name in ADDRESSES} == {name: read["status"][name] for name in ADDRESSES}
    assert (survives["id"], survives["name"]) == (instance, "instance")
    assert told["isDestructive"]
    assert told["downtime"]["extent"] == "seconds"
    assert {each["kind"]: each["delta"] for each in told["quota"]} == {"servers": 0, "gpus": 4, "floatingips": 0}
    (change,) = told["steps"][0]["changes"]
    assert change["field"] == "spec.flavorId"
    assert "sim-standard-4" in change["message"]
    assert "4 x H100" in change["message"]
    await compute.clock.sleep(60)
    assert await compute.store.get(ComputeInstance, instance) == before
    assert await held(compute) == [{"servers": 1, "floatingips": 1}]


async def test_b02_every_kind_of_change_has_its_class(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    authority = await make_authority(compute, tenant.project)
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
        assert kinds(await plan(tenant.client, instance, wanted(tenant, compute, **spec))) == expected, spec
    described = wanted(tenant, compute, metadata={"description": "x", "tags": [{"name": "a", "value": "b"}]})
    told = await plan(tenant.client, instance, described)
    assert [each["field"] for each in told["steps"][0]["changes"]] == ["metadata.description", "metadata.tags"]
    assert not told["isDestructive"]


async def test_b02_the_plan_that_was_agreed_to_is_done(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    body = wanted(tenant, compute, imageId=ROCKY)
    agreed = (await plan(tenant.client, instance, body))["hash"]
    assert (await plan(tenant.client, instance, body))["hash"] == agreed, "asked again it is the same"
    done = await put(tenant.client, instance, body, plan=agreed)
    assert (done.status, done.json["spec"]["imageId"]) == (202, ROCKY)
    settled = await compute.until(instance, "provisioned")
    assert settled["spec"]["imageId"] == ROCKY


async def test_b02_another_plan_than_was_agreed_to_is_refused_with_the_present_one(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    body = wanted(tenant, compute, imageId=ROCKY)
    agreed = (await plan(tenant.client, instance, body))["hash"]
    assert (await put(compute.root, instance, wanted(tenant, compute, metadata={"description": "new"}))).status == 202
    present = _refused(await put(tenant.client, instance, body, plan=agreed), "plan_changed")
    assert present["hash"] != agreed
    assert kinds(present) == ["in-place", "rebuild"], "it would take the description away, too"
    assert present == await plan(tenant.client, instance, body)
    assert (await compute.read(instance))["spec"]["imageId"] != ROCKY
    assert (await put(tenant.client, instance, body, plan=present["hash"])).status == 202
    other = wanted(tenant, compute, imageId=ROCKY, flavorId=SMALL)
    _refused(await put(tenant.client, instance, other, plan=present["hash"]), "plan_changed")


async def test_b02_a_plan_that_is_done_already_is_no_conflict(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    body = wanted(tenant, compute, flavorId=LARGE)
    agreed = (await plan(tenant.client, instance, body))["hash"]
    keyed = {"idempotency-key": "k"}
    for headers in (keyed, keyed, {}):
        reply = await put(tenant.client, instance, body, headers, plan=agreed)
        assert (reply.status, reply.json["spec"]["flavorId"]) == (202, LARGE)
    await compute.until(instance, "provisioned")
    changes = (await compute.store.get(ComputeInstance, instance)).metadata.generation
    assert changes == 2


async def test_b02_what_is_only_observed_makes_no_other_plan(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    body = wanted(tenant, compute, flavorId=LARGE)
    early = await plan(tenant.client, instance, body)
    assert "privateIP" not in {each["attribute"] for each in early["preserved"] if "value" in each}
    await compute.until(instance, "provisioned")
    assert (await tenant.client.post(at(instance, "stop"))).status == 202
    await compute.clock.sleep(30)
    late = await plan(tenant.client, instance, body)
    assert late["hash"] == early["hash"]
    assert named(late["preserved"])["privateIP"]


async def test_b02_an_instance_recreated_under_its_name_has_other_plans(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    body = wanted(tenant, compute, flavorId=LARGE)
    agreed = (await plan(tenant.client, instance, body))["hash"]
    await tenant.client.delete(at(instance))
    await compute.until_gone(instance)
    assert await _instance(compute, tenant) == instance
    _refused(await put(tenant.client, instance, body, plan=agreed), "plan_changed")


async def test_b02_a_protected_instance_demands_the_plan_of_what_destroys_and_of_nothing_else(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    protected = {"protection": {"deletion": False, "plan": True}}
    public = {"networking": {"publicIP": True}}
    instance = await _instance(compute, tenant, **protected, **public)
    read = await compute.read(instance)
    for spec in ({"flavorId": SMALL, **public}, {"imageId": ROCKY, **public}, {}):
        body = wanted(tenant, compute, **spec)
        demanded = _refused(await put(tenant.client, instance, body), "plan_required")
        assert demanded["isDestructive"]
        assert demanded == await plan(tenant.client, instance, body)
    assert named(demanded["destroyed"]) == {"publicIP": read["status"]["publicIP"]}
    assert (await compute.read(instance))["spec"] == read["spec"]
    harmless = wanted(tenant, compute, metadata={"description": "x"}, userData=encoded("#!/bin/sh\n"), **public)
    assert (await put(tenant.client, instance, harmless)).status == 202
    lifted = wanted(tenant, compute, flavorId=SMALL, protection={"deletion": False, "plan": False}, **public)
    assert (await put(tenant.client, instance, lifted)).status == 409, "it is not lifted by what it protects from"
    agreed = (await plan(tenant.client, instance, lifted))["hash"]
    assert (await put(tenant.client, instance, lifted, plan=agreed)).status == 202
    assert "protection" not in (await compute.read(instance))["spec"]


async def test_protection_that_a_change_does_not_mention_stays(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    protection = {"deletion": True, "plan": True}
    instance = await _instance(compute, tenant, protection=protection)
    reply = await put(tenant.client, instance, wanted(tenant, compute, metadata={"description": "x"}))
    assert reply.json["spec"]["protection"] == protection
    assert kinds(await plan(tenant.client, instance, wanted(tenant, compute, metadata={"description": "x"}))) == []


async def test_a_plan_does_not_tell_what_user_data_says(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    data, other = encoded("#cloud-config\n# canary\n"), encoded("#cloud-config\n# another canary\n")
    instance = await _instance(compute, tenant, userData=data, protection={"plan": True})
    body = wanted(tenant, compute, userData=other, imageId=ROCKY)
    for reply in (await put(tenant.client, instance, body, dryRun="true"), await put(tenant.client, instance, body)):
        assert reply.status in {200, 409}
        assert not [each for each in (data, other) if each.encode() in reply.body]


async def test_a_hash_that_is_none_is_told_before_anybody_is_asked(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    for odd in ("x", "", "A" * 32, "0" * 31):
        reply = await put(compute.client(None), instance, wanted(tenant, compute), plan=odd)
        assert rejection(reply)[0] == 400
    reply = await put(tenant.client, instance, wanted(tenant, compute), dryRun="maybe")
    assert rejection(reply)[0] == 400


async def _limit(compute: ComputeEnvironment, tenant: Tenant, **limits: int) -> None:
    """Let a project have no more than this."""
    path = f"/api/v1/organizations/{compute.region.organization}/projects/{tenant.project}/quotas"
    quotas = [{"kind": kind, "quantity": quantity} for kind, quantity in limits.items()]
    identity = compute.region.identity
    reply = await identity.client(identity.root).put(path, {"quotas": quotas})
    assert reply.status == 200, reply


async def test_m17_a_dry_run_says_that_the_change_would_be_refused_by_the_quota(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    body = wanted(tenant, compute, flavorId=GPUS)
    fits = await plan(tenant.client, instance, body)
    assert fits["blockers"] == []
    await _limit(compute, tenant, gpus=3)
    told = await plan(tenant.client, instance, body)
    assert [each["reason"] for each in told["blockers"]] == ["QuotaExceeded"]
    assert told["blockers"][0]["message"].startswith(
        "The update would be rejected: it needs 4 more of gpus, and the quota of project and organization has 3 left."
    )
    assert {**told, "blockers": []} == fits, "what is free is in no hash"
    status, why = rejection(await put(tenant.client, instance, body, plan=told["hash"]))
    assert (status, why) == (403, "total gpus allocation of 4 would exceed project quota limit of 3")
    await _limit(compute, tenant, gpus=4)
    assert (await plan(tenant.client, instance, body))["blockers"] == []
    assert (await put(tenant.client, instance, body, plan=told["hash"])).status == 202


async def test_what_costs_no_more_is_no_matter_of_the_quota(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant, networking={"publicIP": True})
    await _limit(compute, tenant, servers=1, floatingips=1, gpus=0)
    for spec in ({"flavorId": LARGE, "networking": {"publicIP": True}}, {"networking": {"publicIP": False}}):
        assert (await plan(tenant.client, instance, wanted(tenant, compute, **spec)))["blockers"] == []


async def test_a_dry_run_is_audited_as_one(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    await plan(tenant.client, instance, wanted(tenant, compute, flavorId=LARGE))
    page = await compute.app.ports.log.read("audit", f"organization/{compute.region.organization}", limit=1000)
    records = [msgspec.json.decode(each.data) for each in page.entries]
    told = [each["result"] for each in records if each["operation"]["method"] == "PUT"]
    assert told[-1] == {"status": 200}


async def test_ids_in_capitals_are_the_same_ones_and_plan_no_change(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    body = tenant.wanted(compute)
    for name in ("organizationId", "projectId", "networkId", "flavorId", "imageId"):
        body["spec"][name] = body["spec"][name].upper()
    instance = made(await tenant.client.post(INSTANCES, body))
    read = await compute.until(instance, "provisioned")
    assert read["spec"]["flavorId"] == body["spec"]["flavorId"].lower()
    assert (await tenant.client.get(at(instance.upper()))).json == read
    listed = await tenant.client.get(INSTANCES, [("networkID", read["status"]["networkId"].upper())])
    assert [each["metadata"]["id"] for each in listed.json] == [instance]
    same = {"metadata": {"name": read["metadata"]["name"]}, "spec": body["spec"]}
    assert (await plan(tenant.client, instance.upper(), same))["steps"] == []


@pytest.mark.parametrize(
    ("spec", "words", "power"),
    [
        ({"imageId": ROCKY}, "If it is stopped, it starts from the new disk when it is started next.", "Stopped"),
        ({"flavorId": SMALL}, "and started, even if the old one was stopped", "Running"),
    ],
)
async def test_what_is_stopped_stays_so_when_it_is_rebuilt_and_starts_when_it_is_replaced_and_the_plan_says_so(
    compute: ComputeEnvironment, spec: dict[str, str], words: str, power: str
) -> None:
    tenant = await settle(compute)
    instance = await _instance(compute, tenant)
    assert (await tenant.client.post(at(instance, "stop"))).status == 202
    await compute.awaited(instance, lambda reply: reply.json["status"]["powerState"] == "Stopped", "stopped")
    (step,) = (await plan(tenant.client, instance, wanted(tenant, compute, **spec)))["steps"]
    assert words in step["message"]
    assert (await put(tenant.client, instance, wanted(tenant, compute, **spec))).status == 202
    assert (await compute.until(instance, "provisioned"))["status"]["powerState"] == power
