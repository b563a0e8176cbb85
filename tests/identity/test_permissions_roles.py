"""The built-in roles: the whole table once more, written down from what existing installations ship."""

import asyncio

import pytest
from msgspec.structs import replace

from remuda.identity.kinds.users import Grant, Role, RoleScopes
from remuda.identity.rbac.roles import BUILT_IN, permissions_of, role_id, seed_roles
from remuda.resources.conventions import NAME
from tests.kit.environment import options
from tests.kit.identity.builtin_roles import EXPECTED
from tests.kit.identity.permissions import PermissionEnvironment
from tests.kit.identity.resource_api import registry
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated

IDS = {
    "administrator": "f194d170-6ed1-4408-85e0-2d672777019f",
    "auditor": "f5a62ce3-fa7f-4d86-8f00-09389ccd8152",
    "user": "f4f8996d-a763-47a9-89b1-028ee3007569",
    "reader": "fd094196-4aa3-4bdc-800c-cef58b1bb399",
    "platform-administrator": "f45f71d5-8630-4676-81e3-c1cd469d0ec0",
    "platform-reader": "f49d3758-1c75-4e55-8ad3-b822c4e2684b",
    "region-service": "fc857570-bfa5-4892-82fe-8e3ba41e348d",
    "kubernetes-service": "f3e16437-79c8-40b5-8ebd-461f701ce37a",
    "compute-service": "f89dd939-ec33-4496-8c48-3fb50dc950de",
    "storage-service": "fb6ea710-6e20-43c9-8aaf-e38c2e07a5a9",
}
PROTECTED = {name for name in IDS if name.startswith("platform-") or name.endswith("-service")}


@pytest.mark.parametrize("name", IDS)
def test_a_built_in_role_is_what_existing_installations_know(name: str) -> None:
    assert role_id(name) == IDS[name]
    assert permissions_of(BUILT_IN[name]) == EXPECTED[name]
    assert BUILT_IN[name].protected == (name in PROTECTED)


def test_there_are_no_other_built_in_roles_and_none_names_an_endpoint_twice() -> None:
    assert set(BUILT_IN) == set(IDS)
    for spec in BUILT_IN.values():
        for block in (spec.scopes.everywhere, spec.scopes.organization, spec.scopes.project):
            names = [grant.name for grant in block]
            assert len(names) == len(set(names))


def test_a_platform_reader_reads_32_endpoints() -> None:
    assert len(EXPECTED["platform-reader"].everywhere) == 32


async def test_every_role_is_stored_under_its_name(permissions: PermissionEnvironment) -> None:
    stored = (await permissions.store.list(Role)).items
    assert {role.name: role.metadata.labels[NAME] for role in stored} == {IDS[name]: name for name in IDS}
    assert all(role.spec == BUILT_IN[role.metadata.labels[NAME]] for role in stored)


async def test_a_second_start_writes_nothing(permissions: PermissionEnvironment) -> None:
    before = permissions.store.change_counter([Role])
    await seed_roles(permissions.store)
    assert permissions.store.change_counter([Role]) == before


async def test_a_role_that_is_not_what_this_release_says_is_repaired_and_an_operators_own_stays(
    permissions: PermissionEnvironment,
) -> None:
    own = await permissions.role("night-watch", RoleScopes(organization=(Grant(name="a:b", operations=("read",)),)))
    reader = await permissions.store.get(Role, IDS["reader"])
    widened = RoleScopes(everywhere=(Grant(name="identity:users", operations=("delete",)),))
    metadata = replace(reader.metadata, labels={NAME: "writer", "colour": "red"})
    await permissions.store.update(replace(reader, metadata=metadata, spec=replace(reader.spec, scopes=widened)))
    await permissions.remove(Role, IDS["auditor"])

    await seed_roles(permissions.store)

    repaired = await permissions.store.get(Role, IDS["reader"])
    assert repaired.spec == BUILT_IN["reader"]
    assert repaired.metadata.labels == {NAME: "reader", "colour": "red"}
    assert (await permissions.store.get(Role, IDS["auditor"])).spec == BUILT_IN["auditor"]
    assert await permissions.store.get(Role, own.name) == own


@options(seeds=5)
async def test_several_processes_may_start_at_once(world: World) -> None:
    store = open_simulated(world, registry())
    try:
        await asyncio.gather(*(seed_roles(store) for _ in range(4)))
        stored = (await store.list(Role)).items
        assert sorted(role.metadata.labels[NAME] for role in stored) == sorted(IDS)
        assert {role.metadata.generation for role in stored} == {1}
    finally:
        await store.close()
