"""What can be asked about tokens: userinfo, introspection, revocation, and the documents that say where all that is."""

from typing import Any

import pytest

from tests.kit.asgi.contract import Reply
from tests.kit.identity.oauth import ISSUER, App, OAuthEnvironment, answer, rejection

AUTHZ = "https://unikorn-cloud.org/authz"


async def test_userinfo_tells_who_the_bearer_is(oauth: OAuthEnvironment) -> None:
    org = await oauth.organization()
    ann, app = await oauth.user("ann@example.com", org), await oauth.app()
    token = (await oauth.log_in(ann, app))["access_token"]
    told = {
        "sub": "ann@example.com",
        "email": "ann@example.com",
        "email_verified": True,
        AUTHZ: {"acctype": "user", "orgIds": [org]},
    }
    assert answer(await oauth.userinfo(token)) == told
    assert answer(await oauth.post("/oauth2/v2/userinfo", {"access_token": token})) == told
    assert answer(await oauth.post("/oauth2/v2/userinfo", {}, authorization=f"bearer {token}")) == told
    plain = (await oauth.log_in(ann, app, scope="openid"))["access_token"]
    assert set(answer(await oauth.userinfo(plain))) == {"sub", AUTHZ}


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer a b", "Basic abc", "Bearer garbage", "Bearer a.b.c"])
async def test_userinfo_rejects_whoever_has_no_good_token(oauth: OAuthEnvironment, header: str) -> None:
    sent = {"authorization": header} if header else {}
    for reply in (
        await oauth.anybody.get("/oauth2/v2/userinfo", **sent),
        await oauth.post("/oauth2/v2/userinfo", {}, **sent),
    ):
        assert reply.status == 401
        assert answer(reply)["error"] == "access_denied"
        assert reply.headers["www-authenticate"].startswith("Bearer")
    if not header:
        assert answer(reply)["error_description"] == "authorization header not set"


async def test_userinfo_rejects_two_tokens(oauth: OAuthEnvironment) -> None:
    token = (await oauth.log_in(await oauth.user("ann@example.com"), await oauth.app()))["access_token"]
    reply = await oauth.post("/oauth2/v2/userinfo", {"access_token": token}, authorization=f"Bearer {token}")
    assert reply.status == 401


async def introspect(oauth: OAuthEnvironment, token: str, app: App | None = None, **headers: str) -> Reply:
    return await oauth.post("/oauth2/v2/introspect", {"token": token, **(app.proof if app else {})}, **headers)


async def test_introspection_tells_a_client_of_its_own_tokens_and_a_service_of_all(oauth: OAuthEnvironment) -> None:
    ann, app, other = await oauth.user("ann@example.com"), await oauth.app(), await oauth.app()
    token = (await oauth.log_in(ann, app))["access_token"]
    service = (await oauth.api.tokens.issue_for_service("unikorn-region")).token.reveal()
    for reply in (
        await introspect(oauth, token, app),
        await introspect(oauth, token, authorization=f"Bearer {service}"),
    ):
        told = answer(reply)
        assert told["active"] is True
        assert (told["sub"], told["client_id"]) == ("ann@example.com", app.id)
        assert (told["scope"], told["iss"]) == ("openid email", ISSUER)
    assert answer(await introspect(oauth, token, other)) == {"active": False}
    assert answer(await introspect(oauth, "garbage", app)) == {"active": False}
    await oauth.api.sessions.end_all(ann.name)
    assert answer(await introspect(oauth, token, app)) == {"active": False}


async def test_introspection_tells_whether_a_refresh_token_is_the_good_one(oauth: OAuthEnvironment) -> None:
    ann, app, other = await oauth.user("ann@example.com"), await oauth.app(), await oauth.app()
    first = (await oauth.log_in(ann, app))["refresh_token"]
    assert answer(await introspect(oauth, first, app))["active"] is True
    second = answer(await oauth.refresh(first, app))["refresh_token"]
    assert answer(await introspect(oauth, first, app)) == {"active": False}
    assert answer(await introspect(oauth, second, other)) == {"active": False}
    told = answer(await introspect(oauth, second, app))
    assert (told["active"], told["client_id"], told["scope"]) == (True, app.id, "openid email")


async def test_introspection_is_for_those_who_can_prove_who_they_are(oauth: OAuthEnvironment) -> None:
    ann, app, public = await oauth.user("ann@example.com"), await oauth.app(), await oauth.app(is_public=True)
    token = (await oauth.log_in(ann, app))["access_token"]
    assert rejection(await introspect(oauth, token)) == (400, "invalid_request")
    assert rejection(await introspect(oauth, token, App(app.id, "wrong"))) == (401, "access_denied")
    assert rejection(await introspect(oauth, token, public)) == (400, "unauthorized_client")
    assert rejection(await introspect(oauth, token, authorization=f"Bearer {token}")) == (401, "access_denied")
    assert rejection(await introspect(oauth, token, authorization="Bearer garbage")) == (401, "access_denied")


async def revoke(oauth: OAuthEnvironment, token: str, app: App | None = None, **headers: str) -> Reply:
    return await oauth.post("/oauth2/v2/revoke", {"token": token, **(app.proof if app else {})}, **headers)


async def test_a_client_revokes_an_access_token(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    tokens = await oauth.log_in(ann, app)
    for _ in range(2):
        assert (await revoke(oauth, tokens["access_token"], app)).status == 200
        assert not await oauth.is_good(tokens["access_token"])
    assert (await oauth.refresh(tokens["refresh_token"], app)).status == 200


async def test_revoking_a_refresh_token_ends_the_session(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app(is_public=True)
    tokens = await oauth.log_in(ann, app)
    assert (await revoke(oauth, tokens["refresh_token"], app)).status == 200
    assert not await oauth.is_good(tokens["access_token"])
    assert rejection(await oauth.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
    assert (await revoke(oauth, tokens["refresh_token"], app)).status == 200


async def test_who_has_a_token_may_revoke_it_and_nobody_elses(oauth: OAuthEnvironment) -> None:
    ann, bob, app = await oauth.user("ann@example.com"), await oauth.user("bob@example.com"), await oauth.app()
    hers, his = await oauth.log_in(ann, app), await oauth.log_in(bob, app)
    bearer = f"Bearer {his['access_token']}"
    for token in (hers["access_token"], hers["refresh_token"]):
        assert rejection(await revoke(oauth, token, authorization=bearer)) == (400, "unauthorized_client")
        assert rejection(await revoke(oauth, token, await oauth.app())) == (400, "unauthorized_client")
        assert rejection(await revoke(oauth, token)) == (400, "invalid_request")
    assert await oauth.is_good(hers["access_token"])
    assert (await revoke(oauth, his["access_token"], authorization=bearer)).status == 200
    assert not await oauth.is_good(his["access_token"])


async def test_revoking_what_is_no_token_is_fine(oauth: OAuthEnvironment) -> None:
    app = await oauth.app()
    for token in ("garbage", "a.b.c", "x" * 9000):
        assert (await revoke(oauth, token, app)).status == 200
    assert (await oauth.post("/oauth2/v2/revoke", app.proof)).status == 400


async def test_the_documents_say_where_everything_is_and_only_what_is_true(oauth: OAuthEnvironment) -> None:
    openid = answer(await oauth.anybody.get("/.well-known/openid-configuration"))
    assert answer(await oauth.anybody.get("/.well-known/oauth-authorization-server")) == openid
    assert openid["issuer"] == ISSUER
    endpoints = {name: value for name, value in openid.items() if name.endswith(("_endpoint", "_uri"))}
    assert len(endpoints) == 8
    assert all(value.startswith(f"{ISSUER}/oauth2/v2/") for value in endpoints.values())
    assert openid["response_types_supported"] == ["code"]
    assert openid["scopes_supported"] == ["openid", "email", "profile"]
    assert openid["id_token_signing_alg_values_supported"] == ["ES512"]
    await _assert_grants_are_known(oauth, openid["grant_types_supported"])
    resource = answer(await oauth.anybody.get("/.well-known/openid-protected-resource", host="evil.example.com"))
    assert resource == {
        "resource": ISSUER,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["openid", "email", "profile"],
        "bearer_methods_supported": ["header"],
    }


async def _assert_grants_are_known(oauth: OAuthEnvironment, grants: list[Any]) -> None:
    for grant in grants:
        reply = await oauth.token({"grant_type": grant})
        assert rejection(reply) == (400, "invalid_request")
        assert answer(reply)["error_description"] != "token grant type is not supported"
