"""The refresh grant: each refresh token is good once, for its client, while its user is active."""

import asyncio
from datetime import timedelta

from remuda.identity.kinds.tokens import Session
from tests.kit.environment import options
from tests.kit.identity.oauth import OAuthEnvironment, answer, rejection


async def test_a_refresh_token_becomes_the_next_pair_without_an_id_token(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    tokens = await oauth.log_in(ann, app)
    for _ in range(3):
        oauth.clock.move(timedelta(minutes=50))
        following = answer(await oauth.refresh(tokens["refresh_token"], app))
        assert following["refresh_token"] != tokens["refresh_token"]
        assert "id_token" not in following
        assert await oauth.is_good(following["access_token"])
        tokens = following


async def test_a_refresh_token_that_comes_twice_ends_the_session(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    stolen = await oauth.log_in(ann, app)
    tokens = answer(await oauth.refresh(stolen["refresh_token"], app))
    reply = await oauth.refresh(stolen["refresh_token"], app)
    assert rejection(reply) == (400, "invalid_grant")
    assert "reuse" in answer(reply)["error_description"]
    assert rejection(await oauth.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
    for each in (stolen, tokens):
        assert not await oauth.is_good(each["access_token"])


@options(seeds=20)
async def test_of_many_who_refresh_at_once_none_keeps_a_session(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    token = (await oauth.log_in(ann, app))["refresh_token"]
    replies = await asyncio.gather(*(oauth.refresh(token, app) for _ in range(4)))
    won = [answer(reply) for reply in replies if reply.status == 200]
    assert len(won) == 1
    assert {rejection(reply) for reply in replies if reply.status != 200} == {(400, "invalid_grant")}
    assert not await oauth.is_good(won[0]["access_token"])
    assert rejection(await oauth.refresh(won[0]["refresh_token"], app)) == (400, "invalid_grant")
    assert not (await oauth.store.list(Session)).items


async def test_another_client_a_wrong_secret_and_garbage_change_nothing(oauth: OAuthEnvironment) -> None:
    ann, app, other = await oauth.user("ann@example.com"), await oauth.app(), await oauth.app()
    token = (await oauth.log_in(ann, app))["refresh_token"]
    session, family, secret = token.split(".")
    assert rejection(await oauth.refresh(token, other)) == (400, "invalid_grant")
    assert rejection(await oauth.refresh(token, app, client_secret="wrong")) == (401, "access_denied")
    for garbage in ("garbage", f"{session}.{family[::-1]}.{secret}", f"{session}.{family}", "..", "ä" * 100):
        assert rejection(await oauth.refresh(garbage, app)) == (400, "invalid_grant")
    assert rejection(await oauth.token({"grant_type": "refresh_token", **app.proof})) == (400, "invalid_request")
    assert (await oauth.refresh(token, app)).status == 200


async def test_a_refresh_widens_no_scope(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    tokens = await oauth.log_in(ann, app, scope="openid profile anything")
    assert tokens["scope"] == "openid profile"
    token = tokens["refresh_token"]
    assert rejection(await oauth.refresh(token, app, scope="openid email")) == (400, "invalid_scope")
    assert answer(await oauth.refresh(token, app, scope="openid profile anything"))["scope"] == "openid profile"


async def test_a_refresh_narrows_the_scope_of_one_access_token(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    wide = await oauth.log_in(ann, app, scope="openid email")
    narrow = answer(await oauth.refresh(wide["refresh_token"], app, scope="openid"))
    assert narrow["scope"] == "openid"
    assert "email" not in answer(await oauth.userinfo(narrow["access_token"]))
    again = answer(await oauth.refresh(narrow["refresh_token"], app))
    assert again["scope"] == "openid email", "the login was for both"
    assert answer(await oauth.userinfo(again["access_token"]))["email"] == "ann@example.com"


async def test_a_refresh_token_expires(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    token = (await oauth.log_in(ann, app))["refresh_token"]
    oauth.clock.move(timedelta(days=90))
    assert rejection(await oauth.refresh(token, app)) == (400, "invalid_grant")


async def test_a_suspended_user_refreshes_nothing(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    token = (await oauth.log_in(ann, app))["refresh_token"]
    await oauth.suspend(ann)
    assert rejection(await oauth.refresh(token, app)) == (401, "access_denied")
