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
from remuda.identity.oauth.audit import TOKEN, Records
from remuda.identity.tokens.jwt import ID
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import session_of_code
from tests.identity.tokens_desk import CALLBACK, ISSUER, VERIFIER, App, Desk, answer, at_a_desk, refusal, said


def test_a_code_becomes_tokens() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        tokens = await desk.log_in(ann, app)
        assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "openid email")
        header, claims = said(tokens["access_token"])
        assert (header["typ"], header["alg"]) == ("at+jwt", "ES512")
        assert (claims["sub"], claims["uid"], claims["cid"]) == ("ann@example.com", ann.name, app.id)
        assert await desk.is_good(tokens["access_token"])
        assert (await desk.refresh(tokens["refresh_token"], app)).status == 200

    at_a_desk(scenario)


def test_an_id_token_says_who_logged_in_when_and_for_whom() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        when = desk.clock.now() - timedelta(minutes=9)
        tokens = await desk.log_in(ann, app, authenticated=when)
        claims = await desk.room.tokens.read(tokens["id_token"], ID)
        assert (claims.iss, claims.sub, claims.aud, claims.azp) == (ISSUER, "ann@example.com", (app.id,), app.id)
        assert (claims.nonce, claims.auth_time) == ("a-nonce", int(when.timestamp()))
        assert (claims.email, claims.email_verified) == ("ann@example.com", True)
        half = hashlib.sha512(tokens["access_token"].encode()).digest()[:32]
        assert claims.at_hash == base64.urlsafe_b64encode(half).rstrip(b"=").decode()
        plain = await desk.log_in(ann, app, scope="openid")
        assert (await desk.room.tokens.read(plain["id_token"], ID)).email == ""
        assert "id_token" not in await desk.log_in(ann, app, scope="email")

    at_a_desk(scenario)


def test_a_client_may_prove_itself_in_the_header() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
        code = await desk.code(ann, app)
        wrong = await desk.token({**form, "code": code}, authorization=App(app.id, "wrong").basic)
        assert refusal(wrong) == (401, "access_denied")
        assert wrong.headers["www-authenticate"].startswith("Basic")
        both = await desk.token({**form, "code": code, "client_secret": app.secret}, authorization=app.basic)
        assert refusal(both) == (400, "invalid_request")
        other = await desk.token({**form, "code": code, "client_id": "other"}, authorization=app.basic)
        assert refusal(other) == (400, "invalid_request")
        broken = await desk.token({**form, "code": code}, authorization="Basic §§")
        assert refusal(broken) == (400, "invalid_request")
        assert (await desk.token({**form, "code": code}, authorization=app.basic)).status == 200

    at_a_desk(scenario)


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
def test_an_exchange_with_something_wrong_is_refused_and_changes_nothing(what: str) -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        code = await desk.code(ann, app)
        form, expected = REFUSED[what]
        assert refusal(await desk.redeem(code, app, **form)) == expected
        assert (await desk.redeem(code, app)).status == 200

    at_a_desk(scenario)


def test_a_code_of_another_client_is_refused() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app, other = await desk.user("ann@example.com"), await desk.app(), await desk.app()
        code = await desk.code(ann, app)
        assert refusal(await desk.redeem(code, other)) == (400, "invalid_grant")
        assert (await desk.redeem(code, app)).status == 200

    at_a_desk(scenario)


def test_a_code_lives_for_a_minute() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        code = await desk.code(ann, app)
        desk.clock.move(timedelta(minutes=1))
        assert refusal(await desk.redeem(code, app)) == (400, "invalid_grant")

    at_a_desk(scenario)


def test_the_plain_method_compares_the_verifier_itself() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        for method in ("plain", ""):
            code = await desk.code(ann, app, challenge=VERIFIER, challenge_method=method)
            assert refusal(await desk.redeem(code, app, code_verifier="another")) == (400, "invalid_client")
            assert (await desk.redeem(code, app)).status == 200

    at_a_desk(scenario)


def test_a_login_without_a_challenge_needs_a_client_with_a_secret_and_takes_no_verifier() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app, public = await desk.user("ann@example.com"), await desk.app(), await desk.app(is_public=True)
        code = await desk.code(ann, app, challenge="", challenge_method="")
        assert refusal(await desk.redeem(code, app)) == (400, "invalid_client")  # a downgrade
        assert (await desk.redeem(code, app, code_verifier=None)).status == 200
        code = await desk.code(ann, public, challenge="", challenge_method="")
        assert refusal(await desk.redeem(code, public, code_verifier=None)) == (400, "invalid_client")

    at_a_desk(scenario)


def test_a_public_client_needs_no_secret_and_has_none() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app(is_public=True)
        code = await desk.code(ann, app)
        assert refusal(await desk.redeem(code, app, client_secret="guess")) == (401, "access_denied")
        assert (await desk.redeem(code, app)).status == 200

    at_a_desk(scenario)


def test_a_suspended_user_gets_no_tokens() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        code = await desk.code(ann, app)
        await desk.suspend(ann)
        assert refusal(await desk.redeem(code, app)) == (401, "access_denied")

    at_a_desk(scenario)


def test_a_code_that_comes_twice_ends_the_session_that_began_with_it() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        code = await desk.code(ann, app)
        tokens = answer(await desk.redeem(code, app))
        desk.clock.move(timedelta(minutes=30))
        assert await desk.is_good(tokens["access_token"])
        assert refusal(await desk.redeem(code, app)) == (400, "invalid_grant")
        assert not await desk.is_good(tokens["access_token"])
        assert refusal(await desk.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")

    at_a_desk(scenario)


def test_of_many_who_come_with_a_code_at_once_none_keeps_a_session() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        code = await desk.code(ann, app)
        replies = await asyncio.gather(*(desk.redeem(code, app) for _ in range(4)))
        won = [answer(reply) for reply in replies if reply.status == 200]
        lost = [refusal(reply) for reply in replies if reply.status != 200]
        assert len(won) <= 1
        assert set(lost) == {(400, "invalid_grant")}
        for tokens in won:
            assert not await desk.is_good(tokens["access_token"])
        assert not (await desk.store.list(Session)).items

    at_a_desk(scenario, seeds=40)


def test_after_a_crash_between_using_a_code_and_the_answer_the_code_is_of_no_use() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        code = await desk.code(ann, app)
        codes, sessions, name = desk.oauth.grants.codes, desk.room.sessions, token_hash(code)
        records = Records(store=desk.store, operation=TOKEN, trace_id="trace")
        await codes.use(await desk.store.get(AuthorizationCode, name), ending=records.of_forced_end)
        assert refusal(await desk.redeem(code, app)) == (400, "invalid_grant")
        await sessions.begin(user=ann, client=app.id, code=name, refresh=sessions.new_refresh(code=name))
        assert refusal(await desk.redeem(code, app)) == (400, "invalid_grant")
        assert await sessions.find(session_of_code(name)) is None

    at_a_desk(scenario)


def test_a_missing_grant_type_is_told_as_by_every_api_and_an_unknown_one_in_oauths_words() -> None:
    async def scenario(desk: Desk) -> None:
        missing = await desk.token({"code": "x"})
        assert missing.status == 400
        assert "grant_type" in answer(missing)["error_description"]
        assert "trace_id" in answer(missing)
        unknown = await desk.token({"grant_type": "password"})
        assert refusal(unknown) == (400, "invalid_request")
        assert answer(unknown)["error_description"] == "token grant type is not supported"

    at_a_desk(scenario)


@pytest.mark.parametrize("name", ["code", "client_secret", "refresh_token", "subject_token", "scope"])
def test_nothing_is_taken_from_the_query(name: str) -> None:
    async def scenario(desk: Desk) -> None:
        reply = await desk.anybody.send(
            "POST",
            "/oauth2/v2/token",
            query={name: "x"},
            body=b"grant_type=authorization_code",
            headers={"content_type": "application/x-www-form-urlencoded"},
        )
        assert refusal(reply) == (400, "invalid_request")
        assert answer(reply)["error_description"] == f"{name} must be supplied in the form body"

    at_a_desk(scenario)
