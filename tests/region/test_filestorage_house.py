"""File storage in the whole of region, with identity beside it and a simulated cloud behind it."""

from remuda.region.kinds.common import GIB
from remuda.region.kinds.filestorage import FileStorage
from tests.identity.household import ORGANIZATIONS, told
from tests.region.house import NORTH, RegionHouse, in_a_region

STORAGE = "/api/v2/filestorage"


async def _made(house: RegionHouse, network: str) -> str:
    classes = told(await house.root.get("/api/v2/filestorageclasses", [("regionID", NORTH)]), 200)
    spec = {
        "organizationId": house.organization,
        "projectId": house.project,
        "regionId": NORTH,
        "storageClassId": classes[0]["metadata"]["id"],
        "sizeGiB": 10,
        "storageType": {"NFS": {"rootSquash": True}},
        "attachments": {"networkIds": [network]},
    }
    return await house.made(STORAGE, "files", spec)


async def _held(house: RegionHouse) -> int:
    quotas = f"{ORGANIZATIONS}/{house.organization}/quotas"
    read = told(await house.identity.client(house.identity.root).get(quotas), 200)
    (used,) = [each["used"] for each in read["quotas"] if each["kind"] == "filestorage"]
    return int(used)


def test_storage_is_made_resized_and_paid_for() -> None:
    async def scenario(house: RegionHouse) -> None:
        network = await house.network()
        await house.until(f"/api/v2/networks/{network}", "provisioned")
        storage = await _made(house, network)
        path = f"{STORAGE}/{storage}"
        read = await house.until(path, "provisioned")
        assert read["status"]["attachments"][0]["mountSource"].startswith("10.0.0.16:/exports/")
        assert await _held(house) == 10 * GIB
        spec = read["spec"] | {"sizeGiB": 12}
        assert told(await house.root.put(path, {"metadata": {"name": "files"}, "spec": spec}), 202)
        assert await _held(house) == 12 * GIB
        await house.clock.sleep(5.0)
        assert (await house.until(path, "provisioned"))["status"]["usage"]["capacityBytes"] == 12 * GIB
        assert (await house.root.delete(f"/api/v2/networks/{network}")).status == 403
        assert (await house.root.delete(path)).status == 202
        await house.until_gone(path)
        assert await _held(house) == 0
        assert (await house.root.delete(f"/api/v2/networks/{network}")).status == 202
        await house.until_gone(f"/api/v2/networks/{network}")

    in_a_region(scenario)


def test_storage_goes_with_its_project() -> None:
    async def scenario(house: RegionHouse) -> None:
        network = await house.network()
        await house.until(f"/api/v2/networks/{network}", "provisioned")
        storage = await _made(house, network)
        await house.until(f"{STORAGE}/{storage}", "provisioned")
        root = house.identity.client(house.identity.root)
        project = f"{ORGANIZATIONS}/{house.organization}/projects/{house.project}"
        assert (await root.delete(project)).status == 202

        async def is_gone() -> bool:
            return (await root.get(project)).status == 404

        await house.identity.eventually("the project is gone", is_gone)
        assert (await house.store.list(FileStorage)).items == []
        provider = house.north.provider
        assert provider.file_storages is not None
        assert [part async for part in provider.file_storages.storages() if part] == []

    in_a_region(scenario)
