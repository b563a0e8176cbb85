"""What can be asked about tokens: userinfo, introspection, revocation, and the documents that say where all that is."""

from typing import Any

import pytest

from tests.example.contract import Reply
from tests.identity.tokens_desk import ISSUER, App, Desk, answer, at_a_desk, refusal

AUTHZ = "https://unikorn-cloud.org/authz"


def test_userinfo_tells_who_the_bearer_is() -> None:
    async def scenario(desk: Desk) -> None:
        org = await desk.organization()
        ann, app = await desk.user("ann@example.com", org), await desk.app()
        token = (await desk.log_in(ann, app))["access_token"]
        told = {
            "sub": "ann@example.com",
            "email": "ann@example.com",
            "email_verified": True,
            AUTHZ: {"acctype": "user", "orgIds": [org]},
        }
        assert answer(await desk.userinfo(token)) == told
        assert answer(await desk.post("/oauth2/v2/userinfo", {"access_token": token})) == told
        assert answer(await desk.post("/oauth2/v2/userinfo", {}, authorization=f"bearer {token}")) == told
        plain = (await desk.log_in(ann, app, scope="openid"))["access_token"]
        assert set(answer(await desk.userinfo(plain))) == {"sub", AUTHZ}

    at_a_desk(scenario)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer a b", "Basic abc", "Bearer garbage", "Bearer a.b.c"])
def test_userinfo_refuses_whoever_has_no_good_token(header: str) -> None:
    async def scenario(desk: Desk) -> None:
        sent = {"authorization": header} if header else {}
        for reply in (
            await desk.anybody.get("/oauth2/v2/userinfo", **sent),
            await desk.post("/oauth2/v2/userinfo", {}, **sent),
        ):
            assert reply.status == 401
            assert answer(reply)["error"] == "access_denied"
            assert reply.headers["www-authenticate"].startswith("Bearer")
        if not header:
            assert answer(reply)["error_description"] == "authorization header not set"

    at_a_desk(scenario)


def test_userinfo_refuses_two_tokens() -> None:
    async def scenario(desk: Desk) -> None:
        token = (await desk.log_in(await desk.user("ann@example.com"), await desk.app()))["access_token"]
        reply = await desk.post("/oauth2/v2/userinfo", {"access_token": token}, authorization=f"Bearer {token}")
        assert reply.status == 401

    at_a_desk(scenario)


async def introspect(desk: Desk, token: str, app: App | None = None, **headers: str) -> Reply:
    return await desk.post("/oauth2/v2/introspect", {"token": token, **(app.proof if app else {})}, **headers)


def test_introspection_tells_a_client_of_its_own_tokens_and_a_service_of_all() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app, other = await desk.user("ann@example.com"), await desk.app(), await desk.app()
        token = (await desk.log_in(ann, app))["access_token"]
        service = (await desk.room.tokens.issue_for_service("unikorn-region")).token.reveal()
        for reply in (
            await introspect(desk, token, app),
            await introspect(desk, token, authorization=f"Bearer {service}"),
        ):
            told = answer(reply)
            assert told["active"] is True
            assert (told["sub"], told["client_id"]) == ("ann@example.com", app.id)
            assert (told["scope"], told["iss"]) == ("openid email", ISSUER)
        assert answer(await introspect(desk, token, other)) == {"active": False}
        assert answer(await introspect(desk, "garbage", app)) == {"active": False}
        await desk.room.sessions.end_all(ann.name)
        assert answer(await introspect(desk, token, app)) == {"active": False}

    at_a_desk(scenario)


def test_introspection_tells_whether_a_refresh_token_is_the_good_one() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app, other = await desk.user("ann@example.com"), await desk.app(), await desk.app()
        first = (await desk.log_in(ann, app))["refresh_token"]
        assert answer(await introspect(desk, first, app))["active"] is True
        second = answer(await desk.refresh(first, app))["refresh_token"]
        assert answer(await introspect(desk, first, app)) == {"active": False}
        assert answer(await introspect(desk, second, other)) == {"active": False}
        told = answer(await introspect(desk, second, app))
        assert (told["active"], told["client_id"], told["scope"]) == (True, app.id, "openid email")

    at_a_desk(scenario)


def test_introspection_is_for_those_who_can_prove_who_they_are() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app, public = await desk.user("ann@example.com"), await desk.app(), await desk.app(is_public=True)
        token = (await desk.log_in(ann, app))["access_token"]
        assert refusal(await introspect(desk, token)) == (400, "invalid_request")
        assert refusal(await introspect(desk, token, App(app.id, "wrong"))) == (401, "access_denied")
        assert refusal(await introspect(desk, token, public)) == (400, "unauthorized_client")
        assert refusal(await introspect(desk, token, authorization=f"Bearer {token}")) == (401, "access_denied")
        assert refusal(await introspect(desk, token, authorization="Bearer garbage")) == (401, "access_denied")

    at_a_desk(scenario)


async def revoke(desk: Desk, token: str, app: App | None = None, **headers: str) -> Reply:
    return await desk.post("/oauth2/v2/revoke", {"token": token, **(app.proof if app else {})}, **headers)


def test_a_client_revokes_an_access_token() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        tokens = await desk.log_in(ann, app)
        for _ in range(2):
            assert (await revoke(desk, tokens["access_token"], app)).status == 200
            assert not await desk.is_good(tokens["access_token"])
        assert (await desk.refresh(tokens["refresh_token"], app)).status == 200

    at_a_desk(scenario)


def test_revoking_a_refresh_token_ends_the_session() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app(is_public=True)
        tokens = await desk.log_in(ann, app)
        assert (await revoke(desk, tokens["refresh_token"], app)).status == 200
        assert not await desk.is_good(tokens["access_token"])
        assert refusal(await desk.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
        assert (await revoke(desk, tokens["refresh_token"], app)).status == 200

    at_a_desk(scenario)


def test_who_has_a_token_may_revoke_it_and_nobody_elses() -> None:
    async def scenario(desk: Desk) -> None:
        ann, bob, app = await desk.user("ann@example.com"), await desk.user("bob@example.com"), await desk.app()
        hers, his = await desk.log_in(ann, app), await desk.log_in(bob, app)
        bearer = f"Bearer {his['access_token']}"
        for token in (hers["access_token"], hers["refresh_token"]):
            assert refusal(await revoke(desk, token, authorization=bearer)) == (400, "unauthorized_client")
            assert refusal(await revoke(desk, token, await desk.app())) == (400, "unauthorized_client")
            assert refusal(await revoke(desk, token)) == (400, "invalid_request")
        assert await desk.is_good(hers["access_token"])
        assert (await revoke(desk, his["access_token"], authorization=bearer)).status == 200
        assert not await desk.is_good(his["access_token"])

    at_a_desk(scenario)


def test_revoking_what_is_no_token_is_fine() -> None:
    async def scenario(desk: Desk) -> None:
        app = await desk.app()
        for token in ("garbage", "a.b.c", "x" * 9000):
            assert (await revoke(desk, token, app)).status == 200
        assert (await desk.post("/oauth2/v2/revoke", app.proof)).status == 400

    at_a_desk(scenario)


def test_the_documents_say_where_everything_is_and_only_what_is_true() -> None:
    async def scenario(desk: Desk) -> None:
        openid = answer(await desk.anybody.get("/.well-known/openid-configuration"))
        assert answer(await desk.anybody.get("/.well-known/oauth-authorization-server")) == openid
        assert openid["issuer"] == ISSUER
        endpoints = {name: value for name, value in openid.items() if name.endswith(("_endpoint", "_uri"))}
        assert len(endpoints) == 8
        assert all(value.startswith(f"{ISSUER}/oauth2/v2/") for value in endpoints.values())
        assert openid["response_types_supported"] == ["code"]
        assert openid["scopes_supported"] == ["openid", "email"]
        assert openid["id_token_signing_alg_values_supported"] == ["ES512"]
        await _assert_grants_are_known(desk, openid["grant_types_supported"])
        resource = answer(await desk.anybody.get("/.well-known/openid-protected-resource", host="evil.example.com"))
        assert resource == {
            "resource": ISSUER,
            "authorization_servers": [ISSUER],
            "scopes_supported": ["openid", "email"],
            "bearer_methods_supported": ["header"],
        }

    at_a_desk(scenario)


async def _assert_grants_are_known(desk: Desk, grants: list[Any]) -> None:
    for grant in grants:
        reply = await desk.token({"grant_type": grant})
        assert refusal(reply) == (400, "invalid_request")
        assert answer(reply)["error_description"] != "token grant type is not supported"
