"""The device grant: a device asks, its user says yes or no elsewhere, and it is let in once."""

import asyncio
import re
from datetime import timedelta
from typing import Any

from remuda.identity.kinds.oauth import DeviceGrant
from remuda.identity.oauth.clients import CLI, seed_clients
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.oauth import ISSUER, App, OAuthEnvironment, answer, rejection

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


async def begin(oauth: OAuthEnvironment, app: App) -> dict[str, Any]:
    reply = await oauth.post("/oauth2/v2/device_authorization", {**app.proof, "scope": "openid email"})
    assert reply.status == 200, reply.body
    return answer(reply)


async def ask(oauth: OAuthEnvironment, codes: dict[str, Any], app: App) -> Reply:
    return await oauth.token({"grant_type": GRANT, "device_code": codes["device_code"], **app.proof})


async def test_a_device_is_let_in_when_its_user_says_yes(oauth: OAuthEnvironment) -> None:
    await seed_clients(oauth.store)
    ann, app = await oauth.user("ann@example.com"), App(CLI)
    codes = await begin(oauth, app)
    assert re.fullmatch("[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", codes["user_code"])
    assert (codes["expires_in"], codes["interval"]) == (600, 5)
    assert codes["verification_uri"] == f"{ISSUER}/oauth2/v2/device"
    assert codes["verification_uri_complete"] == f"{codes['verification_uri']}?user_code={codes['user_code']}"
    assert rejection(await ask(oauth, codes, app)) == (400, "authorization_pending")
    typed = codes["user_code"].lower().replace("-", " ")
    found = await oauth.oauth.devices.find(typed)
    assert found is not None
    assert found.spec.client == CLI
    assert await oauth.oauth.devices.approve(typed, user=ann.name)
    oauth.clock.move(timedelta(seconds=5))
    tokens = answer(await ask(oauth, codes, app))
    assert await oauth.is_good(tokens["access_token"])
    assert (await oauth.refresh(tokens["refresh_token"], app)).status == 200
    assert rejection(await ask(oauth, codes, app)) == (400, "invalid_grant")


async def test_a_device_is_turned_away_when_its_user_says_no(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app(is_public=True)
    codes = await begin(oauth, app)
    assert await oauth.oauth.devices.deny(codes["user_code"])
    assert rejection(await ask(oauth, codes, app)) == (400, "access_denied")
    assert not await oauth.oauth.devices.approve(codes["user_code"], user=ann.name)
    assert rejection(await ask(oauth, codes, app)) == (400, "access_denied")


async def test_a_device_that_asks_too_often_is_slowed_down(oauth: OAuthEnvironment) -> None:
    app = await oauth.app(is_public=True)
    codes = await begin(oauth, app)
    assert rejection(await ask(oauth, codes, app)) == (400, "authorization_pending")
    assert rejection(await ask(oauth, codes, app)) == (400, "slow_down")
    oauth.clock.move(timedelta(seconds=9))
    assert rejection(await ask(oauth, codes, app)) == (400, "slow_down")
    oauth.clock.move(timedelta(seconds=15))
    assert rejection(await ask(oauth, codes, app)) == (400, "authorization_pending")


async def test_an_address_may_begin_some_thirty_times_a_minute_whoever_it_says_it_is(oauth: OAuthEnvironment) -> None:
    app = await oauth.app(is_public=True)
    for _ in range(29):
        await begin(oauth, app)
    form = {**app.proof, "scope": "openid"}
    assert (await oauth.post("/oauth2/v2/device_authorization", {"client_id": "nobody"})).status == 401
    refused = await oauth.post("/oauth2/v2/device_authorization", form)
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0
    assert len((await oauth.store.list(DeviceGrant)).items) == 29
    oauth.clock.move(timedelta(minutes=1))
    await begin(oauth, app)


async def test_a_grant_expires_for_the_device_and_for_its_user(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app(is_public=True)
    codes = await begin(oauth, app)
    oauth.clock.move(timedelta(minutes=10))
    assert rejection(await ask(oauth, codes, app)) == (400, "expired_token")
    assert await oauth.oauth.devices.find(codes["user_code"]) is None
    assert not await oauth.oauth.devices.approve(codes["user_code"], user=ann.name)


async def test_a_code_is_for_the_client_that_asked_and_nothing_else_is_a_code(oauth: OAuthEnvironment) -> None:
    ann, app, other = await oauth.user("ann@example.com"), await oauth.app(), await oauth.app()
    codes = await begin(oauth, app)
    await oauth.oauth.devices.approve(codes["user_code"], user=ann.name)
    assert rejection(await ask(oauth, codes, other)) == (400, "invalid_grant")
    assert rejection(await ask(oauth, codes, App(app.id, "wrong"))) == (401, "access_denied")
    assert rejection(await ask(oauth, {"device_code": "garbage"}, app)) == (400, "invalid_grant")
    assert rejection(await oauth.token({"grant_type": GRANT, **app.proof})) == (400, "invalid_request")
    stranger = await oauth.post("/oauth2/v2/device_authorization", {"client_id": "unknown"})
    assert rejection(stranger) == (401, "access_denied")
    assert not await oauth.oauth.devices.approve("BCDF-GHJK", user=ann.name)
    assert (await ask(oauth, codes, app)).status == 200


@options(seeds=10)
async def test_of_many_that_ask_at_once_one_device_is_let_in(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app(is_public=True)
    codes = await begin(oauth, app)
    await oauth.oauth.devices.approve(codes["user_code"], user=ann.name)
    replies = await asyncio.gather(*(ask(oauth, codes, app) for _ in range(4)))
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400]
    assert {rejection(reply) for reply in replies if reply.status != 200} == {(400, "invalid_grant")}


@options(seeds=10)
async def test_two_who_answer_at_once_are_not_both_believed(oauth: OAuthEnvironment) -> None:
    ann, bob = await oauth.user("ann@example.com"), await oauth.user("bob@example.com")
    codes = await begin(oauth, await oauth.app(is_public=True))
    devices = oauth.oauth.devices
    answers = await asyncio.gather(
        devices.approve(codes["user_code"], user=ann.name),
        devices.approve(codes["user_code"], user=bob.name),
        devices.deny(codes["user_code"]),
    )
    assert sum(answers) == 1
