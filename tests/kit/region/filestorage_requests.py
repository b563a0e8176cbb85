"""What is asked about file storage, and by whom."""

from typing import Any

from msgspec.structs import replace

from remuda.region.filestorage.classes import class_id
from remuda.region.filestorage.routes import FILE_STORAGE
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.networks import Network
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, REGION, member
from tests.kit.region.storage import TENANT, StorageEnvironment

STANDARD = class_id(REGION, "c1f0c0de-0001-4000-8000-000000000001")
"""The class of the simulated cloud that has four addresses on each network."""
FAST = class_id(REGION, "c1f0c0de-0002-4000-8000-000000000002")
"""The one that has eight."""
ALL = "region:filestorage:v2 CRUD"
STRANGER = member("eve@example.com", OTHER_ORG, ALL)
READER = member("bob@example.com", ORG, "region:filestorage:v2 R")
NOBODY = member("ned@example.com", ORG)
INSIDER = member("pat@example.com", ORG, "", a0000000_0000_4000_8000_00000000000a=ALL)
OUTSIDE = " — project is not in this principal's accessible set"


def policy(name: str = "nightly", keep: int = 3, **schedule: Any) -> dict[str, Any]:
    given = schedule or {"interval": "daily", "timeOfDay": "23:30Z"}
    return {"name": name, "schedule": given, "retention": {"keep": keep}}


def wanted(*networks: str, **spec: Any) -> dict[str, Any]:
    """Return file storage as it is asked for; a field that is `...` is left out."""
    fields = {
        "organizationId": ORG,
        "projectId": PROJECT,
        "regionId": REGION,
        "storageClassId": STANDARD,
        "sizeGiB": 10,
        "storageType": {},
        "attachments": {"networkIds": list(networks)} if networks else ...,
    } | spec
    return {"metadata": {"name": "files"}, "spec": {name: each for name, each in fields.items() if each is not ...}}


def update(*networks: str, **spec: Any) -> dict[str, Any]:
    fields = {"sizeGiB": 10, "storageType": {}, "attachments": {"networkIds": list(networks)} if networks else ...}
    given = {name: each for name, each in (fields | spec).items() if each is not ...}
    return {"metadata": {"name": "files"}, "spec": given}


def forbidden(verb: str, why: str = OUTSIDE, endpoint: str = "filestorage:v2") -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint 'region:{endpoint}'{why}"


async def nothing_was_made(region_storage: StorageEnvironment) -> None:
    assert not (await region_storage.store.list(FileStorage)).items
    ours = "filestorages"
    assert not [held for held in region_storage.identity.held.values() if held.kind.startswith(ours)]
    assert not [name for each in region_storage.identity.references.values() for name in each if name.startswith(ours)]


async def read(region_storage: StorageEnvironment, storage: str) -> Any:
    reply = await region_storage.storages.ask(TENANT).get(f"{FILE_STORAGE}/{storage}")
    assert reply.status == 200, reply
    return reply.json


async def spoil(region_storage: StorageEnvironment, network: str, **at_cloud: Any) -> None:
    """Have a network say something else about what it has at the cloud; nothing at all, if nothing is said."""
    found = await region_storage.store.get(Network, network)
    assert found.status.openstack is not None
    changed = replace(found.status.openstack, **at_cloud) if at_cloud else None
    await region_storage.store.update_status(replace(found, status=replace(found.status, openstack=changed)))
