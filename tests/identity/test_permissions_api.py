"""What callers are told about roles and permissions."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import AccessList, OrganizationAccess, Principal
from remuda.identity.kinds.tokens import Revocation, RevocationSpec
from remuda.identity.kinds.users import Role, RoleSpec
from remuda.identity.rbac import routes as api
from remuda.identity.rbac.roles import BUILT_IN, permissions_of, role_id, seed_roles
from remuda.identity.rbac.schema import AclRead, access_of, read_acl
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import IdentitySettings
from remuda.resources.conventions import NAME
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.identity.resource_api import (
    ORG,
    OTHER_ORG,
    PROJECT,
    IdentityApi,
    everywhere,
    member,
    permission_set,
    run_identity_api,
)
from tests.kit.simulation.runner import World

OURS = IdentityApi[Permissions]
ROLES = f"/api/v1/organizations/{ORG}/roles"


def permission_service(_world: World, store: SqliteStore) -> Permissions:
    return Permissions(store=store, settings=IdentitySettings())


def run_permissions_api(test: Callable[[OURS], Coroutine[Any, Any, None]]) -> None:
    run_identity_api(permission_service, api.ROUTES, test)


permissions_api = provided_by(run_permissions_api)


def full(name: str) -> Principal:
    """Return whoever has a built-in role in the organization."""
    held = permissions_of(BUILT_IN[name])
    inside = OrganizationAccess(held.organization, {PROJECT: held.project})
    return Principal(subject=f"{name}@example.com", type="user", access=AccessList(held.everywhere, {ORG: inside}))


async def test_the_roles_that_groups_can_have_are_listed_by_name_with_what_the_caller_may_give(
    permissions_api: OURS,
) -> None:
    await seed_roles(permissions_api.store)
    nameless = Role(metadata=Metadata(name=role_id("nameless")), spec=RoleSpec())
    own = Role(metadata=Metadata(name=role_id("bouncer"), labels={NAME: "bouncer"}), spec=RoleSpec())
    for role in (nameless, own):
        await permissions_api.store.create(role)
    for name, grantable in [("administrator", "aabru"), ("auditor", "abr")]:
        reply = await permissions_api.ask(full(name)).get(ROLES)
        assert [role["metadata"]["name"] for role in reply.json] == [
            "administrator",
            "auditor",
            "bouncer",
            "reader",
            "user",
        ]
        given = [role["metadata"]["name"] for role in reply.json if role["grantable"]]
        assert "".join(each[0] for each in given) == grantable
    first = reply.json[0]
    assert set(first) == {"metadata", "grantable"}
    assert first["metadata"]["id"] == role_id("administrator")
    assert first["metadata"]["provisioningStatus"] == "provisioned"


@pytest.mark.parametrize(
    ("who", "status"),
    [
        (None, 401),
        (member("ann@example.com", OTHER_ORG, "identity:roles R"), 403),
        (member("ann@example.com", ORG, "identity:groups R"), 403),
        (member("ann@example.com", ORG, "identity:roles CUD"), 403),
        (member("ann@example.com", ORG, "identity:roles R"), 200),
        (everywhere("ann@example.com", "identity:roles R"), 200),
    ],
)
async def test_listing_roles_needs_the_right_to(permissions_api: OURS, who: Principal | None, status: int) -> None:
    assert (await permissions_api.ask(who).get(ROLES)).status == status


ANN = replace(
    member("ann@example.com", ORG, "b:b RC, a:a R", **{PROJECT.replace("-", "_"): "c:c DU"}),
    access=AccessList(
        organizations={
            OTHER_ORG: OrganizationAccess(),
            ORG: OrganizationAccess(permission_set("b:b RC, a:a R"), {PROJECT: permission_set("c:c DU")}),
        }
    ),
)
IN_ORG = [{"name": "a:a", "operations": ["read"]}, {"name": "b:b", "operations": ["create", "read"]}]
IN_PROJECT = [{"id": PROJECT, "endpoints": [{"name": "c:c", "operations": ["delete", "update"]}]}]
UNSCOPED = {"organizations": [{"id": ORG, "endpoints": IN_ORG, "projects": IN_PROJECT}, {"id": OTHER_ORG}]}
STRANGE_ORG = "c0000000-0000-4000-8000-000000000003"


async def test_callers_are_told_what_they_may_do_and_nothing_that_is_empty(permissions_api: OURS) -> None:
    ask = permissions_api.ask(ANN)
    assert (await ask.get("/api/v1/acl")).json == UNSCOPED
    scoped = {"organization": {"id": ORG, "endpoints": IN_ORG}, "projects": IN_PROJECT}
    assert (await ask.get(f"/api/v1/organizations/{ORG}/acl")).json == UNSCOPED | scoped
    bare = {"organization": {"id": OTHER_ORG}}
    assert (await ask.get(f"/api/v1/organizations/{OTHER_ORG}/acl")).json == UNSCOPED | bare
    reply = await ask.get(f"/api/v1/organizations/{STRANGE_ORG}/acl")
    assert (reply.status, reply.json) == (200, UNSCOPED), "a foreign organization is no fault, and adds nothing"


async def test_whoever_has_permissions_everywhere_is_told_those_alone(permissions_api: OURS) -> None:
    told = {"global": [{"name": "a:a", "operations": ["read"]}]}
    for path in ("/api/v1/acl", f"/api/v1/organizations/{ORG}/acl"):
        assert (await permissions_api.ask(everywhere("ann@example.com", "a:a R")).get(path)).json == told
        assert (await permissions_api.ask(everywhere("bob@example.com", "")).get(path)).json == {}
        assert (await permissions_api.ask(None).get(path)).status == 401


async def test_an_id_that_is_none_is_told_before_anybody_is_asked_for(permissions_api: OURS) -> None:
    for path in ("acl", "roles"):
        assert (await permissions_api.ask(None).get(f"/api/v1/organizations/nonsense/{path}")).status == 400


@pytest.mark.parametrize("access", [ANN.access, AccessList(permission_set("a:a RU")), AccessList()])
def test_an_access_list_comes_back_from_the_wire_as_it_was(access: AccessList) -> None:
    assert access_of(read_acl(access)) == access
    assert access_of(AclRead()) == AccessList()


SERVICES = ["region-service", "kubernetes-service", "compute-service", "storage-service", "platform-administrator"]


async def test_services_read_what_is_revoked_and_no_user_of_an_organization_does(permissions_api: OURS) -> None:
    gone, ends = "c1000000-0000-4000-8000-000000000001", permissions_api.world.clock.now() + timedelta(hours=1)
    spec = RevocationSpec(revoked=gone, expires=ends)
    await permissions_api.store.create(Revocation(metadata=Metadata(name=gone), spec=spec))
    for name in SERVICES:
        told = (await permissions_api.ask(full(name)).get("/api/v1/revocations")).json
        assert told == [{"id": gone, "expires": ends.isoformat().replace("+00:00", "Z")}]
    for name in ("administrator", "auditor", "user", "reader"):
        assert (await permissions_api.ask(full(name)).get("/api/v1/revocations")).status == 403


async def test_what_is_revoked_can_be_watched(permissions_api: OURS) -> None:
    async with permissions_api.ask(full("region-service")).stream("/api/v1/revocations", {"watch": "true"}) as stream:
        assert (await stream.head()).status == 200
        chunks = stream.chunks()
        assert b"synced" in await anext(chunks)
        gone = "c1000000-0000-4000-8000-000000000001"
        spec = RevocationSpec(revoked=gone, expires=permissions_api.world.clock.now())
        await permissions_api.store.create(Revocation(metadata=Metadata(name=gone), spec=spec))
        assert gone.encode() in await anext(chunks)


def test_no_role_of_a_group_holds_the_right_that_services_follow_revocations_by() -> None:
    for spec in BUILT_IN.values():
        held = permissions_of(spec)
        assert (api.REVOCATIONS.permission in held.everywhere) == spec.protected
        assert api.REVOCATIONS.permission not in held.organization | held.project
