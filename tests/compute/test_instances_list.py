"""Who sees which instances: lists with their filters and pages, reads, and watches."""

import pytest
from msgspec.structs import replace

from remuda.compute.kinds import ComputeInstance
from remuda.http.sse import EventReader
from remuda.resources.conventions import NAME, NETWORK, ORGANIZATION, PROJECT, REGION
from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import (
    ABSENT,
    NOT_FOUND,
    OUT_OF_PROJECT,
    at,
    forbidden,
    made,
    settle,
)
from tests.kit.region.environment import NORTH
from tests.kit.resource_api import rejection


async def _listed(client: Client, *query: tuple[str, str]) -> list[str]:
    reply = await client.get(INSTANCES, query)
    assert reply.status == 200, reply
    return [each["metadata"]["id"] for each in reply.json]


async def test_m01_m20_a_list_has_what_the_caller_may_see_in_the_order_of_ids_and_by_filter(
    compute: ComputeEnvironment,
) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    assert await _listed(tenant.client) == []
    tagged = tenant.wanted(compute, "one")
    tagged["metadata"]["tags"] = [{"name": "a", "value": "1"}]
    first = made(await tenant.client.post(INSTANCES, tagged))
    second = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "two")))
    third = made(await other.client.post(INSTANCES, other.wanted(compute, "one")))
    everything, organization = sorted([first, second, third]), compute.region.organization
    assert await _listed(compute.root) == everything
    assert await _listed(tenant.client) == sorted([first, second])
    assert await _listed(other.client) == [third]
    root = compute.root
    assert await _listed(root, ("networkID", other.network)) == [third]
    assert await _listed(root, ("networkID", tenant.network), ("networkID", other.network)) == everything
    assert await _listed(root, ("networkID", ABSENT)) == []
    assert await _listed(root, ("projectID", other.project)) == [third]
    assert await _listed(root, ("organizationID", organization), ("regionID", NORTH)) == everything
    assert await _listed(root, ("regionID", ABSENT)) == []
    assert await _listed(root, ("tag", "a=1")) == [first]
    assert await _listed(root, ("tag", "a=1"), ("tag", "b=1")) == []
    assert rejection(await root.get(INSTANCES, [("tag", "a")])) == (400, "tag decode failed")
    assert (await root.get(INSTANCES, [("networkID", "x")])).status == 400


async def test_m20_a_filter_that_names_a_place_outside_the_callers_permissions_shows_nothing(
    compute: ComputeEnvironment,
) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    made(await other.client.post(INSTANCES, other.wanted(compute)))
    for hidden in (("organizationID", ABSENT), ("projectID", other.project), ("projectID", ABSENT)):
        reply = await tenant.client.get(INSTANCES, [hidden])
        assert (reply.status, reply.json) == (200, []), hidden


async def test_an_instance_is_not_there_for_strangers_and_closed_to_those_without_permissions(
    compute: ComputeEnvironment,
) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    identity = compute.region.identity
    elsewhere = await identity.organization("elsewhere")
    stranger = compute.client(await identity.member("mallory@example.com", elsewhere, "administrator"))
    path = at(made(await tenant.client.post(INSTANCES, tenant.wanted(compute))))
    verbs = ("start", "stop", "reboot", "snapshot")
    looks = ("", "/sshkey", "/consolesession", "/consoleoutput")
    body = {"metadata": {"name": "image"}}
    for client, refused in (
        (stranger, NOT_FOUND),
        (other.client, forbidden("read", OUT_OF_PROJECT)),
    ):
        for look in looks:
            assert rejection(await client.get(f"{path}{look}")) == refused
        for verb in verbs:
            reply = await client.post(f"{path}/{verb}", body if verb == "snapshot" else None)
            assert rejection(reply) == refused
        assert rejection(await client.delete(path)) == refused
    nobody = compute.client(None)
    assert (await nobody.get(path)).status == 401
    assert (await nobody.get(f"{INSTANCES}/x")).status == 400
    assert rejection(await tenant.client.get(at(ABSENT))) == NOT_FOUND


async def test_who_may_only_read_reads_and_does_nothing_else(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    identity, organization = compute.region.identity, compute.region.organization
    group = await identity.group(organization, "reader", name="readers")
    await identity.user("rea@example.com", organization, group)
    project = {"metadata": {"name": "ann-project"}, "spec": {"groupIDs": [group]}}
    root = identity.client(identity.root)
    assert (await root.put(f"/api/v1/organizations/{organization}/projects/{tenant.project}", project)).status == 200
    reader = compute.client(await identity.log_in("rea@example.com"))
    instance = await compute.instance(
        tenant.network, projectId=tenant.project, imageId=tenant.wanted(compute)["spec"]["imageId"]
    )
    await compute.until(instance, "provisioned")
    assert (await reader.get(at(instance))).status == 200
    assert (await reader.get(at(instance, "consoleoutput"))).status == 200
    for verb in ("sshkey", "consolesession"):
        assert rejection(await reader.get(at(instance, verb))) == forbidden("update")
    for verb in ("start", "stop", "reboot", "snapshot"):
        body = {"metadata": {"name": "image"}} if verb == "snapshot" else None
        assert rejection(await reader.post(at(instance, verb), body)) == forbidden("update")
    assert rejection(await reader.delete(at(instance))) == forbidden("delete")
    assert not (await compute.store.get(ComputeInstance, instance)).is_deleting


async def test_a_list_comes_in_pages(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    names = sorted(
        [made(await tenant.client.post(INSTANCES, tenant.wanted(compute, f"i-{each}"))) for each in range(5)]
    )
    seen: list[str] = []
    query = [("limit", "2")]
    while True:
        reply = await tenant.client.get(INSTANCES, query)
        assert (reply.status, len(reply.json) <= 2) == (200, True)
        seen += [each["metadata"]["id"] for each in reply.json]
        if "x-continue" not in reply.headers:
            break
        query = [("limit", "2"), ("continue", reply.headers["x-continue"])]
    assert seen == names


async def test_b01_a_watch_tells_of_every_change_until_it_is_gone(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    told: list[tuple[str, bytes]] = []
    reader = EventReader()
    async with tenant.client.stream(INSTANCES, [("watch", "true")]) as stream:
        assert (await stream.head()).status == 200
        instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
        await compute.until(instance, "provisioned")
        assert (await tenant.client.delete(at(instance))).status == 202
        await compute.until_gone(instance)
        async for chunk in stream.chunks():
            told += [(each.type, each.data) for each in reader.feed(chunk)]
            if told and told[-1][0] == "deleted":
                break
    kinds = [kind for kind, _ in told if kind in {"added", "modified", "deleted"}]
    assert (kinds[0], kinds[-1]) == ("added", "deleted")
    assert set(kinds[1:-1]) == {"modified"}
    assert all(instance.encode() in data for kind, data in told if kind in {"added", "modified", "deleted"})


@pytest.mark.parametrize("label", [ORGANIZATION, PROJECT, REGION, NETWORK, NAME])
async def test_c12_an_instance_whose_labels_were_damaged_is_nobodys_and_keeps_nobody_from_theirs(
    compute: ComputeEnvironment, label: str
) -> None:
    tenant = await settle(compute)
    damaged = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "one")))
    whole = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "two")))
    for driver in compute.app.running_controllers.values():
        await driver.stop()
    found = await compute.store.get(ComputeInstance, damaged)
    labels = {key: value for key, value in found.metadata.labels.items() if key != label}
    await compute.store.update(replace(found, metadata=replace(found.metadata, labels=labels)))
    for client in (tenant.client, compute.root):
        assert await _listed(client) == [whole]
        for reply in (
            await client.get(at(damaged)),
            await client.put(at(damaged), {"metadata": {"name": "one"}, "spec": tenant.wanted(compute)["spec"]}),
            await client.delete(at(damaged)),
            await client.post(at(damaged, "stop")),
        ):
            assert rejection(reply) == NOT_FOUND
    assert (await tenant.client.post(INSTANCES, tenant.wanted(compute, "one"))).status == 409
