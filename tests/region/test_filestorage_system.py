"""File storage in the whole of region, with identity beside it and a simulated cloud behind it."""

from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FileStorage
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.region.environment import NORTH, RegionEnvironment

STORAGE = "/api/v2/filestorage"


async def _made(region: RegionEnvironment, network: str) -> str:
    classes = expect(await region.root.get("/api/v2/filestorageclasses", [("regionID", NORTH)]), 200)
    spec = {
        "organizationId": region.organization,
        "projectId": region.project,
        "regionId": NORTH,
        "storageClassId": classes[0]["metadata"]["id"],
        "sizeGiB": 10,
        "storageType": {"NFS": {"rootSquash": True}},
        "attachments": {"networkIds": [network]},
    }
    return await region.made(STORAGE, "files", spec)


async def _held(region: RegionEnvironment) -> int:
    quotas = f"{ORGANIZATIONS}/{region.organization}/quotas"
    read = expect(await region.identity.client(region.identity.root).get(quotas), 200)
    (used,) = [each["used"] for each in read["quotas"] if each["kind"] == "filestorage"]
    return int(used)


async def test_storage_is_made_resized_and_paid_for(region: RegionEnvironment) -> None:
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    storage = await _made(region, network)
    path = f"{STORAGE}/{storage}"
    read = await region.until(path, "provisioned")
    assert read["status"]["attachments"][0]["mountSource"].startswith("10.0.0.16:/exports/")
    assert await _held(region) == 10 * GIB
    spec = read["spec"] | {"sizeGiB": 12}
    assert expect(await region.root.put(path, {"metadata": {"name": "files"}, "spec": spec}), 202)
    assert await _held(region) == 12 * GIB
    await region.clock.sleep(5.0)
    assert (await region.until(path, "provisioned"))["status"]["usage"]["capacityBytes"] == 12 * GIB
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 403
    assert (await region.root.delete(path)).status == 202
    await region.until_gone(path)
    assert await _held(region) == 0
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
    await region.until_gone(f"/api/v2/networks/{network}")


async def test_storage_goes_with_its_project(region: RegionEnvironment) -> None:
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    storage = await _made(region, network)
    await region.until(f"{STORAGE}/{storage}", "provisioned")
    root = region.identity.client(region.identity.root)
    project = f"{ORGANIZATIONS}/{region.organization}/projects/{region.project}"
    assert (await root.delete(project)).status == 202

    async def is_gone() -> bool:
        return (await root.get(project)).status == 404

    await region.identity.eventually("the project is gone", is_gone)
    assert (await region.store.list(FileStorage)).items == []
    provider = region.north.provider
    assert provider.file_storages is not None
    assert [part async for part in provider.file_storages.storages() if part] == []
