from dataclasses import replace

import pytest

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle, storage_name
from remuda.providers.contract.filestorage import CloudAttachment, CloudFileStorageSpec, CloudSnapshotPolicy
from remuda.providers.contract.networks import CloudAddressRange
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import NETWORK, Bench, everything

STORAGE = Handle("", storage_name("f1000000-0000-4000-8000-000000000001", "uid-6"))
ATTACHED = CloudAttachment(network=NETWORK, addresses=CloudAddressRange("10.1.0.2", "10.1.0.5"))
NIGHTLY = CloudSnapshotPolicy(name="nightly", interval="daily", keep=7, time_of_day="04:00Z")


async def wanted(bench: Bench) -> CloudFileStorageSpec:
    assert bench.provider.file_storages is not None
    offered = await bench.provider.file_storages.storage_classes()
    return CloudFileStorageSpec(handle=STORAGE, storage_class=offered[0].id, size_bytes=10 * 2**30)


@on_every_provider("file_storages")
async def test_storage_classes_say_what_they_speak(bench: Bench) -> None:
    assert bench.provider.file_storages is not None
    offered = await bench.provider.file_storages.storage_classes()
    assert offered
    assert all(each.id and each.name and each.protocols and each.parallelism > 0 for each in offered)


@on_every_provider("file_storages")
async def test_a_storage_is_made_once_and_keeps_its_mount_path(bench: Bench) -> None:
    storages = bench.provider.file_storages
    assert storages is not None
    spec = await wanted(bench)
    assert await storages.find_storage(STORAGE) is None
    made = await storages.converge_storage(spec)
    assert made.spec == spec
    assert made.mount_path.startswith("/")
    assert made.used_bytes <= spec.size_bytes
    assert await storages.converge_storage(spec) == made
    larger = await storages.converge_storage(replace(spec, size_bytes=20 * 2**30, policies=(NIGHTLY,)))
    assert larger.mount_path == made.mount_path
    assert larger.spec.policies == (NIGHTLY,)
    assert await everything(storages.storages()) == [larger]
    await storages.remove_storage(STORAGE)
    await storages.remove_storage(STORAGE)
    assert await storages.find_storage(STORAGE) is None


@on_every_provider("file_storages", "networks")
async def test_a_storage_is_attached_to_networks_that_are_there(bench: Bench) -> None:
    storages = bench.provider.file_storages
    assert storages is not None
    spec = replace(await wanted(bench), attachments=(ATTACHED,))
    with pytest.raises(NotFound):
        await storages.converge_storage(spec)
    assert await storages.find_storage(STORAGE) is None
    await bench.network()
    assert (await storages.converge_storage(spec)).spec.attachments == (ATTACHED,)
    assert (await storages.converge_storage(replace(spec, attachments=()))).spec.attachments == ()


@on_every_provider("file_storages")
async def test_a_storage_needs_a_class_that_is_offered(bench: Bench) -> None:
    storages = bench.provider.file_storages
    assert storages is not None
    with pytest.raises(NotFound):
        await storages.converge_storage(replace(await wanted(bench), storage_class="none"))
    assert await storages.find_storage(STORAGE) is None
