"""File storage, as the Terraform provider has it."""

from itertools import permutations

import pytest

from remuda.providers.contract.common import storage_name
from remuda.region.kinds.filestorage import FileStorage
from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.examples import file_storage
from tests.kit.compatibility.provider import DiagnosticError
from tests.kit.compatibility.resources import FILE_STORAGE, NETWORK

DAILY = {"name": "daily", "schedule": {"interval": "daily", "timeOfDay": "03:00Z"}, "retention": {"keep": 7}}
HOURLY = {"name": "hourly", "schedule": {"interval": "hourly"}, "retention": {"keep": 24}}
MONTHLY = {
    "name": "monthly",
    "schedule": {"interval": "monthly", "timeOfDay": "05:00Z", "dayOfMonth": 28},
    "retention": {"keep": 12},
}
WEEKLY = {
    "name": "weekly",
    "schedule": {"interval": "weekly", "timeOfDay": "04:30Z", "dayOfWeek": "sunday"},
    "retention": {"keep": 4},
}


async def test_file_storage_is_made_read_changed_imported_and_destroyed(environment: CompatibilityEnvironment) -> None:
    terraform = environment.provider
    networks = [await environment.network(name) for name in ("second", "first")]
    config = await file_storage(environment, networks=networks, description=None, tags=None)
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


async def test_policies_that_are_not_sent_stay_and_an_empty_list_takes_them_away(
    environment: CompatibilityEnvironment,
) -> None:
    terraform = environment.provider
    config = await file_storage(environment)
    made = await terraform.create(FILE_STORAGE, {**config, "snapshot_policies": [DAILY, WEEKLY]})
    kept = await terraform.update(FILE_STORAGE, made, config)
    assert kept["snapshot_policies"] == [DAILY, WEEKLY]
    await terraform.update(FILE_STORAGE, kept, {**config, "snapshot_policies": []})


async def test_a_network_with_storage_on_it_is_in_use(environment: CompatibilityEnvironment) -> None:
    network = await environment.network()
    await environment.provider.create(FILE_STORAGE, await file_storage(environment, networks=[network]))
    with pytest.raises(DiagnosticError, match="status code 403, code: forbidden, message: network is in use"):
        await environment.provider.destroy(NETWORK, network)


async def test_networks_are_attached_in_the_order_in_which_they_are_given(
    environment: CompatibilityEnvironment,
) -> None:
    networks = [await environment.network(name) for name in ("first", "second", "third")]
    config = await file_storage(environment, networks=networks)
    state = await environment.provider.create(FILE_STORAGE, config)
    for order in permutations(networks):
        state = await environment.provider.update(FILE_STORAGE, state, {**config, "networks": [*order]})
        await environment.provider.until_ready(FILE_STORAGE, state["id"])
        read = await environment.provider.refresh(FILE_STORAGE, state["id"])
        assert read is not None
        assert read["networks"] == [*order]


async def test_every_sort_of_policy_comes_back_as_it_was_sent_and_needs_no_network(
    environment: CompatibilityEnvironment,
) -> None:
    config = await file_storage(environment, networks=None, snapshot_policies=[DAILY, HOURLY, MONTHLY, WEEKLY])
    made = await environment.provider.create(FILE_STORAGE, config)
    await environment.provider.update(FILE_STORAGE, made, {**config, "snapshot_policies": [HOURLY, MONTHLY]})


async def test_snapshots_that_are_not_protected_stay_so_while_nobody_says_otherwise(
    environment: CompatibilityEnvironment,
) -> None:
    config = await file_storage(environment)
    made = await environment.provider.create(FILE_STORAGE, {**config, "snapshot_protection": False})
    changed = await environment.provider.update(FILE_STORAGE, made, {**config, "capacity": 20})
    assert changed["snapshot_protection"] is False


async def test_the_size_is_what_is_on_it_in_whole_gibibytes(environment: CompatibilityEnvironment) -> None:
    made = await environment.provider.create(FILE_STORAGE, await file_storage(environment))
    stored = await environment.compute.store.get(FileStorage, made["id"])
    environment.compute.region.north.operator.fill(storage_name(stored.name, stored.uid), 4 * 2**30 - 1)
    await environment.compute.clock.sleep(10)
    assert await environment.provider.refresh(FILE_STORAGE, made["id"]) == {**made, "size": 3}
