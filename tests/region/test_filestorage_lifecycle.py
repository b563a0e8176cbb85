"""File storage over a simulated cloud: how it comes to be, changes and goes."""

from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.providers.contract.filestorage import CloudFileStorage as CloudStorage
from remuda.providers.contract.networks import CloudAddressRange
from remuda.region.filestorage.routes import FILE_STORAGE
from remuda.region.filestorage.rules import charge_of
from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FileStorage, FileStorageClass
from remuda.region.kinds.networks import Network
from remuda.region.networks.ipam import allocate_specific_address
from remuda.region.networks.routes import NETWORKS
from tests.kit.environment import options
from tests.kit.region.filestorage_requests import FAST, policy, read, update, wanted
from tests.kit.region.resource_api import rejection
from tests.kit.region.storage import HOME, TENANT, StorageEnvironment

REFERENCE = "filestorages.region.unikorn-cloud.org"


async def at_cloud(region_storage: StorageEnvironment) -> list[CloudStorage]:
    assert region_storage.provider.file_storages is not None
    return [each async for part in region_storage.provider.file_storages.storages() for each in part]


async def put(region_storage: StorageEnvironment, storage: str, body: Any) -> None:
    reply = await region_storage.storages.ask(TENANT).put(f"{FILE_STORAGE}/{storage}", body)
    assert reply.status == 202, reply


@pytest.mark.parametrize(
    ("held", "first", "last"),
    [
        ([17], "10.0.0.18", "10.0.0.21"),
        ([19, 20, 22], "10.0.0.23", "10.0.0.26"),
        (range(20, 128), "10.0.0.16", "10.0.0.19"),
        ([18, *range(21, 128)], "10.0.0.16", "10.0.0.17"),
    ],
)
async def test_storage_keeps_off_addresses_that_something_else_holds(
    region_storage: StorageEnvironment, held: Iterable[int], first: str, last: str
) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    found = await region_storage.store.get(Network, network)
    for number in held:
        await allocate_specific_address(region_storage.store, found, found, IPv4Address(f"10.0.0.{number}"))
    await region_storage.make_storage(wanted(network))
    await region_storage.rest()
    (there,) = await at_cloud(region_storage)
    (attached,) = there.spec.attachments
    assert attached.addresses == CloudAddressRange(first, last)


async def test_storage_is_not_attached_where_others_hold_the_whole_storage_range(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network(reservations={"prefixLength": 27, "providerReservedPrefixLength": 28})
    found = await region_storage.store.get(Network, network)
    for number in range(16, 32):
        await allocate_specific_address(region_storage.store, found, found, IPv4Address(f"10.0.0.{number}"))
    reply = await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(network))
    assert rejection(reply) == (422, "network storage range does not contain any usable addresses")


async def test_storage_comes_to_be_at_the_first_addresses_of_a_networks_storage_range(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    storage = await region_storage.make_storage(wanted(network, snapshotPolicies=[policy()]))
    await region_storage.rest()
    seen = await read(region_storage, storage)
    assert seen["metadata"]["provisioningStatus"] == "provisioned"
    (there,) = await at_cloud(region_storage)
    assert there.spec.storage_class == "c1f0c0de-0001-4000-8000-000000000001", "as the cloud calls its class"
    assert (there.spec.size_bytes, there.spec.has_root_squash) == (10 * GIB, True)
    (attached,) = there.spec.attachments
    assert attached.addresses == CloudAddressRange("10.0.0.16", "10.0.0.19")
    assert [each.name for each in there.spec.policies] == ["nightly", "system-default"]
    default = there.spec.policies[1]
    assert (default.interval, default.time_of_day, default.keep) == ("daily", "04:00Z", 7)
    status = seen["status"]
    assert status["attachments"] == [
        {
            "networkId": network,
            "provisioningStatus": "provisioned",
            "mountSource": f"10.0.0.16:{there.mount_path}",
            "mountOptions": {"remoteports": "10.0.0.16-10.0.0.19"},
        }
    ]
    assert status["snapshotPolicies"] == [
        {"name": "nightly", "provisioningStatus": "provisioned", "message": "snapshots are taken"}
    ]
    assert (status["usage"]["capacityBytes"], status["usage"]["usedBytes"]) == (10 * GIB, 0)
    assert status["usage"]["updatedAt"]
    stored = await region_storage.store.get(FileStorage, storage)
    assert region_storage.identity.confirmed >= {(HOME, stored.spec.operation)}
    assert region_storage.identity.total("filestorage", HOME) == 10 * GIB
    assert f"{REFERENCE}/{storage}" in region_storage.identity.references[HOME]
    await region_storage.confirm_absence()


async def test_a_class_with_more_in_parallel_than_the_network_has_gets_all_of_the_range(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    small = await region_storage.make_network(reservations={"prefixLength": 29, "providerReservedPrefixLength": 30})
    single = await region_storage.make_network(reservations={"prefixLength": 30}, prefix="10.1.0.0/24")
    large = await region_storage.make_network(prefix="10.2.0.0/24")
    storage = await region_storage.make_storage(wanted(small, single, large, storageClassId=FAST))
    await region_storage.rest()
    (there,) = await at_cloud(region_storage)
    assert [each.addresses for each in there.spec.attachments] == [
        CloudAddressRange("10.0.0.4", "10.0.0.7"),
        CloudAddressRange("10.1.0.2", "10.1.0.3"),
        CloudAddressRange("10.2.0.16", "10.2.0.23"),
    ]
    rows = (await read(region_storage, storage))["status"]["attachments"]
    assert [each["networkId"] for each in rows] == [small, single, large]


async def test_size_attachments_and_policies_are_brought_up_to_date_where_it_is(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    one, two = await region_storage.make_network(), await region_storage.make_network(prefix="10.1.0.0/24")
    storage = await region_storage.make_storage(wanted(one, snapshotPolicies=[policy()]))
    await region_storage.rest()
    before = await at_cloud(region_storage)
    await put(region_storage, storage, update(one, two, sizeGiB=20, storageType={"NFS": {"rootSquash": False}}))
    assert region_storage.identity.total("filestorage", HOME) == 20 * GIB
    await region_storage.rest()
    (there,) = await at_cloud(region_storage)
    assert there.mount_path == before[0].mount_path
    assert (there.spec.size_bytes, there.spec.has_root_squash) == (20 * GIB, False)
    assert len(there.spec.attachments) == 2
    assert [each.name for each in there.spec.policies] == ["nightly", "system-default"]
    assert (await read(region_storage, storage))["status"]["usage"]["capacityBytes"] == 20 * GIB
    await region_storage.confirm_absence()
    await put(region_storage, storage, update(two, snapshotPolicies=[], defaultSnapshotProtectionEnabled=False))
    assert region_storage.identity.total("filestorage", HOME) == 10 * GIB
    await region_storage.rest()
    (there,) = await at_cloud(region_storage)
    assert (there.spec.size_bytes, there.spec.policies) == (10 * GIB, ())
    seen = await read(region_storage, storage)
    assert [each["networkId"] for each in seen["status"]["attachments"]] == [two]
    assert seen["metadata"]["provisioningStatus"] == "provisioned"
    await region_storage.confirm_absence()
    assert (await region_storage.networks.ask(TENANT).delete(f"{NETWORKS}/{one}")).status == 202
    await region_storage.rest()
    assert (await region_storage.networks.ask(TENANT).get(f"{NETWORKS}/{one}")).status == 404


async def test_a_network_that_storage_is_attached_to_cannot_go_before_it(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    storage = await region_storage.make_storage(wanted(network))
    await region_storage.rest()
    client = region_storage.networks.ask(TENANT)
    reply = await client.delete(f"{NETWORKS}/{network}")
    assert rejection(reply) == (403, "network is in use and cannot be deleted")
    assert (await region_storage.storages.ask(TENANT).delete(f"{FILE_STORAGE}/{storage}")).status == 202
    await region_storage.rest()
    assert (await client.delete(f"{NETWORKS}/{network}")).status == 202
    await region_storage.rest()
    assert (await client.get(f"{NETWORKS}/{network}")).status == 404


async def test_how_full_it_is_is_told_when_the_cloud_tells_it(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    await region_storage.rest()
    (there,) = await at_cloud(region_storage)
    first = (await read(region_storage, storage))["status"]["usage"]
    region_storage.cloud.operator.fill(there.spec.handle.name, 3 * GIB)
    await region_storage.rest()
    usage = (await read(region_storage, storage))["status"]["usage"]
    assert (usage["capacityBytes"], usage["usedBytes"]) == (10 * GIB, 3 * GIB)
    assert usage["updatedAt"] > first["updatedAt"]
    reply = await region_storage.storages.ask(TENANT).put(f"{FILE_STORAGE}/{storage}", update(sizeGiB=2))
    assert rejection(reply) == (
        422,
        "spec.sizeGiB is less than the space in use: request at least 3.",
    )
    await put(region_storage, storage, update(sizeGiB=3))
    await region_storage.rest()
    assert (await at_cloud(region_storage))[0].spec.size_bytes == 3 * GIB
    await region_storage.confirm_absence()


async def test_what_the_cloud_rejects_to_shrink_says_so_and_recovers(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    await region_storage.rest()
    (there,) = await at_cloud(region_storage)
    region_storage.cloud.operator.fill(there.spec.handle.name, 5 * GIB)
    await put(region_storage, storage, update(sizeGiB=4))
    await region_storage.rest()
    said = await region_storage.available(FileStorage, storage)
    assert (said.status, said.reason) == ("False", "Errored")
    assert said.message == "its data does not fit: increase its size, or delete data"
    seen = await read(region_storage, storage)
    assert seen["metadata"]["provisioningStatus"] == "error"
    assert seen["status"]["usage"]["capacityBytes"] == 10 * GIB, "what there is, not what is wanted"
    await put(region_storage, storage, update(sizeGiB=6))
    await region_storage.rest()
    assert (await read(region_storage, storage))["metadata"]["provisioningStatus"] == "provisioned"
    assert (await at_cloud(region_storage))[0].spec.size_bytes == 6 * GIB


async def test_what_is_deleted_leaves_nothing_behind(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    before = region_storage.identity.everything()
    storage = await region_storage.make_storage(wanted(network))
    await region_storage.rest()
    client, path = region_storage.storages.ask(TENANT), f"{FILE_STORAGE}/{storage}"
    for _ in range(2):
        reply = await client.delete(path)
        assert (reply.status, reply.body) == (202, b"")
    assert (await read(region_storage, storage))["metadata"]["provisioningStatus"] == "deprovisioning"
    assert rejection(await client.put(path, update())) == (400, "filestorage is being deleted")
    await region_storage.rest()
    assert (await client.get(path)).status == 404
    assert await at_cloud(region_storage) == []
    assert region_storage.identity.everything() == before
    assert len(region_storage.identity.ended) == 1, "who saw it before does not hold anything for it again"
    await region_storage.confirm_absence()


async def test_the_project_is_released_last(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    await region_storage.rest()
    region_storage.identity.mark(HOME)
    region_storage.identity.fail("release_and_fence", times=3)
    assert (await region_storage.storages.ask(TENANT).delete(f"{FILE_STORAGE}/{storage}")).status == 202
    await region_storage.world.clock.sleep(0.05)
    assert HOME in region_storage.identity.places
    await region_storage.world.clock.sleep(600)
    assert HOME not in region_storage.identity.places
    assert region_storage.identity.everything() == ({}, {}, frozenset())


async def test_a_quota_that_lapsed_is_held_again_before_anything_is_made(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    region_storage.identity.fail("confirm", times=3)
    storage = await region_storage.make_storage(wanted())
    stored = await region_storage.store.get(FileStorage, storage)
    region_storage.identity.lapse(stored.spec.operation)
    assert region_storage.identity.total("filestorage", HOME) == 0
    await region_storage.rest()
    assert region_storage.identity.held[HOME, stored.spec.operation] == charge_of(stored)
    assert (await read(region_storage, storage))["metadata"]["provisioningStatus"] == "provisioned"


@pytest.mark.parametrize("is_at_work", [False, True])
@options(lambda is_at_work: {"at_work": is_at_work})
async def test_an_operation_that_was_undone_leaves_nothing_to_controllers(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    region_storage.identity.fail("add_reference", times=1, after=True)
    client = region_storage.storages.ask(TENANT)
    assert (await client.post(FILE_STORAGE, wanted())).status == 503
    await region_storage.rest()
    assert (await region_storage.store.list(FileStorage)).items == []
    assert await at_cloud(region_storage) == []
    assert region_storage.identity.everything() == ({}, {}, frozenset())


async def test_storage_whose_class_has_gone_says_so_and_can_be_deleted(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    await region_storage.rest()
    stored = await region_storage.store.get(FileStorage, storage)
    found = await region_storage.store.get(FileStorageClass, stored.spec.storage_class_id)
    await region_storage.store.delete(FileStorageClass, found.name, uid=found.uid)
    await put(region_storage, storage, update(sizeGiB=11))
    await region_storage.rest()
    assert (await region_storage.available(FileStorage, storage)).reason == "DependencyNotFound"
    assert (await region_storage.storages.ask(TENANT).delete(f"{FILE_STORAGE}/{storage}")).status == 202
    await region_storage.rest()
    assert await at_cloud(region_storage) == []


async def test_storage_that_waits_for_its_network_is_made_when_that_is_there(
    region_storage: StorageEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remuda.region.filestorage.service.is_provisioned", lambda _: True)  # as it is asked for
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    found = await region_storage.store.get(Network, network)
    pending = tuple(each for each in found.status.conditions if each.type != "Available")
    status = replace(found.status, conditions=pending)
    await region_storage.store.update_status(replace(found, status=status))
    storage = await region_storage.make_storage(wanted(network))
    await region_storage.world.clock.sleep(1)
    assert (await region_storage.available(FileStorage, storage)).reason == "DependencyNotReady"
    found = await region_storage.store.get(Network, network)
    spec = replace(found.spec, dns_nameservers=("9.9.9.9",))
    await region_storage.store.update(replace(found, spec=spec))
    await region_storage.rest()
    assert (await read(region_storage, storage))["metadata"]["provisioningStatus"] == "provisioned"
