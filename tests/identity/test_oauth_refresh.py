"""The refresh grant: each refresh token is good once, for its client, while its user is active."""

import asyncio
from datetime import timedelta

from remuda.identity.kinds.tokens import Session
from tests.identity.tokens_desk import Desk, answer, at_a_desk, refusal


def test_a_refresh_token_becomes_the_next_pair_without_an_id_token() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        tokens = await desk.log_in(ann, app)
        for _ in range(3):
            desk.clock.move(timedelta(minutes=50))
            following = answer(await desk.refresh(tokens["refresh_token"], app))
            assert following["refresh_token"] != tokens["refresh_token"]
            assert "id_token" not in following
            assert await desk.is_good(following["access_token"])
            tokens = following

    at_a_desk(scenario)


def test_a_refresh_token_that_comes_twice_ends_the_session() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        stolen = await desk.log_in(ann, app)
        tokens = answer(await desk.refresh(stolen["refresh_token"], app))
        reply = await desk.refresh(stolen["refresh_token"], app)
        assert refusal(reply) == (400, "invalid_grant")
        assert "reuse" in answer(reply)["error_description"]
        assert refusal(await desk.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
        for each in (stolen, tokens):
            assert not await desk.is_good(each["access_token"])

    at_a_desk(scenario)


def test_of_many_who_refresh_at_once_none_keeps_a_session() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        token = (await desk.log_in(ann, app))["refresh_token"]
        replies = await asyncio.gather(*(desk.refresh(token, app) for _ in range(4)))
        won = [answer(reply) for reply in replies if reply.status == 200]
        assert len(won) == 1
        assert {refusal(reply) for reply in replies if reply.status != 200} == {(400, "invalid_grant")}
        assert not await desk.is_good(won[0]["access_token"])
        assert refusal(await desk.refresh(won[0]["refresh_token"], app)) == (400, "invalid_grant")
        assert not (await desk.store.list(Session)).items

    at_a_desk(scenario, seeds=20)


def test_another_client_a_wrong_secret_and_garbage_change_nothing() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app, other = await desk.user("ann@example.com"), await desk.app(), await desk.app()
        token = (await desk.log_in(ann, app))["refresh_token"]
        session, family, secret = token.split(".")
        assert refusal(await desk.refresh(token, other)) == (400, "invalid_grant")
        assert refusal(await desk.refresh(token, app, client_secret="wrong")) == (401, "access_denied")
        for garbage in ("garbage", f"{session}.{family[::-1]}.{secret}", f"{session}.{family}", "..", "ä" * 100):
            assert refusal(await desk.refresh(garbage, app)) == (400, "invalid_grant")
        assert refusal(await desk.token({"grant_type": "refresh_token", **app.proof})) == (400, "invalid_request")
        assert (await desk.refresh(token, app)).status == 200

    at_a_desk(scenario)


def test_a_refresh_widens_no_scope() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        tokens = await desk.log_in(ann, app, scope="openid profile anything")
        assert tokens["scope"] == "openid"
        token = tokens["refresh_token"]
        assert refusal(await desk.refresh(token, app, scope="openid email")) == (400, "invalid_scope")
        assert answer(await desk.refresh(token, app, scope="openid profile anything"))["scope"] == "openid"

    at_a_desk(scenario)


def test_a_refresh_narrows_the_scope_of_one_access_token() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        wide = await desk.log_in(ann, app, scope="openid email")
        narrow = answer(await desk.refresh(wide["refresh_token"], app, scope="openid"))
        assert narrow["scope"] == "openid"
        assert "email" not in answer(await desk.userinfo(narrow["access_token"]))
        again = answer(await desk.refresh(narrow["refresh_token"], app))
        assert again["scope"] == "openid email", "the login was for both"
        assert answer(await desk.userinfo(again["access_token"]))["email"] == "ann@example.com"

    at_a_desk(scenario)


def test_a_refresh_token_expires() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        token = (await desk.log_in(ann, app))["refresh_token"]
        desk.clock.move(timedelta(days=90))
        assert refusal(await desk.refresh(token, app)) == (400, "invalid_grant")

    at_a_desk(scenario)


def test_a_suspended_user_refreshes_nothing() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        token = (await desk.log_in(ann, app))["refresh_token"]
        await desk.suspend(ann)
        assert refusal(await desk.refresh(token, app)) == (401, "access_denied")

    at_a_desk(scenario)
