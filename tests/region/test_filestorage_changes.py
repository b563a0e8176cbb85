"""File storage over HTTP: who sees it, and what can be changed of it."""

from typing import Any

import pytest
from msgspec.structs import replace

from remuda.region.filestorage.routes import FILE_STORAGE
from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FileStorage
from tests.region.filestorage_asking import (
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
from tests.region.holdings_ground import ABSENT, HOME, OTHER_PROJECT, TENANT, Site, on_site
from tests.region.room import ORG, OTHER_ORG, REGION, everywhere, member, refusal


def test_storage_is_not_there_for_strangers_and_closed_to_those_without_rights() -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        path = f"{FILE_STORAGE}/{await site.make_storage(wanted())}"
        stranger, nobody, reader = (site.storages.ask(who) for who in (STRANGER, NOBODY, READER))
        for reply in (await stranger.get(path), await stranger.put(path, update()), await stranger.delete(path)):
            assert refusal(reply) == (404, "resource not found")
        assert refusal(await nobody.get(path)) == forbidden("read")
        assert refusal(await nobody.delete(path)) == forbidden("read")
        assert (await reader.get(path)).status == 200
        assert refusal(await reader.put(path, update())) == forbidden("update")
        assert refusal(await reader.delete(path)) == forbidden("delete")
        assert (await site.storages.ask(TENANT).get(f"{FILE_STORAGE}/{ABSENT}")).status == 404
        status, sentence = refusal(await site.storages.ask(None).get(f"{FILE_STORAGE}/x"))
        assert (status, sentence.partition(":")[0]) == (400, "invalid path/query element")

    on_site(scenario, at_work=False)


def test_a_list_has_what_the_caller_may_see_in_the_order_of_ids_and_by_filter() -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        tagged = wanted() | {"metadata": {"name": "files", "tags": [{"name": "a", "value": "1"}]}}
        first, second = await site.make_storage(tagged), await site.make_storage(wanted())
        third = await site.make_storage(wanted(projectId=OTHER_PROJECT))

        async def listed(who: Any = TENANT, *query: tuple[str, str]) -> list[str]:
            reply = await site.storages.ask(who).get(FILE_STORAGE, query)
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
        client = site.storages.ask(TENANT)
        assert refusal(await client.get(FILE_STORAGE, [("tag", "a")])) == (400, "tag decode failed")
        assert (await client.get(FILE_STORAGE, [("organizationID", OTHER_ORG)])).status == 403

    on_site(scenario, at_work=False)


def test_a_put_replaces_what_it_says_keeps_policies_it_does_not_and_detaches_what_it_leaves_out() -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        network = await site.make_network()
        body = wanted(network, snapshotPolicies=[policy()], defaultSnapshotProtectionEnabled=False)
        body["metadata"] |= {"description": "old", "tags": [{"name": "a", "value": "1"}]}
        storage = await site.make_storage(body)
        path, changer = f"{FILE_STORAGE}/{storage}", member("cho@example.com", ORG, ALL)
        reply = await site.storages.ask(changer).put(path, update() | {"metadata": {"name": "new"}})
        assert reply.status == 202
        metadata, spec = reply.json["metadata"], reply.json["spec"]
        assert metadata["name"] == "new"
        assert not {"description", "tags"} & metadata.keys()
        assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "cho@example.com")
        assert spec["attachments"] == {"networkIds": []}
        assert spec["defaultSnapshotProtectionEnabled"] is False
        assert spec["snapshotPolicies"] == [policy()]
        assert "attachments" not in reply.json["status"]
        reply = await site.storages.ask(TENANT).put(path, update(snapshotPolicies=[]))
        assert reply.json["spec"]["snapshotPolicies"] == []
        changed = update(network, snapshotPolicies=[policy("b")], defaultSnapshotProtectionEnabled=True)
        reply = await site.storages.ask(TENANT).put(path, changed)
        assert reply.json["spec"]["snapshotPolicies"] == [policy("b")]
        assert reply.json["spec"]["attachments"] == {"networkIds": [network]}
        stored = await site.store.get(FileStorage, storage)
        assert [each.name for each in stored.spec.snapshot_policies] == ["b", "system-default"]

    on_site(scenario)


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
def test_a_put_of_what_it_cannot_become_changes_nothing(spec: dict[str, Any], status: int, sentence: str) -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        path = f"{FILE_STORAGE}/{await site.make_storage(wanted())}"
        before, asked = await site.versions(), len(site.identity.asked)
        reply = await site.storages.ask(TENANT).put(path, update(**spec))
        assert refusal(reply) == (status, sentence)
        for name in ("defaultSnapshotProtectionEnabled", "snapshotPolicies"):
            assert (await site.storages.ask(TENANT).put(path, update(**{name: None}))).status == 400
        assert (await site.versions(), len(site.identity.asked)) == (before, asked)

    on_site(scenario, at_work=False)


def test_a_size_that_exceeds_the_quota_is_refused_in_words_and_changes_nothing() -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        storage = await site.make_storage(wanted())
        before = await read(site, storage)
        client, path = site.storages.ask(TENANT), f"{FILE_STORAGE}/{storage}"
        reply = await client.put(path, update(sizeGiB=16) | {"metadata": {"name": "new"}})
        sentence = f"total filestorage allocation of {16 * GIB} would exceed quota limit of {15 * GIB}"
        assert refusal(reply) == (403, sentence)
        assert await read(site, storage) == before
        assert (await client.put(path, update(sizeGiB=15))).status == 202
        assert site.identity.total("filestorage", HOME) == 15 * GIB
        assert (await client.put(path, update(sizeGiB=1))).status == 202
        assert site.identity.total("filestorage", HOME) == GIB
        assert ("PUT", "filestorages", storage, 202) in await site.audited()

    on_site(scenario, at_work=False, limits={"filestorage": 15 * GIB})


@pytest.mark.parametrize("size", [10, 11])
def test_a_write_with_an_old_tag_is_refused_and_one_with_the_right_tag_goes_through(size: int) -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        client, path = site.storages.ask(TENANT), f"{FILE_STORAGE}/{await site.make_storage(wanted())}"
        old = (await client.get(path)).headers["etag"]
        body = update(sizeGiB=size, defaultSnapshotProtectionEnabled=False)
        assert (await client.put(path, body, if_match=old)).status == 202
        assert (await client.put(path, body, if_match=old)).status == 412
        assert (await client.put(path, update(sizeGiB=20), if_match=old)).status == 412
        assert (await client.delete(path, if_match=old)).status == 412
        new = (await client.get(path)).headers["etag"]
        assert (await client.delete(path, if_match=new)).status == 202

    on_site(scenario, at_work=False)


def test_an_attachment_stays_as_it_was_made_whatever_becomes_of_the_network() -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        network = await site.make_network()
        storage = await site.make_storage(wanted(network))
        await site.rest()
        stored = await site.store.get(FileStorage, storage)
        await spoil(site, network)
        reply = await site.storages.ask(TENANT).put(f"{FILE_STORAGE}/{storage}", update(network, sizeGiB=11))
        assert reply.status == 202
        assert (await site.store.get(FileStorage, storage)).spec.attachments == stored.spec.attachments

    on_site(scenario)


def test_what_was_written_before_anybody_was_asked_is_protected() -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        storage = await site.make_storage(wanted())
        found = await site.store.get(FileStorage, storage)
        spec = replace(found.spec, default_snapshot_protection_enabled=None, snapshot_policies=())
        await site.store.update(replace(found, spec=spec))
        assert (await read(site, storage))["spec"]["defaultSnapshotProtectionEnabled"] is True
        reply = await site.storages.ask(TENANT).put(f"{FILE_STORAGE}/{storage}", update())
        assert reply.json["spec"]["defaultSnapshotProtectionEnabled"] is True
        stored = await site.store.get(FileStorage, storage)
        assert [each.name for each in stored.spec.snapshot_policies] == ["system-default"]

    on_site(scenario, at_work=False)


def test_while_an_operation_has_it_in_hand_another_change_is_a_conflict() -> None:
    async def scenario(site: Site) -> None:
        await site.keeper.look()
        storage = await site.make_storage(wanted())
        await site.rest()
        client, path = site.storages.ask(TENANT), f"{FILE_STORAGE}/{storage}"
        before = (await read(site, storage))["spec"]
        site.identity.fail("change", times=4)
        assert (await client.put(path, update(sizeGiB=20))).status == 503
        assert (await client.put(path, update())).status == 409
        await site.world.clock.sleep(600)
        assert (await read(site, storage))["spec"] == before
        assert site.identity.total("filestorage", HOME) == 10 * GIB
        assert (await client.put(path, update(sizeGiB=20))).status == 202
        await site.rest()
        assert (await read(site, storage))["metadata"]["provisioningStatus"] == "provisioned"
        await site.look_again()

    on_site(scenario)
