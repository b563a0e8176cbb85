"""Service accounts, over HTTP: their tokens are shown once, and end with them."""

import asyncio
from datetime import datetime, timedelta

import pytest

from remuda.access.principal import Context
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.kinds.users import TOKENS_FINALIZER, Group, ServiceAccount
from remuda.identity.tokens.bearer import Bearers
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import Sessions
from remuda.identity.users.schema import AccountSpecWire, AccountWrite
from remuda.kernel.errors import ResponseNotStored, Unauthenticated
from remuda.resources.schema import MetadataWrite
from tests.kit.environment import options
from tests.kit.identity.resource_api import ORG, OTHER_ORG, IdentityApi, member
from tests.kit.identity.users import (
    ACCOUNTS,
    ADMINISTRATOR,
    CLERK,
    GLOBAL,
    NOWHERE,
    SETTINGS,
    UserServices,
    account,
    administrator,
    make_group,
    rejection,
    robot,
    tidying,
    told,
)


async def is_good(api: IdentityApi[UserServices], token: str) -> bool:
    """Tell whether somebody stands behind a token."""
    tokens = api.service.accounts.tokens
    sessions = Sessions(
        store=api.store, clock=api.world.clock, randomness=api.world.randomness, settings=SETTINGS, tokens=tokens
    )
    bearers = Bearers(store=api.store, tokens=tokens, sessions=sessions)
    try:
        await bearers.identify(token)
    except Unauthenticated:
        return False
    return True


async def test_a_new_account_shows_its_token_once_and_keeps_only_the_hash(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    body = {"metadata": {"name": "robot", "description": "sweeps"}, "spec": {"groupIDs": [group, group]}}
    made = told(await clerk.post(ACCOUNTS, body), 201)
    token = made["status"]["accessToken"]
    assert made["spec"] == {"groupIDs": [group]}
    assert made["metadata"]["name"] == "robot"
    assert made["metadata"]["description"] == "sweeps"
    expiry = datetime.fromisoformat(made["status"]["expiry"])
    assert (
        timedelta(seconds=-1)
        <= expiry - users_api.world.clock.now() - SETTINGS.service_account_token_lifetime
        <= timedelta()
    )
    stored = await users_api.store.get(ServiceAccount, made["metadata"]["id"])
    assert stored.spec.access_token == token_hash(token)
    assert (await users_api.service.accounts.tokens.verify(token)).sub == stored.name
    assert await is_good(users_api, token)
    listed = told(await clerk.get(ACCOUNTS), 200)
    assert listed == [made | {"status": {"expiry": made["status"]["expiry"]}}]


async def test_a_put_changes_names_and_groups_and_keeps_the_token(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    one, two = await make_group(users_api.store, "one"), await make_group(users_api.store, "two")
    made = told(await clerk.post(ACCOUNTS, robot(one)), 201)
    path = f"{ACCOUNTS}/{made['metadata']['id']}"
    changed = told(await clerk.put(path, robot(two, name="android")), 200)
    assert (changed["metadata"]["name"], changed["spec"]["groupIDs"]) == ("android", [two])
    assert changed["status"] == {"expiry": made["status"]["expiry"]}
    assert told(await clerk.get(ACCOUNTS), 200) == [changed]
    assert await is_good(users_api, made["status"]["accessToken"])


@options(seeds=5)
async def test_a_rotated_token_takes_the_place_of_the_old_one_at_once_and_the_old_one_is_revoked(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    made = told(await clerk.post(ACCOUNTS, robot()), 201)
    name, old = made["metadata"]["id"], made["status"]["accessToken"]
    before = (await users_api.store.get(ServiceAccount, name)).spec
    await users_api.world.clock.sleep(60)
    rotated = told(await clerk.post(f"{ACCOUNTS}/{name}/rotate"), 200)
    new = rotated["status"]["accessToken"]
    assert rotated["status"]["expiry"] > made["status"]["expiry"]
    assert not await is_good(users_api, old)
    assert await is_good(users_api, new)
    async with tidying(users_api) as tidied:
        await tidied()
    assert (await users_api.store.get(Revocation, before.token_id)).spec.expires == before.expiry
    assert (await users_api.store.get(ServiceAccount, name)).spec.replaced == ()
    assert await is_good(users_api, new)


async def test_m27_only_who_may_grant_the_roles_of_an_account_gets_its_token(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk, admin = users_api.ask(CLERK), users_api.ask(await administrator(users_api.store))
    powers = await make_group(users_api.store, "powers", ADMINISTRATOR)
    made = told(await admin.post(ACCOUNTS, robot(powers)), 201)
    path, old = f"{ACCOUNTS}/{made['metadata']['id']}", made["status"]["accessToken"]
    assert rejection(await clerk.post(f"{path}/rotate"), 403) == "requested role cannot be granted"
    assert await is_good(users_api, old)
    told(await users_api.ask(account(made["metadata"]["id"])).post(f"{path}/rotate"), 200)
    told(await admin.post(f"{path}/rotate"), 200)
    told(await admin.put(path, robot()), 200)
    told(await clerk.post(f"{path}/rotate"), 200)


async def test_an_account_may_rotate_itself_and_sees_only_itself(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    own = told(await clerk.post(ACCOUNTS, robot(group)), 201)["metadata"]["id"]
    other = told(await clerk.post(ACCOUNTS, robot()), 201)["metadata"]["id"]
    itself = users_api.ask(account(own))
    seen = told(await itself.get(ACCOUNTS), 200)
    assert [(each["metadata"]["id"], each["spec"]["groupIDs"]) for each in seen] == [(own, [group])]
    assert told(await itself.post(f"{ACCOUNTS}/{own}/rotate"), 200)["status"]["accessToken"]
    for reply in (
        await itself.post(f"{ACCOUNTS}/{other}/rotate"),
        await itself.post(f"/api/v1/organizations/{OTHER_ORG}/serviceaccounts/{other}/rotate"),
        await itself.get(f"/api/v1/organizations/{OTHER_ORG}/serviceaccounts"),
        await itself.delete(f"{ACCOUNTS}/{own}"),
        await users_api.ask(account(NOWHERE)).get(ACCOUNTS),
        await itself.post(f"/api/v1/organizations/{OTHER_ORG}/serviceaccounts/{own}/rotate"),
        await users_api.ask(member(own)).get(ACCOUNTS),
    ):
        assert "operation is not allowed by rbac" in rejection(reply, 403)


@options(seeds=5)
async def test_a_deleted_account_is_gone_with_its_token_which_is_revoked_and_groups_forget_it(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    group = await make_group(users_api.store, "crew")
    made = told(await clerk.post(ACCOUNTS, robot(group)), 201)
    name = made["metadata"]["id"]
    first = (await users_api.store.get(ServiceAccount, name)).spec.token_id
    told(await clerk.post(f"{ACCOUNTS}/{name}/rotate"), 200)
    second = (await users_api.store.get(ServiceAccount, name)).spec.token_id
    reply = await clerk.delete(f"{ACCOUNTS}/{name}")
    assert (reply.status, reply.body) == (200, b"")
    assert told(await clerk.get(ACCOUNTS), 200) == []
    assert not await is_good(users_api, made["status"]["accessToken"])
    for again in (
        await clerk.delete(f"{ACCOUNTS}/{name}"),
        await clerk.put(f"{ACCOUNTS}/{name}", robot()),
        await clerk.post(f"{ACCOUNTS}/{name}/rotate"),
    ):
        assert rejection(again, 404)
    async with tidying(users_api) as tidied:
        await tidied()
    assert (await users_api.store.get(Group, group)).spec.service_account_ids == ()
    assert not (await users_api.store.list(ServiceAccount)).items
    assert {each.name for each in (await users_api.store.list(Revocation)).items} == {first, second}


@options(seeds=5)
async def test_the_accounts_of_an_organization_go_with_it_and_their_tokens_are_revoked(
    users_api: IdentityApi[UserServices],
) -> None:
    made = told(await users_api.ask(CLERK).post(ACCOUNTS, robot()), 201)
    stored = await users_api.store.get(ServiceAccount, made["metadata"]["id"])
    assert stored.metadata.finalizers == (TOKENS_FINALIZER,)
    organization = await users_api.store.get(Organization, ORG)
    await users_api.store.delete(Organization, ORG, uid=organization.uid)
    assert not await is_good(users_api, made["status"]["accessToken"])
    async with tidying(users_api) as tidied:
        await tidied()
    assert not (await users_api.store.list(ServiceAccount)).items
    assert (await users_api.store.get(Revocation, stored.spec.token_id)).spec.expires == stored.spec.expiry
    assert [each.name for each in (await users_api.store.list(Organization)).items] == [OTHER_ORG]


async def test_accounts_come_into_powerful_groups_only_by_who_may_give_their_roles(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk, admin = users_api.ask(CLERK), users_api.ask(await administrator(users_api.store))
    powerful = await make_group(users_api.store, "powerful", ADMINISTRATOR)
    assert rejection(await clerk.post(ACCOUNTS, robot(powerful)), 403) == "requested role cannot be granted"
    assert told(await clerk.get(ACCOUNTS), 200) == []
    name = told(await clerk.post(ACCOUNTS, robot()), 201)["metadata"]["id"]
    assert rejection(await clerk.put(f"{ACCOUNTS}/{name}", robot(powerful)), 403)
    told(await admin.put(f"{ACCOUNTS}/{name}", robot(powerful)), 200)
    kept = told(await clerk.put(f"{ACCOUNTS}/{name}", robot(powerful, name="renamed")), 200)
    assert (kept["metadata"]["name"], kept["spec"]["groupIDs"]) == ("renamed", [powerful])


async def test_wrong_input_is_refused_and_changes_nothing(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    assert rejection(await clerk.post(ACCOUNTS, robot(NOWHERE)), 400) == f"group ID {NOWHERE} does not exist"
    twice = {"name": "robot", "tags": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}
    assert rejection(await clerk.post(ACCOUNTS, robot() | {"metadata": twice}), 422)
    assert rejection(await clerk.post(ACCOUNTS, {"metadata": {"name": "robot"}, "spec": {}}), 400)
    assert not (await users_api.store.list(ServiceAccount)).items


async def test_who_may_not_is_told_which_right_is_missing(users_api: IdentityApi[UserServices]) -> None:
    name = told(await users_api.ask(CLERK).post(ACCOUNTS, robot()), 201)["metadata"]["id"]
    nobody = users_api.ask(member("nobody@example.com", text="identity:users R"))
    for verb, reply in {
        "read": await nobody.get(ACCOUNTS),
        "create": await nobody.post(ACCOUNTS, robot()),
        "update": await nobody.put(f"{ACCOUNTS}/{name}", robot()),
        "delete": await nobody.delete(f"{ACCOUNTS}/{name}"),
    }.items():
        expected = f"operation '{verb}' on endpoint 'identity:serviceaccounts' is not permitted"
        assert expected in rejection(reply, 403)
    rotate = await nobody.post(f"{ACCOUNTS}/{name}/rotate")
    assert "operation 'update' on endpoint 'identity:serviceaccounts'" in rejection(rotate, 403)
    assert rejection(await users_api.ask(None).get(ACCOUNTS), 401)


async def test_an_organization_or_account_that_is_not_there_is_not_found(users_api: IdentityApi[UserServices]) -> None:
    root, nowhere = users_api.ask(GLOBAL), f"/api/v1/organizations/{NOWHERE}/serviceaccounts"
    for reply in (
        await root.get(nowhere),
        await root.post(nowhere, robot()),
        await root.put(f"{ACCOUNTS}/{NOWHERE}", robot()),
        await root.post(f"{ACCOUNTS}/{NOWHERE}/rotate"),
        await root.delete(f"{ACCOUNTS}/{NOWHERE}"),
    ):
        assert rejection(reply, 404)
    theirs = told(await root.post(f"/api/v1/organizations/{OTHER_ORG}/serviceaccounts", robot()), 201)
    assert rejection(await root.delete(f"{ACCOUNTS}/{theirs['metadata']['id']}"), 404)


async def test_a_token_is_shown_to_nobody_who_asks_again(users_api: IdentityApi[UserServices]) -> None:
    clerk = users_api.ask(CLERK)
    told(await clerk.post(ACCOUNTS, robot(), idempotency_key="once"), 201)
    assert "not stored" in rejection(await clerk.post(ACCOUNTS, robot(), idempotency_key="once"), 409)
    context = Context(principal=CLERK, operation=NOWHERE)
    wanted = AccountWrite(metadata=MetadataWrite(name="robot"), spec=AccountSpecWire(group_ids=()))
    await users_api.service.accounts.create(context, ORG, wanted)
    with pytest.raises(ResponseNotStored):
        await users_api.service.accounts.create(context, ORG, wanted)
    assert len((await users_api.store.list(ServiceAccount)).items) == 2


@options(seeds=5)
async def test_of_many_rotations_at_once_one_token_is_good_and_all_others_are_revoked(
    users_api: IdentityApi[UserServices],
) -> None:
    clerk = users_api.ask(CLERK)
    made = told(await clerk.post(ACCOUNTS, robot()), 201)
    name = made["metadata"]["id"]
    replies = await asyncio.gather(*(clerk.post(f"{ACCOUNTS}/{name}/rotate") for _ in range(5)))
    tokens = [made["status"]["accessToken"], *(told(reply, 200)["status"]["accessToken"] for reply in replies)]
    good = [token for token in tokens if await is_good(users_api, token)]
    assert len(good) == 1
    async with tidying(users_api) as tidied:
        await tidied()
    assert len((await users_api.store.list(Revocation)).items) == 5
    assert await is_good(users_api, good[0])
