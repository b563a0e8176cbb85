"""User data, which often has secrets, is shown to those who may update the instance, and to no others."""

import asyncio
from typing import Any

from remuda.compute.kinds import ComputeInstance
from remuda.http.sse import EventReader, Received
from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, encoded, made, settle
from tests.kit.identity.environment import expect

MARKER = "planted-marker-3f9c"
DATA = encoded(f"#cloud-config\nruncmd: [echo {MARKER}]\nwrite_files: [{{path: /etc/key, content: {MARKER}}}]\n")
NO_STORE = "no-store"


async def reader_of(compute: ComputeEnvironment, tenant: Tenant) -> Client:
    """Return somebody who may read what is in the project of a tenant."""
    identity, organization = compute.region.identity, compute.region.organization
    group = await identity.group(organization, "reader", name="readers")
    await identity.user("reader@example.com", organization, group)
    path = f"/api/v1/organizations/{organization}/projects/{tenant.project}"
    root = identity.client(identity.root)
    project = expect(await root.get(path), 200)
    body = {"metadata": {"name": project["metadata"]["name"]}, "spec": project["spec"]}
    body["spec"]["groupIDs"] = [*project["spec"]["groupIDs"], group]
    expect(await root.put(path, body), 200)
    return compute.client(await identity.log_in("reader@example.com"))


async def test_m27_a_reader_sees_an_instance_without_its_user_data_wherever_it_is_shown(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    reader = await reader_of(compute, tenant)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=DATA)))
    await compute.until(instance, "provisioned")
    shown = expect(await reader.get(at(instance)), 200)
    whole = expect(await tenant.client.get(at(instance)), 200)
    assert whole["spec"].pop("userData") == DATA
    assert shown == whole
    details = [at(instance, each) for each in ("timeline", "explain", "consoleoutput")]
    for path, query in (
        (at(instance), {}),
        (INSTANCES, {}),
        (INSTANCES, {"limit": "1"}),
        *((each, {}) for each in details),
    ):
        reply = await reader.get(path, query)
        assert reply.status == 200, (path, reply.body)
        assert DATA.encode() not in reply.body, path
        assert MARKER.encode() not in reply.body, path
    assert (await reader.put(at(instance), {"metadata": whole["metadata"], "spec": whole["spec"]})).status == 403
    (event,) = await first_events(reader, 1)
    assert event.type == "added"
    assert DATA.encode() not in event.data
    (event,) = await first_events(tenant.client, 1)
    assert DATA.encode() in event.data


async def first_events(client: Client, count: int) -> list[Received]:
    found: list[Received] = []
    async with client.stream(INSTANCES, {"watch": "true"}) as stream:
        events = EventReader()
        async for chunk in stream.chunks():
            found += events.feed(chunk)
            if len(found) >= count:
                break
    return found[:count]


async def test_a_watch_of_a_reader_shows_a_change_without_user_data(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    reader = await reader_of(compute, tenant)
    found: list[Received] = []
    async with reader.stream(INSTANCES, {"watch": "true"}) as stream:
        events = EventReader()
        async for chunk in stream.chunks():
            found += events.feed(chunk)
            if found[-1].type == "bookmark" and len(found) == 1:
                made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=DATA)))
            if any(each.type == "modified" for each in found):
                break
    assert {each.type for each in found} >= {"added", "modified"}
    assert DATA.encode() not in b"".join(each.data for each in found)


async def test_a_read_with_user_data_is_not_stored_by_anybody_on_its_way(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    reader = await reader_of(compute, tenant)
    created = await tenant.client.post(INSTANCES, tenant.wanted(compute, "one", userData=DATA))
    one, other = made(created), made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "other")))
    assert created.headers["cache-control"] == NO_STORE
    assert (await tenant.client.get(at(one))).headers["cache-control"] == NO_STORE
    assert (await tenant.client.get(INSTANCES)).headers["cache-control"] == NO_STORE
    assert (await tenant.client.get(at(other))).headers["cache-control"] == "no-cache"
    assert (await reader.get(at(one))).headers["cache-control"] == "no-cache"


async def test_the_etag_of_a_reader_does_not_tell_user_data(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    reader = await reader_of(compute, tenant)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=DATA)))
    await compute.until(instance, "provisioned")

    async def etags() -> list[str]:
        return [(await client.get(at(instance))).headers["etag"] for client in (reader, tenant.client)]

    read, whole = await etags()
    changed = body(expect(await tenant.client.get(at(instance)), 200), userData=encoded("#!/bin/sh\nother\n"))
    assert (await tenant.client.put(at(instance), changed, if_match=read)).status == 412
    expect(await tenant.client.put(at(instance), changed, if_match=whole), 202)
    read_after, whole_after = await etags()
    assert read_after == read
    assert whole_after != whole


def body(shown: Any, **spec: Any) -> dict[str, Any]:
    metadata, before = shown["metadata"], shown["spec"]
    return {"metadata": {"name": metadata["name"]}, "spec": {**before, **spec}}


async def test_an_update_without_user_data_removes_it_and_one_with_what_was_read_keeps_it(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=DATA)))
    await compute.until(instance, "provisioned")
    read = await tenant.client.get(at(instance))
    expect(await tenant.client.put(at(instance), body(read.json), if_match=read.headers["etag"]), 202)
    stored = (await compute.store.get(ComputeInstance, instance)).spec.user_data
    assert stored is not None
    assert stored.reveal() == DATA
    without = body(read.json)
    del without["spec"]["userData"]
    expect(await tenant.client.put(at(instance), without), 202)
    assert (await compute.store.get(ComputeInstance, instance)).spec.user_data is None
    assert "userData" not in expect(await tenant.client.get(at(instance)), 200)["spec"]


async def test_who_may_update_in_one_project_sees_only_its_user_data_in_a_list(compute: ComputeEnvironment) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    own = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=DATA)))
    foreign = made(await other.client.post(INSTANCES, other.wanted(compute, userData=DATA)))
    identity, organization = compute.region.identity, compute.region.organization
    root = identity.client(identity.root)
    readers = await identity.group(organization, "reader", users=["ann@example.com"], name="readers")
    place = f"/api/v1/organizations/{organization}/projects/{other.project}"
    project = expect(await root.get(place), 200)
    groups = [*project["spec"]["groupIDs"], readers]
    wanted = {"metadata": {"name": project["metadata"]["name"]}, "spec": {"groupIDs": groups}}
    expect(await root.put(place, wanted), 200)
    await compute.clock.sleep(3)  # for so long another process may remember permissions
    listed = {each["metadata"]["id"]: each["spec"] for each in expect(await tenant.client.get(INSTANCES), 200)}
    assert listed[own]["userData"] == DATA
    assert "userData" not in listed[foreign]


async def test_m27_a_kept_list_shows_no_user_data_to_readers_and_nothing_after_the_right_is_revoked(
    compute: ComputeEnvironment, way: str
) -> None:
    tenant = await settle(compute)
    reader = await reader_of(compute, tenant)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, userData=DATA)))
    await compute.until(instance, "provisioned")
    for _ in range(2):
        assert DATA.encode() in (await tenant.client.get(INSTANCES)).body
        shown = await reader.get(INSTANCES)
        assert DATA.encode() not in shown.body
        assert [each["metadata"]["id"] for each in expect(shown, 200)] == [instance]
    known = {"if-none-match": shown.headers["etag"]}
    assert (await reader.get(INSTANCES, **known)).status == 304
    identity, organization = compute.region.identity, compute.region.organization
    path = f"/api/v1/organizations/{organization}/projects/{tenant.project}"
    root = identity.client(identity.root)
    project = expect(await root.get(path), 200)
    project["spec"]["groupIDs"].pop()
    body = {"metadata": {"name": project["metadata"]["name"]}, "spec": project["spec"]}
    expect(await root.put(path, body), 200)
    while (await reader.get(at(instance))).status == 200:
        assert way == "apart", "in one process a right ends at once"
        await asyncio.sleep(1)
    assert expect(await reader.get(INSTANCES, **known), 200) == []
    assert [each["metadata"]["id"] for each in expect(await tenant.client.get(INSTANCES), 200)] == [instance]
