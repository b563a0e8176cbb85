"""What can be done to an instance that is there: always to exactly one server."""

from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.compute.instances.actions import with_provenance
from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INCARNATION, INSTANCE_TAG, PROVENANCE
from remuda.kernel.errors import Invalid
from remuda.region.kinds.servers import Server
from remuda.resources.schema import MetadataWrite, TagWire
from remuda.store.objects import Resource
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import DEBIAN, Tenant, at, encoded, made, make_authority, settle
from tests.kit.identity.environment import expect
from tests.kit.resource_api import rejection


async def _running(compute: ComputeEnvironment, tenant: Tenant, **spec: Any) -> str:
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, **spec)))
    await compute.until(instance, "provisioned")
    return instance


async def _until_power(compute: ComputeEnvironment, instance: str, power: str) -> None:
    await compute.awaited(instance, lambda reply: reply.json["status"].get("powerState") == power, power)


async def test_m09_an_instance_is_stopped_started_and_rebooted(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    await _until_power(compute, instance, "Running")
    reply = await tenant.client.post(at(instance, "stop"))
    assert (reply.status, reply.body) == (202, b"")
    await _until_power(compute, instance, "Stopped")
    assert (await tenant.client.post(at(instance, "stop"))).status == 202
    assert (await tenant.client.post(at(instance, "start"))).status == 202
    await _until_power(compute, instance, "Running")
    for query in ({}, {"hard": "false"}, {"hard": "true"}):
        assert (await tenant.client.send("POST", at(instance, "reboot"), query=query)).status == 202
        await _until_power(compute, instance, "Running")
    reply = await tenant.client.send("POST", at(instance, "reboot"), query=[("hard", "maybe")])
    assert (reply.status, rejection(reply)[1].partition(":")[0]) == (400, "invalid path/query element")


async def test_m09_the_console_is_seen_and_read(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _running(compute, tenant, userData=encoded("#!/bin/sh\necho hello\n"))
    assert expect(await tenant.client.get(at(instance, "consolesession")), 200)["url"].startswith("https://")
    whole = expect(await tenant.client.get(at(instance, "consoleoutput")), 200)["contents"]
    assert "login:" in whole
    last = expect(await tenant.client.get(at(instance, "consoleoutput"), [("length", "3")]), 200)["contents"]
    assert whole.splitlines()[-3:] == last.splitlines()
    for length in ("0", "-1", "x"):
        assert (await tenant.client.get(at(instance, "consoleoutput"), [("length", length)])).status == 400


async def test_m09_the_key_that_opens_it_is_shown_unless_an_authority_says_who_may_log_in(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    authority = await make_authority(compute, tenant.project)
    open_by_key = await _running(compute, tenant, name="one")
    open_by_authority = await _running(compute, tenant, name="two", sshCertificateAuthorityId=authority)
    key = expect(await tenant.client.get(at(open_by_key, "sshkey")), 200)["privateKey"]
    assert key.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert rejection(await tenant.client.get(at(open_by_authority, "sshkey"))) == (404, "resource not found")


async def test_m10_a_snapshot_has_the_callers_tags_but_none_of_a_service_and_says_what_it_is_of(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    forged = [
        {"name": "compute.unikorn-cloud.org/instance-id", "value": "forged"},
        {"name": "compute.unikorn-cloud.org:instance-id", "value": "forged"},
        {"name": "compute.unikorn-cloud.org/other", "value": "forged"},
        {"name": "Compute.unikorn-cloud.org:other", "value": "forged"},
        {"name": "region.unikorn-cloud.org/other", "value": "forged"},
    ]
    own = {"name": "team", "value": "blue"}
    body = {"metadata": {"name": "backup", "tags": [own, *forged]}}
    reply = await tenant.client.post(at(instance, "snapshot"), body, idempotency_key="once")
    image = expect(reply, 201)
    tags = {tag["name"]: tag["value"] for tag in image["metadata"]["tags"]}
    assert (tags["team"], tags[PROVENANCE]) == ("blue", instance)
    assert INSTANCE_TAG not in tags
    assert "forged" not in tags.values()
    again = await tenant.client.post(at(instance, "snapshot"), body, idempotency_key="once")
    assert expect(again, 201)["metadata"]["id"] == image["metadata"]["id"]
    await compute.clock.sleep(10)
    where = f"/api/v1/organizations/{compute.region.organization}/regions/{image_region(compute)}/images"
    listed = {each["metadata"]["id"] for each in expect(await tenant.client.get(where), 200)}
    assert image["metadata"]["id"] in listed


def image_region(compute: ComputeEnvironment) -> str:
    """Return the region that everything is in."""
    (region, *_) = [name for name, cloud in compute.region.clouds.clouds.items() if cloud is compute.region.north]
    return region


def test_m10_a_snapshot_leaves_capacity_for_the_tag_that_says_what_it_is_of() -> None:
    tags = tuple(TagWire(name=f"tag-{number}", value="") for number in range(50))
    assert len(with_provenance(MetadataWrite(name="image", tags=tags[:49]), "x").tags) == 50
    with pytest.raises(Invalid, match="send 49 at most"):
        with_provenance(MetadataWrite(name="image", tags=tags), "x")


VERBS = [
    ("POST", "start"),
    ("POST", "stop"),
    ("POST", "reboot"),
    ("POST", "snapshot"),
    ("GET", "sshkey"),
    ("GET", "consolesession"),
    ("GET", "consoleoutput"),
]


async def _all_refused(tenant: Tenant, instance: str, status: int, code: str) -> None:
    for method, verb in VERBS:
        body = {"metadata": {"name": "image"}} if verb == "snapshot" else None
        reply = await tenant.client.send(method, at(instance, verb), body=body)
        assert (reply.status, reply.json["code"]) == (status, code), verb


def _odd(compute: ComputeEnvironment, found: str) -> float:
    return (
        compute.app.ports.metrics.get_sample_value("remuda_compute_server_lookups_failed_total", {"found": found})
        or 0.0
    )


async def _stop_drivers(compute: ComputeEnvironment) -> None:
    """Leave everything as it is from now on."""
    for driver in (*compute.app.running_controllers.values(), *compute.region.app.running_controllers.values()):
        await driver.stop()


async def _remove(compute: ComputeEnvironment, resource: Resource) -> None:
    freed = await compute.store.update(replace(resource, metadata=replace(resource.metadata, finalizers=())))
    with suppress(Exception):
        await compute.store.delete(type(freed), freed.name, uid=freed.uid)


async def test_m09_c02_an_instance_whose_server_is_gone_is_inconsistent_and_nothing_is_done(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    assert (_odd(compute, "none"), _odd(compute, "several")) == (0.0, 0.0)
    await _stop_drivers(compute)
    await _remove(compute, await compute.store.get(Server, instance))
    await _all_refused(tenant, instance, 500, "inconsistent")
    assert (_odd(compute, "none"), _odd(compute, "several")) == (len(VERBS), 0.0)


async def test_m09_c02_an_instance_with_several_servers_is_inconsistent_and_nothing_is_done(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    await _stop_drivers(compute)
    tags = [{"name": INSTANCE_TAG, "value": instance}]
    wanted = {
        "metadata": {"name": "twin", "tags": tags},
        "spec": {
            "networkId": tenant.network,
            "flavorId": tenant.wanted(compute)["spec"]["flavorId"],
            "imageId": DEBIAN,
        },
    }
    assert (await compute.region.service("unikorn-compute").post("/api/v2/servers", wanted)).status == 201
    await _all_refused(tenant, instance, 500, "inconsistent")
    assert _odd(compute, "several") == len(VERBS)


async def test_m09_the_server_of_an_earlier_instance_of_the_name_is_left_alone(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    await _stop_drivers(compute)
    server = await compute.store.get(Server, instance)
    tags = tuple(replace(tag, value="earlier") if tag.name == INCARNATION else tag for tag in server.spec.tags)
    await compute.store.update(replace(server, spec=replace(server.spec, tags=tags)))
    await _all_refused(tenant, instance, 500, "inconsistent")
    assert _odd(compute, "none") == len(VERBS)


async def test_m09_an_instance_whose_server_is_not_at_its_provider_says_so(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    for driver in compute.region.app.running_controllers.values():
        await driver.stop()
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    while (await compute.store.list(Server)).items == []:
        await compute.clock.sleep(0.05)
    for method, verb in VERBS:
        if verb == "sshkey":
            continue
        body = {"metadata": {"name": "image"}} if verb == "snapshot" else None
        reply = await tenant.client.send(method, at(instance, verb), body=body)
        assert rejection(reply) == (400, "server is not at its provider at the moment: wait until it is provisioned")


async def test_m09_what_is_being_deleted_is_left_alone_as_it_is_by_a_change(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    await _stop_drivers(compute)
    assert (await tenant.client.delete(at(instance))).status == 202
    for method, verb in VERBS:
        body = {"metadata": {"name": "image"}} if verb == "snapshot" else None
        reply = await tenant.client.send(method, at(instance, verb), body=body)
        if verb == "consoleoutput":
            assert reply.status == 200
        else:
            assert rejection(reply) == (400, "instance is being deleted"), verb


async def test_m09_an_instance_that_has_no_server_yet_says_so(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    await _stop_drivers(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await _all_refused(tenant, instance, 400, "malformed")
    assert not (await compute.store.get(ComputeInstance, instance)).status.has_server
