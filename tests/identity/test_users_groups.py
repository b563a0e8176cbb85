"""Groups, over HTTP."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.tenancy import Project
from remuda.identity.kinds.users import Group
from remuda.identity.rbac.roles import role_id
from tests.kit.asgi.client import Client
from tests.kit.environment import options
from tests.kit.identity.resource_api import ORG, OTHER_ORG, PROJECT, IdentityApi, member
from tests.kit.identity.users import (
    ACCOUNTS,
    ADMINISTRATOR,
    CLERK,
    GLOBAL,
    GROUPS,
    NOWHERE,
    READER,
    SETTINGS,
    USERS,
    UserServices,
    administrator,
    crew,
    make_group,
    rejection,
    robot,
    tidying,
    told,
    user,
)

OURS = SETTINGS.issuer


async def make_user(clerk: Client, subject: str) -> str:
    """Make a user, and return its id in the organization."""
    made = told(await clerk.post(USERS, user(subject)), 201)["metadata"]["id"]
    assert isinstance(made, str)
    return made


async def test_m27_a_group_reads_as_it_was_written_with_both_ways_to_name_its_users(
    users_api: IdentityApi[UserServices],
) -> None:
    admin = users_api.ask(await administrator(users_api.store))
    ann, bob = await make_user(admin, "ann@example.com"), await make_user(admin, "bob@example.com")
    robby = told(await admin.post(ACCOUNTS, robot()), 201)["metadata"]["id"]
    body = crew(READER, READER, accounts=(robby, robby), userIDs=[bob, ann, bob])
    made = told(await admin.post(GROUPS, body), 201)
    assert made["spec"] == {
        "roleIDs": [READER],
        "serviceAccountIDs": [robby],
        "userIDs": [bob, ann],
        "subjects": [
            {"id": "bob@example.com", "issuer": OURS, "email": "bob@example.com"},
            {"id": "ann@example.com", "issuer": OURS, "email": "ann@example.com"},
        ],
    }
    assert made["metadata"]["organizationId"] == ORG
    reply = await admin.get(f"{GROUPS}/{made['metadata']['id']}")
    assert told(reply, 200) == made
    assert reply.headers["etag"]
    empty = told(await admin.post(GROUPS, crew()), 201)
    assert empty["spec"] == {"roleIDs": [], "serviceAccountIDs": [], "userIDs": [], "subjects": []}
    ids = sorted([made["metadata"]["id"], empty["metadata"]["id"]])
    assert [each["metadata"]["id"] for each in told(await admin.get(GROUPS), 200)] == ids
    assert len(told(await admin.get(GROUPS, {"limit": "1"}), 200)) == 1


@pytest.mark.parametrize("issuer", [LOCAL_ISSUER, OURS])
async def test_subjects_of_ours_are_users_and_others_are_kept_as_they_are(
    users_api: IdentityApi[UserServices], issuer: str
) -> None:
    clerk = users_api.ask(CLERK)
    ann = await make_user(clerk, "ann@example.com")
    outsider = {"id": "auth0|1", "issuer": "https://other.example.com", "email": "out@other.example.com"}
    subjects = [{"id": "Ann@Example.com", "issuer": issuer}, outsider, outsider]
    made = told(await clerk.post(GROUPS, crew(subjects=subjects)), 201)
    assert made["spec"]["userIDs"] == [ann]
    assert made["spec"]["subjects"] == [
        {"id": "ann@example.com", "issuer": OURS, "email": "ann@example.com"},
        outsider,
    ]
    listed = told(await clerk.get(USERS), 200)
    assert [each["spec"]["groupIDs"] for each in listed] == [[made["metadata"]["id"]]]


@pytest.mark.parametrize("issuer", ["", " ", f"{OURS}/", "https://other.example.com"])
async def test_a_subject_of_another_issuer_comes_back_as_it_was_written_and_is_no_member(
    users_api: IdentityApi[UserServices], issuer: str
) -> None:
    clerk = users_api.ask(CLERK)
    ann = await make_user(clerk, "ann@example.com")
    outsiders = [{"id": name, "issuer": issuer, "email": "x"} for name in ("ann@example.com", " Not An Address")]
    path = f"{GROUPS}/{told(await clerk.post(GROUPS, crew(subjects=outsiders)), 201)['metadata']['id']}"
    written = told(await clerk.get(path), 200)["spec"]
    assert (written["subjects"], written["userIDs"]) == (outsiders, [])
    assert told(await clerk.get(f"{USERS}"), 200)[0]["spec"]["groupIDs"] == []
    ours = {"id": "ann@example.com", "issuer": OURS, "email": "ann@example.com"}
    told(await clerk.put(path, crew(subjects=[outsiders[1], ours, outsiders[0]])), 200)
    both = told(await clerk.get(path), 200)["spec"]
    assert (both["subjects"], both["userIDs"]) == ([outsiders[1], ours, outsiders[0]], [ann])
    told(await clerk.delete(f"{USERS}/{ann}"), 200)
    async with tidying(users_api) as tidied:
        await tidied()
    left = told(await clerk.get(path), 200)["spec"]
    assert (left["subjects"], left["userIDs"]) == ([outsiders[1], outsiders[0]], [])


async def test_what_was_read_can_be_written_back_and_both_ways_may_be_used_if_they_agree(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    ann, bob = await make_user(clerk, "ann@example.com"), await make_user(clerk, "bob@example.com")
    outsider = {"id": "x", "issuer": "https://other.example.com"}
    subjects = [{"id": "ann@example.com", "issuer": OURS}, outsider]
    made = told(await clerk.post(GROUPS, crew(subjects=subjects)), 201)
    path = f"{GROUPS}/{made['metadata']['id']}"
    reply = await clerk.put(path, made)
    assert (reply.status, reply.body) == (200, b"")
    assert told(await clerk.get(path), 200)["spec"] == made["spec"]
    for users in ([bob], [ann, bob]):
        body = crew(userIDs=users, subjects=subjects)
        assert rejection(await clerk.put(path, body), 400) == "cannot provide both subjects and userIDs"
    assert told(await clerk.get(path), 200)["spec"] == made["spec"]
    told(await clerk.put(path, crew(userIDs=[bob], subjects=[])), 200)
    assert told(await clerk.get(path), 200)["spec"]["userIDs"] == [bob]
    told(await clerk.put(path, crew()), 200)
    assert told(await clerk.get(path), 200)["spec"] == crew(userIDs=[], subjects=[])["spec"] | {
        "roleIDs": [],
        "serviceAccountIDs": [],
    }


async def test_whoever_is_not_there_is_refused(users_api: IdentityApi[UserServices]) -> None:
    clerk, root = users_api.ask(CLERK), users_api.ask(GLOBAL)
    foreign = f"/api/v1/organizations/{OTHER_ORG}"
    theirs = told(await root.post(f"{foreign}/users", user("eve@example.com")), 201)["metadata"]["id"]
    robby = told(await root.post(f"{foreign}/serviceaccounts", robot()), 201)["metadata"]["id"]
    refused: dict[str, dict[str, Any]] = {
        f"user ID {NOWHERE} does not exist": crew(userIDs=[NOWHERE]),
        f"user ID {theirs} does not exist": crew(userIDs=[theirs]),
        "user ID nobody does not exist": crew(userIDs=["nobody"]),
        f"service account ID {NOWHERE} does not exist": crew(accounts=(NOWHERE,)),
        f"service account ID {robby} does not exist": crew(accounts=(robby,)),
        "subject eve@example.com does not exist": crew(subjects=[{"id": "eve@example.com", "issuer": OURS}]),
        "subject address invalid": crew(subjects=[{"id": "eve", "issuer": OURS}]),
        f"role ID {NOWHERE} does not exist": crew(NOWHERE),
    }
    for sentence, body in refused.items():
        assert rejection(await clerk.post(GROUPS, body), 400) == sentence
    nobody = await clerk.post(GROUPS, refused["subject address invalid"])
    assert nobody.json["problems"] == [{"pointer": "/spec/subjects/0/id", "reason": "is not an e-mail address"}]
    assert told(await clerk.get(GROUPS), 200) == []


async def test_nobody_gives_a_role_that_they_do_not_have_and_nobody_a_protected_one(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk, admin = users_api.ask(CLERK), users_api.ask(await administrator(users_api.store))
    assert rejection(await clerk.post(GROUPS, crew(READER)), 403) == "requested role cannot be granted"
    protected = crew(role_id("platform-administrator"))
    assert rejection(await admin.post(GROUPS, protected), 403) == "requested role is protected"
    made = told(await admin.post(GROUPS, crew(ADMINISTRATOR)), 201)
    path = f"{GROUPS}/{made['metadata']['id']}"
    assert rejection(await clerk.put(path, made), 403) == "requested role cannot be granted"
    told(await admin.put(path, crew(READER)), 200)
    assert told(await clerk.get(path), 200)["spec"]["roleIDs"] == [READER]


@options(seeds=5)
async def test_a_deleted_group_is_gone_and_soon_in_no_project(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    kept, gone = await make_group(users_api.store, "kept"), await make_group(users_api.store, "gone")
    project = await users_api.store.get(Project, PROJECT)
    await users_api.store.update(replace(project, spec=replace(project.spec, group_ids=(gone, kept))))
    async with tidying(users_api) as tidied:
        reply = await clerk.delete(f"{GROUPS}/{gone}")
        assert (reply.status, reply.body) == (200, b"")
        assert rejection(await clerk.get(f"{GROUPS}/{gone}"), 404)
        await tidied()
    assert (await users_api.store.get(Project, PROJECT)).spec.group_ids == (kept,)
    assert rejection(await clerk.delete(f"{GROUPS}/{gone}"), 404)


async def test_a_group_is_changed_and_deleted_only_as_the_caller_has_seen_it(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    path = f"{GROUPS}/{told(await clerk.post(GROUPS, crew()), 201)['metadata']['id']}"
    seen = (await clerk.get(path)).headers["etag"]
    ann = await make_user(clerk, "ann@example.com")
    told(await clerk.put(path, crew(userIDs=[ann]), if_match=seen), 200)
    assert rejection(await clerk.put(path, crew(), if_match=seen), 412)
    assert rejection(await clerk.delete(path, if_match=seen), 412)
    told(await clerk.delete(path, if_match=(await clerk.get(path)).headers["etag"]), 200)


async def test_who_may_not_is_told_which_right_is_missing_and_foreign_groups_are_not_found(
    users_api: IdentityApi[UserServices],
) -> None:
    nobody, clerk, root = users_api.ask(member("no@example.com")), users_api.ask(CLERK), users_api.ask(GLOBAL)
    own = await make_group(users_api.store, "own")
    theirs = await make_group(users_api.store, "theirs", organization=OTHER_ORG)
    path = f"{GROUPS}/{own}"
    replies = [
        ("read", await nobody.get(GROUPS)),
        ("read", await nobody.get(path)),
        ("create", await nobody.post(GROUPS, crew())),
        ("update", await nobody.put(path, crew())),
        ("delete", await nobody.delete(path)),
    ]
    for verb, reply in replies:
        assert f"operation '{verb}' on endpoint 'identity:groups' is not permitted" in rejection(reply, 403)
    foreign = f"/api/v1/organizations/{OTHER_ORG}/groups"
    for reply in (await clerk.get(foreign), await clerk.get(f"{foreign}/{theirs}")):
        assert "organization is not in this principal's accessible set" in rejection(reply, 403)
    for reply in (
        await clerk.get(f"{GROUPS}/{theirs}"),
        await clerk.put(f"{GROUPS}/{theirs}", crew()),
        await clerk.delete(f"{GROUPS}/{theirs}"),
        await root.get(f"/api/v1/organizations/{NOWHERE}/groups"),
        await root.post(f"/api/v1/organizations/{NOWHERE}/groups", crew()),
        await root.get(f"/api/v1/organizations/{NOWHERE}/groups/{own}"),
    ):
        assert rejection(reply, 404)
    assert rejection(await users_api.ask(None).get(GROUPS), 401)
    assert rejection(await clerk.get(f"{GROUPS}/not-an-id"), 400)


async def test_a_request_that_is_sent_again_makes_one_group(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    first, second = [await clerk.post(GROUPS, crew(), idempotency_key="once") for _ in range(2)]
    assert told(first, 201) == told(second, 201)
    assert len((await users_api.store.list(Group)).items) == 1


@options(seeds=5)
async def test_who_joins_while_the_group_is_renamed_by_others_is_not_lost_if_they_say_what_they_saw(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    path = f"{GROUPS}/{group}"

    async def rename(name: str) -> None:
        """Read, change and write until nobody came in between."""
        while True:
            reply = await clerk.get(path)
            body = reply.json | {"metadata": {"name": name}}
            if (await clerk.put(path, body, if_match=reply.headers["etag"])).status == 200:
                return

    joins = [clerk.post(USERS, user(f"user{number}@example.com", group)) for number in range(16)]
    await asyncio.gather(*joins, *(rename(f"name{number}") for number in range(4)))
    assert len(told(await clerk.get(path), 200)["spec"]["userIDs"]) == 16
