"""The authorization code grant: a code becomes tokens once, for the client and the browser that began the login."""

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from remuda.identity.kinds.oauth import AuthorizationCode
from remuda.identity.kinds.tokens import Session
from remuda.identity.oauth.audit import TOKEN, TokenAudit
from remuda.identity.tokens.jwt import ID
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import session_of_code
from tests.kit.environment import options
from tests.kit.identity.oauth import CALLBACK, ISSUER, VERIFIER, App, OAuthEnvironment, answer, rejection, said


async def test_a_code_becomes_tokens(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    tokens = await oauth.log_in(ann, app)
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "openid email")
    header, claims = said(tokens["access_token"])
    assert (header["typ"], header["alg"]) == ("at+jwt", "ES512")
    assert (claims["sub"], claims["uid"], claims["cid"]) == ("ann@example.com", ann.name, app.id)
    assert await oauth.is_good(tokens["access_token"])
    assert (await oauth.refresh(tokens["refresh_token"], app)).status == 200


async def test_an_id_token_says_who_logged_in_when_and_for_whom(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    when = oauth.clock.now() - timedelta(minutes=9)
    tokens = await oauth.log_in(ann, app, authenticated=when)
    claims = await oauth.api.tokens.read(tokens["id_token"], ID)
    assert (claims.iss, claims.sub, claims.aud, claims.azp) == (ISSUER, "ann@example.com", (app.id,), app.id)
    assert (claims.nonce, claims.auth_time) == ("a-nonce", int(when.timestamp()))
    assert (claims.email, claims.email_verified) == ("ann@example.com", True)
    half = hashlib.sha512(tokens["access_token"].encode()).digest()[:32]
    assert claims.at_hash == base64.urlsafe_b64encode(half).rstrip(b"=").decode()
    plain = await oauth.log_in(ann, app, scope="openid")
    assert (await oauth.api.tokens.read(plain["id_token"], ID)).email == ""
    assert "id_token" not in await oauth.log_in(ann, app, scope="email")


async def test_a_client_may_prove_itself_in_the_header(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    code = await oauth.code(ann, app)
    wrong = await oauth.token({**form, "code": code}, authorization=App(app.id, "wrong").basic)
    assert rejection(wrong) == (401, "access_denied")
    assert wrong.headers["www-authenticate"].startswith("Basic")
    both = await oauth.token({**form, "code": code, "client_secret": app.secret}, authorization=app.basic)
    assert rejection(both) == (400, "invalid_request")
    other = await oauth.token({**form, "code": code, "client_id": "other"}, authorization=app.basic)
    assert rejection(other) == (400, "invalid_request")
    broken = await oauth.token({**form, "code": code}, authorization="Basic §§")
    assert rejection(broken) == (400, "invalid_request")
    assert (await oauth.token({**form, "code": code}, authorization=app.basic)).status == 200


REFUSED: Mapping[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "no code": ({"code": None}, (400, "invalid_request")),
    "no redirect_uri": ({"redirect_uri": None}, (400, "invalid_request")),
    "an undecodable code": ({"code": "no code at all"}, (400, "invalid_request")),
    "an unknown code": ({"code": "x" * 43}, (400, "invalid_grant")),
    "another redirect_uri": ({"redirect_uri": f"{CALLBACK}/"}, (400, "invalid_grant")),
    "no verifier": ({"code_verifier": None}, (400, "invalid_client")),
    "another verifier": ({"code_verifier": VERIFIER[::-1]}, (400, "invalid_client")),
    "no client": ({"client_id": None, "client_secret": None}, (400, "invalid_request")),
    "an unknown client": ({"client_id": "unknown"}, (401, "access_denied")),
    "a client id that can be nobody's": ({"client_id": "../../*"}, (401, "access_denied")),
    "no secret": ({"client_secret": None}, (401, "access_denied")),
    "another secret": ({"client_secret": "wrong"}, (401, "access_denied")),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_an_exchange_with_something_wrong_is_refused_and_changes_nothing(
    oauth: OAuthEnvironment, what: str
) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    code = await oauth.code(ann, app)
    form, expected = REFUSED[what]
    assert rejection(await oauth.redeem(code, app, **form)) == expected
    assert (await oauth.redeem(code, app)).status == 200


async def test_a_code_of_another_client_is_refused(oauth: OAuthEnvironment) -> None:
    ann, app, other = await oauth.user("ann@example.com"), await oauth.app(), await oauth.app()
    code = await oauth.code(ann, app)
    assert rejection(await oauth.redeem(code, other)) == (400, "invalid_grant")
    assert (await oauth.redeem(code, app)).status == 200


async def test_a_code_lives_for_a_minute(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    code = await oauth.code(ann, app)
    oauth.clock.move(timedelta(minutes=1))
    assert rejection(await oauth.redeem(code, app)) == (400, "invalid_grant")


async def test_a_challenge_is_never_its_own_verifier(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    code = await oauth.code(ann, app, challenge=VERIFIER)
    assert rejection(await oauth.redeem(code, app)) == (400, "invalid_client")


async def test_a_login_without_a_challenge_needs_a_client_registered_without_and_takes_no_verifier(
    oauth: OAuthEnvironment,
) -> None:
    ann, public = await oauth.user("ann@example.com"), await oauth.app(is_public=True)
    strict, app = await oauth.app(), await oauth.app(is_challenge_optional=True)
    code = await oauth.code(ann, strict, challenge="")
    assert rejection(await oauth.redeem(code, strict, code_verifier=None)) == (400, "invalid_client")
    code = await oauth.code(ann, app, challenge="")
    assert rejection(await oauth.redeem(code, app)) == (400, "invalid_client")  # a downgrade
    assert (await oauth.redeem(code, app, code_verifier=None)).status == 200
    code = await oauth.code(ann, public, challenge="")
    assert rejection(await oauth.redeem(code, public, code_verifier=None)) == (400, "invalid_client")


async def test_a_public_client_needs_no_secret_and_has_none(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app(is_public=True)
    code = await oauth.code(ann, app)
    assert rejection(await oauth.redeem(code, app, client_secret="guess")) == (401, "access_denied")
    assert (await oauth.redeem(code, app)).status == 200


async def test_a_suspended_user_gets_no_tokens(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    code = await oauth.code(ann, app)
    await oauth.suspend(ann)
    assert rejection(await oauth.redeem(code, app)) == (401, "access_denied")


async def test_a_code_that_comes_twice_ends_the_session_that_began_with_it(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    code = await oauth.code(ann, app)
    tokens = answer(await oauth.redeem(code, app))
    oauth.clock.move(timedelta(minutes=30))
    assert await oauth.is_good(tokens["access_token"])
    assert rejection(await oauth.redeem(code, app)) == (400, "invalid_grant")
    assert not await oauth.is_good(tokens["access_token"])
    assert rejection(await oauth.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")


@options(seeds=40)
async def test_of_many_who_come_with_a_code_at_once_none_keeps_a_session(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    code = await oauth.code(ann, app)
    replies = await asyncio.gather(*(oauth.redeem(code, app) for _ in range(4)))
    won = [answer(reply) for reply in replies if reply.status == 200]
    lost = [rejection(reply) for reply in replies if reply.status != 200]
    assert len(won) <= 1
    assert set(lost) == {(400, "invalid_grant")}
    for tokens in won:
        assert not await oauth.is_good(tokens["access_token"])
    assert not (await oauth.store.list(Session)).items


async def test_after_a_crash_between_using_a_code_and_the_answer_the_code_is_of_no_use(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    code = await oauth.code(ann, app)
    codes, sessions, name = oauth.oauth.grants.codes, oauth.api.sessions, token_hash(code)
    records = TokenAudit(store=oauth.store, operation=TOKEN, trace_id="trace")
    await codes.use(await oauth.store.get(AuthorizationCode, name), ending=records.of_forced_end)
    assert rejection(await oauth.redeem(code, app)) == (400, "invalid_grant")
    await sessions.begin(user=ann, client=app.id, code=name, refresh=sessions.new_refresh(code=name))
    assert rejection(await oauth.redeem(code, app)) == (400, "invalid_grant")
    assert await sessions.find(session_of_code(name)) is None


async def test_a_missing_grant_type_is_told_as_by_every_api_and_an_unknown_one_in_oauths_words(
    oauth: OAuthEnvironment,
) -> None:
    missing = await oauth.token({"code": "x"})
    assert missing.status == 400
    assert "grant_type" in answer(missing)["error_description"]
    assert "trace_id" in answer(missing)
    unknown = await oauth.token({"grant_type": "password"})
    assert rejection(unknown) == (400, "invalid_request")
    assert answer(unknown)["error_description"] == "token grant type is not supported"


@pytest.mark.parametrize("name", ["code", "client_secret", "refresh_token", "subject_token", "scope"])
async def test_nothing_is_taken_from_the_query(oauth: OAuthEnvironment, name: str) -> None:
    reply = await oauth.anybody.send(
        "POST",
        "/oauth2/v2/token",
        query={name: "x"},
        body=b"grant_type=authorization_code",
        headers={"content_type": "application/x-www-form-urlencoded"},
    )
    assert rejection(reply) == (400, "invalid_request")
    assert answer(reply)["error_description"] == f"{name} must be supplied in the form body"
