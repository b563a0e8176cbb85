"""Users of an organization, over HTTP."""

import asyncio
import dataclasses
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.http.page_reads import Reading, page_slots
from remuda.identity.consent import accept
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import Group, LastLogin, OrganizationUser, User, membership_id, user_id
from remuda.identity.users.schema import UserWrite
from remuda.kernel.errors import NotFound
from remuda.store.objects import ResourceT
from tests.kit.environment import options
from tests.kit.forwarding_store import Passing
from tests.kit.identity.resource_api import ORG, OTHER_ORG, IdentityApi, everywhere, member
from tests.kit.identity.users import (
    ADMINISTRATOR,
    BASE,
    CLERK,
    GLOBAL,
    NOWHERE,
    READER,
    USERS,
    UserServices,
    administrator,
    make_group,
    rejection,
    tidying,
    told,
    user,
)


async def test_a_user_is_made_once_whatever_the_case_of_its_address(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    made = told(await clerk.post(USERS, user("  Ann@Example.COM ", group)), 201)
    assert made["metadata"] | {"creationTime": ""} == {
        "id": membership_id(ORG, user_id("ann@example.com")),
        "name": "ann-at-example.com",
        "organizationId": ORG,
        "createdBy": "clerk@example.com",
        "creationTime": "",
        "provisioningStatus": "provisioned",
        "healthStatus": "healthy",
    }
    assert made["spec"] == {"subject": "ann@example.com", "state": "active", "groupIDs": [group]}
    assert made["status"] == {}
    again = told(await clerk.post(USERS, user("ANN@example.com", state="suspended")), 201)
    assert again["metadata"]["id"] == made["metadata"]["id"]
    assert again["spec"] == {"subject": "ann@example.com", "state": "active", "groupIDs": []}
    assert [each.spec.subject for each in (await users_api.store.list(User)).items] == ["ann@example.com"]
    assert len((await users_api.store.list(OrganizationUser)).items) == 1


async def test_users_are_listed_by_subject_with_their_groups_and_their_last_login(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    for subject in ("zoe@example.com", "ann@example.com"):
        made = told(await clerk.post(USERS, user(subject, group)), 201)
        await accept(users_api.store, made["metadata"]["id"])
    zoe = await users_api.store.get(User, user_id("zoe@example.com"))
    times = [datetime(2026, 5, day, tzinfo=UTC) for day in (1, 3)]
    logins = tuple(
        LastLogin(client_id=str(number), authorization_code_id="", last_authentication=time)
        for number, time in enumerate([*times, None])
    )
    await users_api.store.update(replace(zoe, spec=replace(zoe.spec, sessions=logins)))
    listed = told(await clerk.get(USERS), 200)
    assert [each["spec"]["subject"] for each in listed] == ["ann@example.com", "zoe@example.com"]
    assert [each["spec"]["groupIDs"] for each in listed] == [[group], [group]]
    assert [each["status"] for each in listed] == [{}, {"lastActive": "2026-05-03T00:00:00Z"}]


async def test_a_put_sets_state_and_groups_and_ignores_the_subject(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    one, two = await make_group(users_api.store, "one"), await make_group(users_api.store, "two")
    made = told(await clerk.post(USERS, user("ann@example.com", one)), 201)
    path = f"{USERS}/{made['metadata']['id']}"
    changed = told(await clerk.put(path, user("eve@example.com", two, two, state="suspended")), 200)
    assert changed["spec"] == {"subject": "ann@example.com", "state": "suspended", "groupIDs": [two]}
    assert changed["metadata"]["modifiedBy"] == "clerk@example.com"
    assert told(await clerk.get(USERS), 200) == [changed]
    assert (await users_api.store.get(Group, one)).spec.user_ids == ()
    joined = (await users_api.store.get(Group, two)).spec
    assert joined.user_ids == (made["metadata"]["id"],)
    assert [each.id for each in joined.subjects] == ["ann@example.com"]


@options(seeds=5)
async def test_a_deleted_user_is_in_no_list_and_soon_in_no_group_and_stays_known_to_the_system(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    async with tidying(users_api) as tidied:
        ann = told(await clerk.post(USERS, user("ann@example.com", group)), 201)["metadata"]["id"]
        bob = told(await clerk.post(USERS, user("bob@example.com", group)), 201)["metadata"]["id"]
        reply = await clerk.delete(f"{USERS}/{ann}")
        assert (reply.status, reply.body) == (200, b"")
        assert [each["metadata"]["id"] for each in told(await clerk.get(USERS), 200)] == [bob]
        await tidied()
    left = (await users_api.store.get(Group, group)).spec
    assert left.user_ids == (bob,)
    assert [each.id for each in left.subjects] == ["bob@example.com"]
    assert (await users_api.store.get(User, user_id("ann@example.com"))).spec.state == "active"
    assert rejection(await clerk.delete(f"{USERS}/{ann}"), 404)


@options(seeds=5)
async def test_who_comes_back_has_only_the_groups_of_the_new_request(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    one, two = await make_group(users_api.store, "one"), await make_group(users_api.store, "two")
    ann = told(await clerk.post(USERS, user("ann@example.com", one, two)), 201)["metadata"]["id"]
    told(await clerk.delete(f"{USERS}/{ann}"), 200)  # nobody tidies up
    back = told(await clerk.post(USERS, user("ann@example.com", two, state="pending")), 201)
    assert back["spec"] == {"subject": "ann@example.com", "state": "pending", "groupIDs": [two]}
    assert (await users_api.store.get(Group, one)).spec.user_ids == ()
    async with tidying(users_api) as tidied:
        await tidied()
    assert (await users_api.store.get(Group, two)).spec.user_ids == (ann,)


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "ann",
        "ann@",
        "@example.com",
        "a b@example.com",
        "Ann <ann@example.com>",
        "ann@exa mple.com",
        "a@b@c",
        "a..b@c",
        "ann@-example.com",
        f"{'a' * 65}@example.com",
        "ann@example.com\n.",
        "a@b.",
        "ann@exämple.com",
    ],
)
async def test_what_is_no_address_is_refused_and_changes_nothing(
    users_api: IdentityApi[UserServices], subject: str
) -> None:
    assert rejection(await users_api.ask(CLERK).post(USERS, user(subject)), 400) == "subject address invalid"
    assert not (await users_api.store.list(User)).items


async def test_an_organization_that_is_not_there_is_told_and_leaves_no_orphan_user(
    users_api: IdentityApi[UserServices],
) -> None:
    root, nowhere = users_api.ask(GLOBAL), f"/api/v1/organizations/{NOWHERE}/users"
    assert rejection(await root.get(nowhere), 404)
    assert rejection(await root.post(nowhere, user("ann@example.com")), 404)
    assert rejection(await root.put(f"{nowhere}/{NOWHERE}", user("ann@example.com")), 404)
    assert rejection(await root.delete(f"{nowhere}/{NOWHERE}"), 404)
    assert not (await users_api.store.list(User)).items


async def test_a_foreign_organization_is_forbidden_and_a_foreign_user_is_not_found(
    users_api: IdentityApi[UserServices],
) -> None:
    foreign = f"/api/v1/organizations/{OTHER_ORG}/users"
    theirs = told(await users_api.ask(GLOBAL).post(foreign, user("ann@example.com")), 201)["metadata"]["id"]
    clerk = users_api.ask(CLERK)
    for reply in (
        await clerk.get(foreign),
        await clerk.post(foreign, user("eve@example.com")),
        await clerk.put(f"{foreign}/{theirs}", user("ann@example.com")),
        await clerk.delete(f"{foreign}/{theirs}"),
        await clerk.get(f"/api/v1/organizations/{NOWHERE}/users"),
    ):
        assert "organization is not in this principal's accessible set" in rejection(reply, 403)
    assert rejection(await clerk.put(f"{USERS}/{theirs}", user("ann@example.com")), 404)
    assert rejection(await clerk.delete(f"{USERS}/{theirs}"), 404)
    assert len(told(await users_api.ask(GLOBAL).get(foreign), 200)) == 1


@pytest.mark.parametrize("verb", ["create", "read", "update", "delete"])
async def test_each_verb_needs_its_right(users_api: IdentityApi[UserServices], verb: str) -> None:
    letters = "".join(
        letter for letter, name in zip("CRUD", ("create", "read", "update", "delete"), strict=True) if name != verb
    )
    ann = told(await users_api.ask(CLERK).post(USERS, user("ann@example.com")), 201)["metadata"]["id"]
    almost = users_api.ask(member("almost@example.com", text=f"identity:users {letters}"))
    reply = {
        "create": await almost.post(USERS, user("bob@example.com")),
        "read": await almost.get(USERS),
        "update": await almost.put(f"{USERS}/{ann}", user("ann@example.com")),
        "delete": await almost.delete(f"{USERS}/{ann}"),
    }[verb]
    assert f"operation '{verb}' on endpoint 'identity:users' is not permitted" in rejection(reply, 403)
    assert rejection(await users_api.ask(None).get(USERS), 401)


async def test_an_unknown_group_is_refused_and_changes_nothing(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    theirs = await make_group(users_api.store, "theirs", organization=OTHER_ORG)
    for group in (NOWHERE, theirs, "no id at all"):
        reply = await clerk.post(USERS, user("ann@example.com", group))
        assert rejection(reply, 400) == f"group ID {group} does not exist"
    assert told(await clerk.get(USERS), 200) == []
    assert not (await users_api.store.list(User)).items


async def test_putting_somebody_into_a_group_needs_the_right_to_give_its_roles_but_leaving_them_there_does_not(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk, admin = users_api.ask(CLERK), users_api.ask(await administrator(users_api.store))
    powerful, weak = await make_group(users_api.store, "a", ADMINISTRATOR), await make_group(users_api.store, "w")
    refused = await clerk.post(USERS, user("eve@example.com", weak, powerful))
    assert rejection(refused, 403) == "requested role cannot be granted"
    assert not (await users_api.store.list(User)).items
    eve = told(await clerk.post(USERS, user("eve@example.com", weak)), 201)["metadata"]["id"]
    refused = await clerk.put(f"{USERS}/{eve}", user("eve@example.com", powerful))
    assert rejection(refused, 403) == "requested role cannot be granted"
    assert rejection(await clerk.post(USERS, user("eve@example.com", powerful)), 403)
    told(await admin.put(f"{USERS}/{eve}", user("eve@example.com", powerful)), 200)
    kept = told(await clerk.put(f"{USERS}/{eve}", user("eve@example.com", powerful, weak)), 200)
    assert kept["spec"]["groupIDs"] == sorted([powerful, weak])
    told(await clerk.put(f"{USERS}/{eve}", user("eve@example.com")), 200)
    told(await clerk.delete(f"{USERS}/{eve}"), 200)


async def test_what_is_left_of_a_deleted_user_in_a_group_lets_nobody_back_into_it(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk, admin = users_api.ask(CLERK), users_api.ask(await administrator(users_api.store))
    powerful = await make_group(users_api.store, "powerful", READER)
    eve = told(await admin.post(USERS, user("eve@example.com", powerful)), 201)["metadata"]["id"]
    told(await admin.delete(f"{USERS}/{eve}"), 200)  # nobody tidies up
    refused = await clerk.post(USERS, user("eve@example.com", powerful))
    assert rejection(refused, 403) == "requested role cannot be granted"


class _Forgetful(Passing):
    """A store that has lost a user."""

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        if kind is User and name == user_id("bob@example.com"):
            raise NotFound(kind.__name__, name)
        return await super().get(kind, name)


async def test_a_membership_whose_user_is_gone_breaks_no_list(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    for subject in ("ann@example.com", "bob@example.com"):
        told(await clerk.post(USERS, user(subject)), 201)
    users = dataclasses.replace(users_api.service.users, store=_Forgetful(users_api.store))
    context = Context(principal=CLERK, operation=NOWHERE)
    page = await users.list(context, ORG)
    found = await page.read(Reading(page_slots(), ""))
    assert [each.spec.subject for each in found] == ["ann@example.com"]


async def test_a_request_whose_answer_was_lost_gets_it_the_second_time(users_api: IdentityApi[UserServices]) -> None:
    group = await make_group(users_api.store, "crew")
    context = Context(principal=CLERK, operation=NOWHERE)
    wanted = msgspec.convert(user("ann@example.com", group), UserWrite)
    first = await users_api.service.users.create(context, ORG, wanted)
    version = (await users_api.store.get(Group, group)).version
    assert await users_api.service.users.create(context, ORG, wanted) == first
    assert (await users_api.store.get(Group, group)).version == version


async def test_tags_are_kept_with_the_global_user_when_it_is_made_and_not_shown(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    body = {"metadata": {"name": "ann", "tags": [{"name": "team", "value": "red"}]}, **user("ann@example.com")}
    made = told(await clerk.post(USERS, body), 201)
    assert "tags" not in made["metadata"]
    stored = await users_api.store.get(User, user_id("ann@example.com"))
    assert [(tag.name, tag.value) for tag in stored.spec.tags] == [("team", "red")]
    body["metadata"]["tags"] *= 2
    assert rejection(await clerk.post(USERS, body), 422)


@options(seeds=5)
async def test_one_user_made_by_many_at_once_is_one_user(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    replies = await asyncio.gather(*(clerk.post(USERS, user("ann@example.com", group)) for _ in range(8)))
    made = [told(reply, 201) for reply in replies]
    assert len({each["metadata"]["id"] for each in made}) == 1
    assert all(each["spec"]["groupIDs"] == [group] for each in made)
    assert (
        len((await users_api.store.list(OrganizationUser)).items) == len((await users_api.store.list(User)).items) == 1
    )
    assert (await users_api.store.get(Group, group)).spec.user_ids == (made[0]["metadata"]["id"],)


@options(seeds=2)
async def test_64_users_who_join_one_group_at_once_are_all_in_it(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    subjects = [f"user{number}@example.com" for number in range(64)]
    replies = await asyncio.gather(*(clerk.post(USERS, user(each, group)) for each in subjects))
    made = {told(reply, 201)["metadata"]["id"] for reply in replies}
    crew = (await users_api.store.get(Group, group)).spec
    assert set(crew.user_ids) == made
    assert sorted(each.id for each in crew.subjects) == sorted(subjects)
    assert len(crew.member_changes) <= len(subjects)


async def test_a_request_that_is_sent_again_under_its_key_is_carried_out_once(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    first, second = [await clerk.post(USERS, user("ann@example.com", group), idempotency_key="once") for _ in range(2)]
    assert told(second, 201) == told(first, 201)
    assert second.headers["idempotency-replayed"] == "true"


async def test_an_organizations_users_go_with_it(users_api: IdentityApi[UserServices]) -> None:
    root = users_api.ask(everywhere("root@example.com", "identity:users CRUD, identity:groups CRUD"))
    group = await make_group(users_api.store, "crew")
    told(await root.post(USERS, user("ann@example.com", group)), 201)
    organization = await users_api.store.get(Organization, ORG)
    await users_api.store.delete(Organization, ORG, uid=organization.uid)
    assert not (await users_api.store.list(OrganizationUser)).items
    assert not (await users_api.store.list(Group)).items
    assert rejection(await root.get(f"{BASE}/users"), 404)
