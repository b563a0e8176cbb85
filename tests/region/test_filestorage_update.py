"""File storage over HTTP: who sees it, and what can be changed of it."""

from typing import Any

import pytest
from msgspec.structs import replace

from remuda.region.filestorage.routes import FILE_STORAGE
from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FileStorage
from tests.kit.environment import options
from tests.kit.region.filestorage_requests import (
    ALL,
    INSIDER,
    NOBODY,
    READER,
    STRANGER,
    forbidden,
    policy,
    read,
    spoil,
    update,
    wanted,
)
from tests.kit.region.resource_api import ORG, OTHER_ORG, REGION, everywhere, member, rejection
from tests.kit.region.storage import ABSENT, HOME, OTHER_PROJECT, TENANT, StorageEnvironment


@options(at_work=False)
async def test_storage_is_not_there_for_strangers_and_closed_to_those_without_permissions(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    path = f"{FILE_STORAGE}/{await region_storage.make_storage(wanted())}"
    stranger, nobody, reader = (region_storage.storages.ask(who) for who in (STRANGER, NOBODY, READER))
    for reply in (await stranger.get(path), await stranger.put(path, update()), await stranger.delete(path)):
        assert rejection(reply) == (404, "resource not found")
    assert rejection(await nobody.get(path)) == forbidden("read")
    assert rejection(await nobody.delete(path)) == forbidden("read")
    assert (await reader.get(path)).status == 200
    assert rejection(await reader.put(path, update())) == forbidden("update")
    assert rejection(await reader.delete(path)) == forbidden("delete")
    assert (await region_storage.storages.ask(TENANT).get(f"{FILE_STORAGE}/{ABSENT}")).status == 404
    status, sentence = rejection(await region_storage.storages.ask(None).get(f"{FILE_STORAGE}/x"))
    assert (status, sentence.partition(":")[0]) == (400, "invalid path/query element")


@options(at_work=False)
async def test_a_list_has_what_the_caller_may_see_in_the_order_of_ids_and_by_filter(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    tagged = wanted() | {"metadata": {"name": "files", "tags": [{"name": "a", "value": "1"}]}}
    first, second = await region_storage.make_storage(tagged), await region_storage.make_storage(wanted())
    third = await region_storage.make_storage(wanted(projectId=OTHER_PROJECT))

    async def listed(who: Any = TENANT, *query: tuple[str, str]) -> list[str]:
        reply = await region_storage.storages.ask(who).get(FILE_STORAGE, query)
        assert reply.status == 200, reply
        return [each["metadata"]["id"] for each in reply.json]

    everything = sorted([first, second, third])
    assert await listed() == everything
    assert await listed(everywhere("adm@example.com", "region:filestorage:v2 R")) == everything
    assert await listed(INSIDER) == sorted([first, second])
    assert await listed(STRANGER) == []
    assert await listed(NOBODY) == []
    assert await listed(TENANT, ("projectID", OTHER_PROJECT)) == [third]
    assert await listed(TENANT, ("organizationID", ORG), ("regionID", REGION)) == everything
    assert await listed(TENANT, ("regionID", ABSENT)) == []
    assert await listed(TENANT, ("tag", "a=1")) == [first]
    client = region_storage.storages.ask(TENANT)
    assert rejection(await client.get(FILE_STORAGE, [("tag", "a")])) == (400, "tag decode failed")
    assert await listed(TENANT, ("organizationID", OTHER_ORG)) == []


async def test_a_put_replaces_what_it_says_keeps_policies_it_does_not_and_detaches_what_it_leaves_out(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    body = wanted(network, snapshotPolicies=[policy()], defaultSnapshotProtectionEnabled=False)
    body["metadata"] |= {"description": "old", "tags": [{"name": "a", "value": "1"}]}
    storage = await region_storage.make_storage(body)
    path, changer = f"{FILE_STORAGE}/{storage}", member("cho@example.com", ORG, ALL)
    reply = await region_storage.storages.ask(changer).put(path, update() | {"metadata": {"name": "new"}})
    assert reply.status == 202
    metadata, spec = reply.json["metadata"], reply.json["spec"]
    assert metadata["name"] == "new"
    assert not {"description", "tags"} & metadata.keys()
    assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "cho@example.com")
    assert spec["attachments"] == {"networkIds": []}
    assert spec["defaultSnapshotProtectionEnabled"] is False
    assert spec["snapshotPolicies"] == [policy()]
    assert "attachments" not in reply.json["status"]
    reply = await region_storage.storages.ask(TENANT).put(path, update(snapshotPolicies=[]))
    assert reply.json["spec"]["snapshotPolicies"] == []
    changed = update(network, snapshotPolicies=[policy("b")], defaultSnapshotProtectionEnabled=True)
    reply = await region_storage.storages.ask(TENANT).put(path, changed)
    assert reply.json["spec"]["snapshotPolicies"] == [policy("b")]
    assert reply.json["spec"]["attachments"] == {"networkIds": [network]}
    stored = await region_storage.store.get(FileStorage, storage)
    assert [each.name for each in stored.spec.snapshot_policies] == ["b", "system-default"]


@pytest.mark.parametrize(
    ("spec", "status", "sentence"),
    [
        ({"sizeGiB": 0}, 422, "size must be greater or equal to 1GiB"),
        ({"sizeGiB": -5}, 422, "size must be greater or equal to 1GiB"),
        ({"attachments": {"networkIds": ["net"]}}, 422, "invalid network ID"),
        ({"attachments": {"networkIds": [ABSENT]}, "sizeGiB": 20}, 422, "network not found"),
        ({"snapshotPolicies": [policy("a"), policy("a")]}, 422, "snapshot policy names must be unique"),
        (
            {"snapshotPolicies": [policy("system-default")], "sizeGiB": 20},
            422,
            '"system-default" is a reserved snapshot policy name',
        ),
    ],
)
@options(at_work=False)
async def test_a_put_of_what_it_cannot_become_changes_nothing(
    region_storage: StorageEnvironment, spec: dict[str, Any], status: int, sentence: str
) -> None:
    await region_storage.keeper.sync()
    path = f"{FILE_STORAGE}/{await region_storage.make_storage(wanted())}"
    before, asked = await region_storage.versions(), len(region_storage.identity.asked)
    reply = await region_storage.storages.ask(TENANT).put(path, update(**spec))
    assert rejection(reply) == (status, sentence)
    for name in ("defaultSnapshotProtectionEnabled", "snapshotPolicies"):
        assert (await region_storage.storages.ask(TENANT).put(path, update(**{name: None}))).status == 400
    assert (await region_storage.versions(), len(region_storage.identity.asked)) == (before, asked)


@options(at_work=False, limits={"filestorage": 15 * GIB})
async def test_a_size_that_exceeds_the_quota_is_refused_in_words_and_changes_nothing(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    before = await read(region_storage, storage)
    client, path = region_storage.storages.ask(TENANT), f"{FILE_STORAGE}/{storage}"
    reply = await client.put(path, update(sizeGiB=16) | {"metadata": {"name": "new"}})
    sentence = f"total filestorage allocation of {16 * GIB} would exceed quota limit of {15 * GIB}"
    assert rejection(reply) == (403, sentence)
    assert await read(region_storage, storage) == before
    assert (await client.put(path, update(sizeGiB=15))).status == 202
    assert region_storage.identity.total("filestorage", HOME) == 15 * GIB
    assert (await client.put(path, update(sizeGiB=1))).status == 202
    assert region_storage.identity.total("filestorage", HOME) == GIB
    assert ("PUT", "filestorages", storage, 202) in await region_storage.audited()


@pytest.mark.parametrize("size", [10, 11])
@options(at_work=False)
async def test_a_write_with_an_old_tag_is_refused_and_one_with_the_right_tag_goes_through(
    region_storage: StorageEnvironment, size: int
) -> None:
    await region_storage.keeper.sync()
    client, path = region_storage.storages.ask(TENANT), f"{FILE_STORAGE}/{await region_storage.make_storage(wanted())}"
    old = (await client.get(path)).headers["etag"]
    body = update(sizeGiB=size, defaultSnapshotProtectionEnabled=False)
    assert (await client.put(path, body, if_match=old)).status == 202
    assert (await client.put(path, body, if_match=old)).status == 412
    assert (await client.put(path, update(sizeGiB=20), if_match=old)).status == 412
    assert (await client.delete(path, if_match=old)).status == 412
    new = (await client.get(path)).headers["etag"]
    assert (await client.delete(path, if_match=new)).status == 202


async def test_an_attachment_stays_as_it_was_made_whatever_becomes_of_the_network(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    storage = await region_storage.make_storage(wanted(network))
    await region_storage.rest()
    stored = await region_storage.store.get(FileStorage, storage)
    await spoil(region_storage, network)
    reply = await region_storage.storages.ask(TENANT).put(f"{FILE_STORAGE}/{storage}", update(network, sizeGiB=11))
    assert reply.status == 202
    assert (await region_storage.store.get(FileStorage, storage)).spec.attachments == stored.spec.attachments


@options(at_work=False)
async def test_what_was_written_before_anybody_was_asked_is_protected(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    found = await region_storage.store.get(FileStorage, storage)
    spec = replace(found.spec, default_snapshot_protection_enabled=None, snapshot_policies=())
    await region_storage.store.update(replace(found, spec=spec))
    assert (await read(region_storage, storage))["spec"]["defaultSnapshotProtectionEnabled"] is True
    reply = await region_storage.storages.ask(TENANT).put(f"{FILE_STORAGE}/{storage}", update())
    assert reply.json["spec"]["defaultSnapshotProtectionEnabled"] is True
    stored = await region_storage.store.get(FileStorage, storage)
    assert [each.name for each in stored.spec.snapshot_policies] == ["system-default"]


async def test_while_an_operation_has_it_locked_another_change_is_a_conflict(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    await region_storage.rest()
    client, path = region_storage.storages.ask(TENANT), f"{FILE_STORAGE}/{storage}"
    before = (await read(region_storage, storage))["spec"]
    region_storage.identity.fail("update", times=4)
    assert (await client.put(path, update(sizeGiB=20))).status == 503
    assert (await client.put(path, update())).status == 409
    await region_storage.world.clock.sleep(600)
    assert (await read(region_storage, storage))["spec"] == before
    assert region_storage.identity.total("filestorage", HOME) == 10 * GIB
    assert (await client.put(path, update(sizeGiB=20))).status == 202
    await region_storage.rest()
    assert (await read(region_storage, storage))["metadata"]["provisioningStatus"] == "provisioned"
    await region_storage.confirm_absence()
