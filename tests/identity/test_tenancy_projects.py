"""Projects and references over HTTP: who sees which, what may be asked of them, and how that is told."""

from typing import Any

import pytest

from remuda.identity.kinds.tenancy import CONTROLLER_FINALIZER, Project
from tests.kit.identity.resource_api import everywhere, member
from tests.kit.identity.tenancy import (
    ABSENT,
    ORGANIZATIONS,
    PLATFORM,
    STRANGE_ORGANIZATION,
    STRANGE_PROJECT,
    TenancyApi,
    administrator,
    forbidden,
    ids,
    made,
    make_group,
    make_organization,
    project,
    rejection,
    service_account,
    stranger,
    system,
)

GROUP = "e0000000-0000-4000-8000-000000000001"
OTHER_GROUP = "e0000000-0000-4000-8000-000000000002"
REFERENCE = "servers.region.unikorn-cloud.org/f0000000-0000-4000-8000-000000000001"
REGION = system("identity:projects R, identity:projects/references CD")


def projects_of(home: str) -> str:
    return f"{ORGANIZATIONS}/{home}/projects"


def reference_at(path: str, reference: str = REFERENCE) -> str:
    return f"{path}/references/{reference.replace('/', '%252F')}"


async def make_project(tenancy: TenancyApi, home: str, *groups: str, name: str = "prod") -> str:
    return await made(tenancy, projects_of(home), project(*groups, name=name))


async def test_a_new_project_is_pending_belongs_to_its_organization_and_is_owned_by_it(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    await make_group(tenancy.store, home, GROUP)
    boss = tenancy.ask(administrator(home))
    reply = await boss.post(projects_of(home), project(GROUP, GROUP))
    assert reply.status == 202
    metadata = reply.json["metadata"]
    assert (metadata["organizationId"], metadata["name"]) == (home, "prod")
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert metadata["createdBy"] == "admin@example.com"
    assert reply.json["spec"] == {"groupIDs": [GROUP]}
    path = f"{projects_of(home)}/{metadata['id']}"
    assert (await boss.get(path)).json == reply.json
    stored = (await tenancy.store.get(Project, metadata["id"])).metadata
    assert [owner.name for owner in stored.owner_references] == [home]
    assert stored.finalizers == (CONTROLLER_FINALIZER,)


async def test_the_same_request_under_its_key_makes_one_project(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    client = tenancy.ask(administrator(home))
    replies = [await client.post(projects_of(home), project(), idempotency_key="once") for _ in range(2)]
    assert replies[0].json == replies[1].json
    assert len(ids(await client.get(projects_of(home)))) == 1


async def test_a_project_takes_the_right_in_the_whole_organization(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    local = member("local@example.com", home, "", **{ABSENT.replace("-", "_"): "identity:projects CRUD"})
    assert rejection(await tenancy.ask(local).post(projects_of(home), project())) == forbidden("create", "projects")
    assert (await tenancy.ask(administrator(home)).post(projects_of(ABSENT), project())).status == 403
    assert (await tenancy.ask(PLATFORM).post(projects_of(ABSENT), project())).status == 404
    assert (await tenancy.ask(None).post(projects_of(home), project())).status == 401


async def test_groups_that_are_not_there_or_somebody_elses_are_refused(tenancy: TenancyApi) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    await make_group(tenancy.store, other, OTHER_GROUP)
    made_before = await make_project(tenancy, home)
    boss = tenancy.ask(administrator(home))
    for group in (ABSENT, OTHER_GROUP, "nonsense", "../groups"):
        why = f"group ID {group} does not exist"
        assert rejection(await boss.post(projects_of(home), project(group))) == (400, why)
        assert rejection(await boss.put(f"{projects_of(home)}/{made_before}", project(group))) == (400, why)
    (there,) = (await boss.get(projects_of(home))).json
    assert there["spec"] == {"groupIDs": []}
    assert (await boss.post(projects_of(home), {"metadata": {"name": "prod"}, "spec": {}})).status == 400


async def test_a_project_is_changed_whole(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    await make_group(tenancy.store, home, GROUP)
    path = f"{projects_of(home)}/{await make_project(tenancy, home, GROUP)}"
    boss = tenancy.ask(administrator(home))
    changed: dict[str, Any] = project(name="renamed")
    changed["metadata"]["description"] = "later"
    reply = await boss.put(path, changed)
    assert (reply.status, reply.body) == (200, b"")
    read = (await boss.get(path)).json
    assert (read["metadata"]["name"], read["metadata"]["description"]) == ("renamed", "later")
    assert read["spec"] == {"groupIDs": []}
    assert (await boss.put(path, project(GROUP))).status == 200
    read = (await boss.get(path)).json
    assert "description" not in read["metadata"]
    assert read["spec"] == {"groupIDs": [GROUP]}


async def test_a_list_shows_the_projects_that_the_caller_may_read(tenancy: TenancyApi) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    there = sorted([await make_project(tenancy, home, name=name) for name in ("a", "b", "c")])
    await make_project(tenancy, other)
    one = {there[1].replace("-", "_"): "identity:projects R"}
    assert ids(await tenancy.ask(PLATFORM).get(projects_of(home))) == there
    assert ids(await tenancy.ask(administrator(home)).get(projects_of(home))) == there
    assert ids(await tenancy.ask(member("user@example.com", home, "", **one)).get(projects_of(home))) == [there[1]]
    assert ids(await tenancy.ask(service_account(home)).get(projects_of(home))) == []
    assert ids(await tenancy.ask(REGION).get(projects_of(home), {"limit": "2"})) == there[:2]


async def test_projects_of_a_foreign_organization_are_forbidden_and_those_of_an_absent_one_not_found(
    tenancy: TenancyApi,
) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    inside = await make_project(tenancy, other)
    for who in (administrator(home), stranger()):
        for name in (other, ABSENT):
            assert rejection(await tenancy.ask(who).get(projects_of(name))) == forbidden(
                "read", "projects", STRANGE_ORGANIZATION
            )
            assert (await tenancy.ask(who).get(f"{projects_of(name)}/{inside}")).status == 403
    assert (await tenancy.ask(PLATFORM).get(projects_of(ABSENT))).status == 404
    assert (await tenancy.ask(PLATFORM).get(f"{projects_of(ABSENT)}/{inside}")).status == 404
    assert (await tenancy.ask(None).get(projects_of(home))).status == 401


async def test_a_project_of_another_organization_is_not_found_in_ones_own(tenancy: TenancyApi) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    foreign = f"{projects_of(home)}/{await make_project(tenancy, other)}"
    boss = tenancy.ask(administrator(home))
    assert rejection(await boss.get(foreign)) == (404, "resource not found")
    assert (await boss.put(foreign, project())).status == 404
    assert (await boss.delete(foreign)).status == 404


async def test_what_may_be_done_to_a_project_is_asked_in_that_project(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    mine, other = await make_project(tenancy, home), await make_project(tenancy, home)
    one = {mine.replace("-", "_"): "identity:projects RU"}
    me = tenancy.ask(member("me@example.com", home, "", **one))
    path = f"{projects_of(home)}/{mine}"
    assert (await me.get(path)).status == 200
    assert (await me.put(path, project())).status == 200
    assert rejection(await me.delete(path)) == forbidden("delete", "projects")
    assert rejection(await me.get(f"{projects_of(home)}/{other}")) == forbidden("read", "projects", STRANGE_PROJECT)


async def test_a_write_to_a_state_that_nobody_has_seen_is_refused(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    path = f"{projects_of(home)}/{await make_project(tenancy, home)}"
    boss = tenancy.ask(administrator(home))
    seen = (await boss.get(path)).headers["etag"]
    assert (await boss.put(path, project(name="new"), if_match=seen)).status == 200
    assert (await boss.put(path, project(name="newer"), if_match=seen)).status == 412
    assert (await boss.delete(path, if_match=seen)).status == 412
    assert (await tenancy.ask(REGION).put(reference_at(path))).status == 201
    now = (await boss.get(path)).headers["etag"]
    assert (await boss.delete(path, if_match=now)).status == 202


async def test_nothing_is_made_in_an_organization_that_goes(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    kept = await make_project(tenancy, home)
    assert (await tenancy.ask(PLATFORM).delete(f"{ORGANIZATIONS}/{home}")).status == 202
    assert (await tenancy.ask(administrator(home)).post(projects_of(home), project())).status == 409
    reply = await tenancy.ask(administrator(home)).get(f"{projects_of(home)}/{kept}")
    assert reply.json["metadata"]["provisioningStatus"] == "deprovisioning"


# References.


async def test_a_reference_is_put_and_taken_away_as_often_as_one_likes(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    name = await make_project(tenancy, home)
    region, path = tenancy.ask(REGION), reference_at(f"{projects_of(home)}/{name}")
    for _ in range(2):
        reply = await region.put(path)
        assert (reply.status, reply.body) == (201, b"")
        assert (await tenancy.store.get(Project, name)).metadata.finalizers == (CONTROLLER_FINALIZER, REFERENCE)
    for _ in range(2):
        reply = await region.delete(path)
        assert (reply.status, reply.body) == (204, b"")
        assert (await tenancy.store.get(Project, name)).metadata.finalizers == (CONTROLLER_FINALIZER,)


async def test_references_are_for_those_who_have_the_right_and_for_projects_that_are_there(
    tenancy: TenancyApi,
) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    path = reference_at(f"{projects_of(home)}/{await make_project(tenancy, home)}")
    boss = tenancy.ask(administrator(home))
    assert rejection(await boss.put(path)) == forbidden("create", "projects/references", STRANGE_PROJECT)
    assert rejection(await boss.delete(path)) == forbidden("delete", "projects/references", STRANGE_PROJECT)
    foreign = reference_at(f"{projects_of(home)}/{await make_project(tenancy, other)}")
    absent = reference_at(f"{projects_of(home)}/{ABSENT}")
    for place in (foreign, absent):
        assert (await tenancy.ask(REGION).put(place)).status == 404
        assert (await tenancy.ask(REGION).delete(place)).status == 404
    assert (await tenancy.ask(None).put(path)).status == 401


@pytest.mark.parametrize(
    "reference",
    [
        CONTROLLER_FINALIZER,
        "foregroundDeletion",
        "remuda/in-use",
        "unikorn",
        "servers/one",
        "servers.region.unikorn-cloud.org/",
        "servers.region.unikorn-cloud.org/not a name",
        "Servers!.region/one",
        f"servers.region.unikorn-cloud.org/{'x' * 64}",
    ],
)
async def test_what_is_no_reference_of_another_services_is_refused(tenancy: TenancyApi, reference: str) -> None:
    home = await make_organization(tenancy)
    name = await make_project(tenancy, home)
    path = reference_at(f"{projects_of(home)}/{name}", reference.replace(" ", "%2520"))
    assert (await tenancy.ask(REGION).put(path)).status == 422
    assert (await tenancy.ask(REGION).delete(path)).status == 422
    assert (await tenancy.store.get(Project, name)).metadata.finalizers == (CONTROLLER_FINALIZER,)


async def test_a_project_that_goes_takes_no_new_reference_and_releases_an_old_one(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    path = f"{projects_of(home)}/{await make_project(tenancy, home)}"
    region = tenancy.ask(REGION)
    assert (await region.put(reference_at(path))).status == 201
    for _ in range(2):
        reply = await tenancy.ask(administrator(home)).delete(path)
        assert (reply.status, reply.body) == (202, b"")
    other = reference_at(path, "networks.region.unikorn-cloud.org/one")
    status, why = rejection(await region.put(other))
    assert status == 400
    assert "being deleted" in why
    assert (await region.delete(other)).status == 204
    assert (await region.delete(reference_at(path))).status == 204


async def test_a_right_everywhere_to_something_else_shows_no_projects(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    reader = everywhere("reader@example.com", "identity:organizations R")
    assert (await tenancy.ask(reader).get(projects_of(home))).status == 403
