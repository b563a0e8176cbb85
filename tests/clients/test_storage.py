"""File storage, as the Terraform provider has it."""

from typing import Any

import pytest

from tests.clients.ground import Ground, apply
from tests.clients.provider import DiagnosticError
from tests.clients.resources import FILE_STORAGE, NETWORK
from tests.region.house import NORTH

DAILY = {"name": "daily", "schedule": {"interval": "daily", "timeOfDay": "03:00Z"}, "retention": {"keep": 7}}
WEEKLY = {
    "name": "weekly",
    "schedule": {"interval": "weekly", "timeOfDay": "04:30Z", "dayOfWeek": "sunday"},
    "retention": {"keep": 4},
}


async def _config(ground: Ground, **more: Any) -> dict[str, Any]:
    classes = (await ground.provider.clients["region"].get("/api/v2/filestorageclasses", {"regionID": NORTH})).json
    chosen = {"region_id": NORTH, "storage_class_id": classes[0]["metadata"]["id"]}
    return {"name": "files", **ground.where, **chosen, "capacity": 10, "root_squash": True, **more}


def test_file_storage_is_made_read_changed_imported_and_destroyed() -> None:
    async def scenario(ground: Ground) -> None:
        terraform = ground.provider
        networks = [await ground.network(name) for name in ("second", "first")]
        config = await _config(ground, networks=networks, description=None, tags=None)
        made = await terraform.create(FILE_STORAGE, config)
        assert made["snapshot_protection"] is True, "unless it is said otherwise"
        assert all(made["mount_sources"])
        imported = await terraform.refresh(FILE_STORAGE, made["id"])
        assert imported == made
        config |= {"capacity": 20, "root_squash": False, "networks": networks[:1], "tags": {"a": "b"}}
        changed = await terraform.update(FILE_STORAGE, made, {**config, "snapshot_protection": False})
        assert changed["size"] == 0
        await terraform.destroy(FILE_STORAGE, made["id"])
        assert await terraform.refresh(FILE_STORAGE, made["id"]) is None
        for network in networks:
            await terraform.destroy(NETWORK, network)

    apply(scenario)


def test_policies_that_are_not_sent_stay_and_an_empty_list_takes_them_away() -> None:
    async def scenario(ground: Ground) -> None:
        terraform = ground.provider
        config = await _config(ground)
        made = await terraform.create(FILE_STORAGE, {**config, "snapshot_policies": [DAILY, WEEKLY]})
        kept = await terraform.update(FILE_STORAGE, made, config)
        assert kept["snapshot_policies"] == [DAILY, WEEKLY]
        await terraform.update(FILE_STORAGE, kept, {**config, "snapshot_policies": []})

    apply(scenario)


def test_a_network_with_storage_on_it_is_in_use() -> None:
    async def scenario(ground: Ground) -> None:
        network = await ground.network()
        await ground.provider.create(FILE_STORAGE, await _config(ground, networks=[network]))
        with pytest.raises(DiagnosticError, match="status code 403, code: forbidden, message: network is in use"):
            await ground.provider.destroy(NETWORK, network)

    apply(scenario)
