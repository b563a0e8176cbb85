"""Changing instances: what is validated, what is stored, what it costs, and what comes of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.operations.kinds import OPEN, Operation
from tests.kit.compute.apart import EITHER_WAY, Begun, databases
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import (
    ABSENT,
    ARM_IMAGE,
    DEBIAN,
    GPUS,
    METAL_IMAGE,
    NOT_FOUND,
    OUT_OF_PROJECT,
    PINNED,
    at,
    encoded,
    forbidden,
    held,
    made,
    make_authority,
    make_group,
    settle,
)
from tests.kit.compute.updates import LARGE, ROCKY, SMALL, put, wanted
from tests.kit.region.environment import STANDARD
from tests.kit.resource_api import rejection

CANARY = encoded("#cloud-config\npassword: canary-word\n")


async def test_m01_everything_that_may_be_changed_is_replaced_and_comes_back_as_it_was_sent(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=encoded("#!/bin/sh\n"))))
    group = await make_group(compute, tenant.network)
    networking = {"securityGroups": [group], "publicIP": True, "allowedSourceAddresses": ["10.9.0.0/24"]}
    metadata = {"description": "a shop", "tags": [{"name": "tier", "value": "web"}]}
    body = wanted(tenant, compute, metadata=metadata, networking=networking, userData=CANARY)
    reply = await put(tenant.client, instance, body)
    assert reply.status == 202
    read = (await tenant.client.get(at(instance))).json
    for each in (reply.json, read):
        assert each["spec"] == body["spec"]
        assert each["metadata"]["description"] == "a shop"
        assert each["metadata"]["tags"] == metadata["tags"]
        assert each["metadata"]["modifiedBy"] == "ann@example.com"
    bare = await put(tenant.client, instance, wanted(tenant, compute))
    assert bare.json["spec"] == {"flavorId": STANDARD, "imageId": DEBIAN, "networking": {}}
    assert "description" not in bare.json["metadata"]


@pytest.mark.parametrize("networking", [{}, {"publicIP": True}])
async def test_changes_that_are_asked_for_at_the_same_time_wait_for_each_other(
    compute: ComputeEnvironment, networking: dict[str, Any]
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    bodies = [
        wanted(tenant, compute, metadata={"description": str(number)}, networking=networking) for number in range(20)
    ]
    replies = await asyncio.gather(*(put(tenant.client, instance, body) for body in bodies))
    assert {reply.status for reply in replies} == {202}
    read = await compute.until(instance, "provisioned")
    assert (read["spec"]["networking"], "publicIP" in read["status"]) == (networking, bool(networking))
    assert await held(compute) == [{"servers": 1} | ({"floatingips": 1} if networking else {})]


async def test_m08_a_name_stays(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    body = wanted(tenant, compute, metadata={"name": "another", "description": "new"})
    for query in ({}, {"dryRun": "true"}):
        assert rejection(await put(tenant.client, instance, body, **query)) == (422, "instance names are immutable")
    assert "description" not in (await tenant.client.get(at(instance))).json["metadata"]


async def test_what_is_being_deleted_is_not_changed(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    await tenant.client.delete(at(instance))
    for query in ({}, {"dryRun": "true"}):
        reply = await put(tenant.client, instance, wanted(tenant, compute), **query)
        assert rejection(reply) == (400, "instance is being deleted")


@pytest.mark.parametrize(
    ("spec", "status", "words"),
    [
        ({"flavorId": ABSENT}, 400, "requested flavor does not exist or is not accessible"),
        ({"flavorId": PINNED}, 400, "requested flavor does not exist or is not accessible"),
        ({"imageId": ABSENT}, 400, "requested image does not exist or is not accessible"),
        ({"imageId": ARM_IMAGE}, 400, "image architecture aarch64 is not compatible with flavor architecture x86_64"),
        ({"imageId": METAL_IMAGE}, 400, "image virtualization baremetal is not compatible with a virtualized flavor"),
        ({"networking": {"allowedSourceAddresses": ["nowhere"]}}, 400, "failed to parse IPv4 prefix"),
        ({"networking": {"securityGroups": [ABSENT]}}, 404, "resource not found"),
        ({"sshCertificateAuthorityId": ABSENT}, 404, "resource not found"),
    ],
)
async def test_m04_what_cannot_be_is_refused_in_the_words_of_a_create_and_changes_nothing(
    compute: ComputeEnvironment, spec: dict[str, Any], status: int, words: str
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    before = await compute.store.get(ComputeInstance, instance)
    for query in ({}, {"dryRun": "true"}):
        reply = await put(tenant.client, instance, wanted(tenant, compute, **spec), **query)
        assert rejection(reply) == (status, words)
    assert (await compute.store.get(ComputeInstance, instance)).spec == before.spec


async def test_m05_m06_groups_authorities_and_user_data_are_validated_as_they_are_at_create(
    compute: ComputeEnvironment,
) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    group = await make_group(compute, await compute.region.network("third", projectId=tenant.project), "far")
    reply = await put(tenant.client, instance, wanted(tenant, compute, networking={"securityGroups": [group]}))
    words = "a referenced security group must belong to the same network as the instance"
    assert rejection(reply) == (422, words)
    foreign = await make_authority(compute, other.project)
    asked = wanted(tenant, compute, sshCertificateAuthorityId=foreign)
    assert (await put(tenant.client, instance, asked)).status == 403
    assert (await put(compute.root, instance, asked)).status == 422
    own = await make_authority(compute, tenant.project, "own")
    odd = wanted(tenant, compute, sshCertificateAuthorityId=own, userData=encoded("anything"))
    assert (await put(tenant.client, instance, odd)).status == 422
    assert (await compute.store.get(ComputeInstance, instance)).metadata.generation == 1


async def test_who_may_not_change_an_instance_may_not_try_it_either(compute: ComputeEnvironment) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    reader = await settle(compute, "eve", role="reader")
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    for query in ({}, {"dryRun": "true"}, {"plan": "0" * 32}):
        for client, why in ((other.client, OUT_OF_PROJECT), (reader.client, OUT_OF_PROJECT)):
            reply = await put(client, instance, wanted(tenant, compute), **query)
            assert rejection(reply) == forbidden("read", why)
        assert rejection(await put(tenant.client, ABSENT, wanted(tenant, compute), **query)) == NOT_FOUND


async def test_b01_a_change_holds_for_the_state_that_the_caller_has_seen(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    reply = await tenant.client.post(INSTANCES, tenant.wanted(compute))
    instance, seen = made(reply), reply.headers["etag"]
    body = wanted(tenant, compute, metadata={"description": "one"})
    for query in ({"dryRun": "true"}, {}):
        told = await put(tenant.client, instance, body, {"if-match": seen}, **query)
        assert told.status in {200, 202}
    for query in ({"dryRun": "true"}, {}):
        assert (await put(tenant.client, instance, body, {"if-match": seen}, **query)).status == 412
    assert told.headers["etag"] != seen
    assert (await put(tenant.client, instance, body, {"if-match": told.headers["etag"]})).status == 202


async def test_m17_what_is_held_follows_what_it_costs_and_a_quota_that_is_full_rejects_the_change(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    assert await held(compute) == [{"servers": 1}]
    public = {"networking": {"publicIP": True}}
    assert (await put(tenant.client, instance, wanted(tenant, compute, **public))).status == 202
    assert await held(compute) == [{"servers": 1, "floatingips": 1}]
    await _limit(compute, gpus=3)
    before = await compute.store.get(ComputeInstance, instance)
    refused = await put(tenant.client, instance, wanted(tenant, compute, flavorId=GPUS, **public))
    assert refused.status == 403
    after = await compute.store.get(ComputeInstance, instance)
    assert (after.spec, await held(compute)) == (before.spec, [{"servers": 1, "floatingips": 1}])
    await _limit(compute, gpus=4)
    assert (await put(tenant.client, instance, wanted(tenant, compute, flavorId=GPUS))).status == 202
    assert await held(compute) == [{"servers": 1, "gpus": 4}]
    settled = await compute.until(instance, "provisioned")
    assert "publicIP" not in settled["status"]


async def _limit(compute: ComputeEnvironment, **limits: int) -> None:
    path = f"/api/v1/organizations/{compute.region.organization}/quotas"
    client = compute.region.identity.client(compute.region.identity.root)
    quotas = [{"kind": kind, "quantity": quantity} for kind, quantity in limits.items()]
    reply = await client.put(path, {"quotas": quotas})
    assert reply.status < 300, reply.body.decode()


async def test_c03_a_flavor_without_a_free_place_is_refused_before_anything_is_lost(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    await _limit(compute, gpus=100)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    before = await compute.until(instance, "provisioned")
    for number in range(4):  # when the last is asked for, one is free: that is known for ten seconds, and not so
        taker = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, f"taker-{number}", flavorId=GPUS)))
        await compute.until(taker, "provisioned")
    for query in ({"dryRun": "true"}, {}):
        status, words = rejection(await put(tenant.client, instance, wanted(tenant, compute, flavorId=GPUS), **query))
        assert status == 422
        assert "sim-gpu-64, for which the region has no capacity now" in words
    assert (await compute.read(instance))["spec"] == before["spec"]
    authority = await make_authority(compute, tenant.project)
    same = wanted(tenant, compute, metadata={"name": "taker-3"}, flavorId=GPUS, sshCertificateAuthorityId=authority)
    assert (await put(tenant.client, taker, same)).status == 202, "it has a place already"


async def test_m15_c10_another_flavor_keeps_id_addresses_and_mac(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    networking = {"publicIP": True}
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, networking=networking)))
    before = await compute.until(instance, "provisioned")
    reply = await put(tenant.client, instance, wanted(tenant, compute, flavorId=LARGE, networking=networking))
    assert reply.json["metadata"]["provisioningStatus"] == "provisioning"
    after = await compute.until(instance, "provisioned")
    for name in ("privateIP", "publicIP", "macAddress"):
        assert after["status"][name] == before["status"][name]
    assert after["metadata"]["id"] == before["metadata"]["id"]
    assert [each.flavor for each in await _at_cloud(compute)] == [LARGE]


async def test_m15_user_data_waits_for_the_next_rebuild_and_is_done_then(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    first = {"userData": encoded("#cloud-config\npackages: [nginx]\n")}
    later = {"userData": encoded("#cloud-config\npackages: [redis]\n")}
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, **first)))
    await compute.until(instance, "provisioned")
    server = (await _at_cloud(compute))[0].id
    assert (await put(tenant.client, instance, wanted(tenant, compute, **later))).status == 202
    await compute.until(instance, "provisioned")
    assert "nginx" in await _console(compute, instance)
    assert (await put(tenant.client, instance, wanted(tenant, compute, imageId=ROCKY, **later))).status == 202
    await compute.until(instance, "provisioned")
    console = await _console(compute, instance)
    assert "redis" in console
    assert "nginx" not in console
    assert [(each.id, each.image) for each in await _at_cloud(compute)] == [(server, ROCKY)], "the same server"


async def _console(compute: ComputeEnvironment, instance: str) -> str:
    return str((await compute.root.get(at(instance, "consoleoutput"))).json["contents"])


async def _at_cloud(compute: ComputeEnvironment) -> list[Any]:
    servers = compute.region.north.provider.servers
    assert servers is not None
    handles = [each.handle async for part in servers.server_versions() for each in part]
    return [await servers.find_server(handle) for handle in handles]


async def test_a_repeat_under_its_key_tells_how_the_instance_stands_and_undoes_nobodys_change(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=CANARY)))
    keyed = {"idempotency-key": "mine"}
    mine = wanted(tenant, compute, metadata={"description": "mine"}, flavorId=SMALL, userData=CANARY)
    assert (await put(tenant.client, instance, mine, keyed)).status == 202
    again = await put(tenant.client, instance, mine, keyed)
    assert (again.status, again.headers["idempotency-replayed"]) == (202, "true")
    assert again.json["metadata"]["description"] == "mine"
    theirs = wanted(tenant, compute, metadata={"description": "theirs"}, flavorId=SMALL, userData=CANARY)
    assert (await put(compute.root, instance, theirs)).status == 202
    late = await put(tenant.client, instance, mine, keyed)
    assert late.json["metadata"]["description"] == "theirs"
    assert late.json["spec"]["userData"] == CANARY
    assert (await put(tenant.client, instance, theirs, keyed)).status == 422


@EITHER_WAY
async def test_user_data_is_sealed_wherever_a_change_leaves_it(tmp_path: Path, begun: Begun) -> None:
    async with begun(tmp_path) as compute:
        tenant = await settle(compute)
        instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=CANARY)))
        body = wanted(tenant, compute, flavorId=LARGE, networking={"publicIP": True}, userData=CANARY)
        assert (await put(tenant.client, instance, body)).status == 202
        await compute.until(instance, "provisioned")
        assert (await put(tenant.client, instance, wanted(tenant, compute))).status == 202
        operations = [
            each for each in (await compute.store.list(Operation)).items if each.spec.saga == "instance.update"
        ]
        assert [(each.phase, each.spec.input, each.spec.sealed_input is None) for each in operations] == [
            ("done", "", False)
        ] * 2
        raw = b"".join(path.read_bytes() for path in databases(tmp_path))
        assert b"instance.update" in raw
        assert CANARY.encode() not in raw
        assert b"canary-word" not in raw


async def test_of_many_who_change_at_once_the_last_one_wins_and_what_is_held_is_what_it_costs(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    asked = [wanted(tenant, compute, flavorId=flavor) for flavor in (SMALL, LARGE, GPUS, STANDARD) for _ in range(4)]
    replies = await asyncio.gather(*(put(tenant.client, instance, body) for body in asked))
    assert {reply.status for reply in replies} <= {202, 409}
    assert 202 in {reply.status for reply in replies}
    settled = await compute.until(instance, "provisioned")
    flavor = settled["spec"]["flavorId"]
    assert await held(compute) == [{"servers": 1, "gpus": 4} if flavor == GPUS else {"servers": 1}]
    assert [each.flavor for each in await _at_cloud(compute)] == [flavor]
    assert not (await compute.store.list(Operation, index=OPEN)).items
