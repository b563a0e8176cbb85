"""Making instances over HTTP: what is made of what is asked, and what it costs."""

import gzip
from typing import Any

import pytest

from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.identity.kinds.quotas import Allocation, owner_value
from remuda.kernel.ids import derived_id
from remuda.kernel.secrets import Secret
from remuda.operations.kinds import Operation
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import NETWORK, ORGANIZATION, PROJECT, REGION, RESOURCE_ID
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import (
    DEBIAN,
    GPUS,
    at,
    encoded,
    held,
    is_nothing,
    made,
    make_authority,
    make_group,
    settle,
)
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.region.environment import NORTH, STANDARD
from tests.kit.resource_api import rejection

CONFIG = encoded("#cloud-config\npassword: hunter2\n")


async def _limit(compute: ComputeEnvironment, **quotas: int) -> None:
    """Let the organization have no more than this."""
    identity = compute.region.identity
    body = {"quotas": [{"kind": kind, "quantity": quantity} for kind, quantity in quotas.items()]}
    path = f"{ORGANIZATIONS}/{compute.region.organization}/quotas"
    assert (await identity.client(identity.root).put(path, body)).status == 200


async def test_m01_c01_a_user_of_the_project_makes_an_instance_and_reads_it(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    wanted = tenant.wanted(compute, "web")
    wanted["metadata"] |= {"description": "the site", "tags": [{"name": "team", "value": "blue"}]}
    reply = await tenant.client.post(INSTANCES, wanted)
    instance = made(reply)
    assert instance == derived_id(tenant.network, "web")
    metadata = reply.json["metadata"]
    assert (metadata["name"], metadata["description"]) == ("web", "the site")
    assert metadata["tags"] == [{"name": "team", "value": "blue"}]
    assert (metadata["organizationId"], metadata["projectId"]) == (compute.region.organization, tenant.project)
    assert metadata["createdBy"] == "ann@example.com"
    assert reply.json["spec"] == {"flavorId": STANDARD, "imageId": DEBIAN, "networking": {}}
    assert reply.json["status"] == {"regionId": NORTH, "networkId": tenant.network}
    stored = await compute.store.get(ComputeInstance, instance)
    assert stored.spec.server_id == instance
    labels = stored.metadata.labels
    assert (labels[ORGANIZATION], labels[PROJECT]) == (compute.region.organization, tenant.project)
    assert (labels[REGION], labels[NETWORK]) == (NORTH, tenant.network)
    read = await tenant.client.get(at(instance))
    assert (read.status, read.json["spec"]) == (200, reply.json["spec"])
    assert read.headers["etag"] == reply.headers["etag"]


async def test_m02_m17_what_it_costs_is_held_by_its_operation_and_the_hidden_server_costs_nothing(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    wanted = tenant.wanted(compute, flavorId=GPUS, networking={"publicIP": True})
    instance = made(await tenant.client.post(INSTANCES, wanted))
    assert await held(compute) == [{"servers": 1, "gpus": 4, "floatingips": 1}]
    stored = await compute.store.get(ComputeInstance, instance)
    (row,) = (await compute.store.list(Allocation, index=("owner", owner_value(INSTANCE.qualified, instance)))).items
    assert row.metadata.labels[PROJECT] == tenant.project
    operation = await compute.store.get(Operation, stored.spec.operation)
    assert (operation.spec.saga, operation.phase) == ("instance.create", "done")
    await compute.until(instance, "provisioned")
    assert [each.name for each in (await compute.store.list(Server)).items] == [instance]
    of_servers = await compute.store.list(Allocation, labels={ORGANIZATION: compute.region.organization})
    assert [
        each.metadata.labels[RESOURCE_ID]
        for each in of_servers.items
        if any(amount.kind == "servers" for amount in each.spec.allocations)
    ] == [instance]


async def test_m17_an_instance_without_gpus_or_public_address_costs_a_server(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    made(await tenant.client.post(INSTANCES, tenant.wanted(compute, networking={"publicIP": False})))
    assert await held(compute) == [{"servers": 1}]


async def test_m02_who_may_not_have_another_is_refused_and_nothing_is_left(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    await _limit(compute, servers=1)
    made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "one")))
    status, sentence = rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute, "two")))
    assert status == 403
    assert "quota" in sentence
    assert [each.spec.gpus for each in (await compute.store.list(ComputeInstance)).items] == [0]
    assert await held(compute) == [{"servers": 1}]


async def test_what_was_sent_comes_back_to_the_byte(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    group, authority = await make_group(compute, tenant.network), await make_authority(compute, tenant.project)
    networking = {
        "securityGroups": [group],
        "publicIP": True,
        "allowedSourceAddresses": ["10.8.0.1/24", "192.168.0.0/16"],
    }
    asked: dict[str, Any] = {
        "networking": networking,
        "userData": CONFIG,
        "sshCertificateAuthorityId": authority,
        "protection": {"deletion": False, "plan": True},
    }
    reply = await tenant.client.post(INSTANCES, tenant.wanted(compute, **asked))
    instance = made(reply)
    whole = {"flavorId": STANDARD, "imageId": DEBIAN, **asked}
    assert reply.json["spec"] == whole
    assert (await tenant.client.get(at(instance))).json["spec"] == whole
    (listed,) = (await tenant.client.get(INSTANCES)).json
    assert listed["spec"] == whole
    assert (await compute.store.get(ComputeInstance, instance)).spec.user_data == Secret(CONFIG)
    await compute.until(instance, "provisioned")


async def test_networking_is_always_there_and_a_public_address_only_where_it_was_mentioned(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"networking": {}}, {}),
        ({"networking": {"publicIP": False}}, {"publicIP": False}),
        ({"networking": {"publicIP": True}}, {"publicIP": True}),
    ]
    for number, (sent, read) in enumerate(cases):
        reply = await tenant.client.post(INSTANCES, tenant.wanted(compute, f"of-{number}", **sent))
        assert expect(reply, 201)["spec"]["networking"] == read
        assert (await tenant.client.get(at(made(reply)))).json["spec"]["networking"] == read


@pytest.mark.parametrize(
    "data",
    [b"", b"#!/bin/sh\necho hello\n", b"#cloud-config\n{}\n", gzip.compress(b"#!/bin/sh\n", mtime=0)],
    ids=["none", "script", "config", "packed"],
)
async def test_m06_recognised_user_data_is_taken_without_an_authority(compute: ComputeEnvironment, data: bytes) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=encoded(data))))
    assert (await compute.until(instance, "provisioned"))["metadata"]["healthStatus"] == "healthy"


async def test_a_repeat_under_the_same_key_answers_the_same_instance_and_makes_no_other(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    wanted = tenant.wanted(compute, "web", userData=CONFIG)
    first = await tenant.client.post(INSTANCES, wanted, idempotency_key="once")
    again = await tenant.client.post(INSTANCES, wanted, idempotency_key="once")
    assert made(again) == made(first)
    assert again.json["spec"] == first.json["spec"]
    assert rejection(await tenant.client.post(INSTANCES, wanted, idempotency_key="twice"))[0] == 409
    assert rejection(await tenant.client.post(INSTANCES, wanted))[0] == 409
    for other in (tenant.wanted(compute, "web"), tenant.wanted(compute, "other", userData=CONFIG)):
        status, sentence = rejection(await tenant.client.post(INSTANCES, other, idempotency_key="once"))
        assert (status, "Idempotency-Key" in sentence) == (422, True)
    assert len((await compute.store.list(ComputeInstance)).items) == 1
    assert await held(compute) == [{"servers": 1}]


async def test_a_repeat_is_answered_whatever_has_become_of_what_it_was_validated_by(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    group = await make_group(compute, tenant.network)
    wanted = tenant.wanted(compute, networking={"securityGroups": [group]})
    instance = made(await tenant.client.post(INSTANCES, wanted, idempotency_key="once"))
    await compute.until(instance, "provisioned")
    without = {"metadata": {"name": "instance"}, "spec": {"flavorId": STANDARD, "imageId": DEBIAN}}
    assert (await tenant.client.put(at(instance), without)).status == 202
    await compute.clock.sleep(5)
    await compute.until(instance, "provisioned")
    assert (await compute.region.root.delete(f"/api/v2/securitygroups/{group}")).status == 202
    await compute.region.until_gone(f"/api/v2/securitygroups/{group}")
    again = await tenant.client.post(INSTANCES, wanted, idempotency_key="once")
    assert made(again) == instance
    assert again.json["spec"]["networking"] == {}


async def test_a_repeat_of_what_was_refused_is_tried_again_and_then_done_once(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    await _limit(compute, servers=0)
    wanted = tenant.wanted(compute, "web", userData=CONFIG)
    assert (await tenant.client.post(INSTANCES, wanted, idempotency_key="once")).status == 403
    await _limit(compute, servers=1)
    first = made(await tenant.client.post(INSTANCES, wanted, idempotency_key="once"))
    assert made(await tenant.client.post(INSTANCES, wanted, idempotency_key="once")) == first
    assert await held(compute) == [{"servers": 1}]


async def test_a_repeat_after_the_instance_has_gone_makes_no_other(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    wanted = tenant.wanted(compute)
    instance = made(await tenant.client.post(INSTANCES, wanted, idempotency_key="once"))
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    reply = await tenant.client.post(INSTANCES, wanted, idempotency_key="once")
    assert (reply.status, reply.json["code"]) == (409, "response_not_stored")
    await is_nothing(compute)
    assert made(await tenant.client.post(INSTANCES, wanted, idempotency_key="again")) == instance


async def test_no_user_data_is_in_what_an_operation_remembers(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=CONFIG)))
    made_by = [each.spec for each in (await compute.store.list(Operation)).items if each.spec.saga == "instance.create"]
    assert [(each.input, each.sealed_input is not None) for each in made_by] == [("", True)]
