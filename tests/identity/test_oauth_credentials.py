"""Client credentials: a service proves its name by what its key has signed, once for each assertion."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

from remuda.identity.oauth.clients import ASSERTION_TYPE
from remuda.identity.settings import SystemAccount
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.oauth import CALLBACK, ISSUER, VERIFIER, OAuthEnvironment, answer, rejection, said

Key = ECKey | RSAKey | OKPKey

SERVICE = "unikorn-region"
KEY = ECKey.generate_key("P-256")
KEYS: Mapping[str, tuple[Key, str]] = {
    "P-256": (KEY, "ES256"),
    "P-521": (ECKey.generate_key("P-521"), "ES512"),
    "RSA": (RSAKey.generate_key(2048), "PS256"),
    "Ed25519": (OKPKey.generate_key("Ed25519"), "Ed25519"),
}


def public(key: Key) -> str:
    return key.as_pem(private=False).decode()


def accounts(key: Key = KEY) -> dict[str, SystemAccount]:
    """Return one service with a key, and one with a certificate alone."""
    return {
        SERVICE: SystemAccount(role="region-service", public_key=public(key)),
        "unikorn-compute": SystemAccount(role="compute-service"),
    }


def assertion(oauth: OAuthEnvironment, *, key: Key = KEY, header: dict[str, Any] | None = None, **claims: Any) -> str:
    now = int(oauth.clock.now().timestamp())
    given = {
        "iss": SERVICE,
        "sub": SERVICE,
        "aud": f"{ISSUER}/oauth2/v2/token",
        "jti": oauth.new_id(),
        "iat": now,
        "exp": now + 60,
        **claims,
    }
    given = {name: value for name, value in given.items() if value is not None}
    head = {"alg": "ES256", **(header or {})}
    return jwt.encode(head, given, key, algorithms=[head["alg"]])


async def ask(oauth: OAuthEnvironment, signed: str, **form: str) -> Reply:
    return await oauth.token(
        {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": signed,
            **form,
        }
    )


@pytest.mark.parametrize("name", KEYS)
@options(lambda name: {"system_accounts": accounts(KEYS[name][0])})
async def test_a_service_gets_a_token_for_what_its_key_has_signed(oauth: OAuthEnvironment, name: str) -> None:
    key, algorithm = KEYS[name]
    reply = await ask(oauth, assertion(oauth, key=key, header={"alg": algorithm}))
    tokens = answer(reply)
    assert set(tokens) == {"access_token", "token_type", "expires_in"}
    claims = said(tokens["access_token"])[1]
    assert (claims["typ"], claims["sub"]) == ("svc", SERVICE)
    info = answer(await oauth.userinfo(tokens["access_token"]))
    assert info["https://unikorn-cloud.org/authz"] == {"acctype": "system", "orgIds": []}


@options(system_accounts=accounts())
async def test_the_issuer_itself_is_an_audience_and_so_is_one_of_several(oauth: OAuthEnvironment) -> None:
    assert (await ask(oauth, assertion(oauth, aud=ISSUER))).status == 200
    assert (await ask(oauth, assertion(oauth, aud=["https://other.example.com", ISSUER]))).status == 200


@options(system_accounts=accounts())
async def test_without_an_assertion_there_is_no_token(oauth: OAuthEnvironment) -> None:
    reply = await oauth.token({"grant_type": "client_credentials", "client_id": SERVICE})
    assert rejection(reply) == (400, "invalid_request")
    assert answer(reply)["error_description"] == "mTLS client verification failed: send client_assertion"
    wrong = await ask(oauth, assertion(oauth), client_assertion_type="urn:other")
    assert rejection(wrong) == (400, "invalid_request")


Make = Callable[[OAuthEnvironment], str]
REFUSED: Mapping[str, Make] = {
    "another key": lambda oauth: assertion(oauth, key=ECKey.generate_key("P-256")),
    "another audience": lambda oauth: assertion(oauth, aud="https://other.example.com"),
    "an end in the past": lambda oauth: assertion(oauth, exp=1),
    "too long a life": lambda oauth: assertion(oauth, exp=int(oauth.clock.now().timestamp()) + 600),
    "no end": lambda oauth: assertion(oauth, exp=None),
    "a beginning in the future": lambda oauth: assertion(oauth, nbf=int(oauth.clock.now().timestamp()) + 30),
    "no id": lambda oauth: assertion(oauth, jti=None),
    "an empty id": lambda oauth: assertion(oauth, jti=""),
    "another issuer": lambda oauth: assertion(oauth, iss="unikorn-compute"),
    "a service without a key": lambda oauth: assertion(oauth, iss="unikorn-compute", sub="unikorn-compute"),
    "an unknown service": lambda oauth: assertion(oauth, iss="nobody", sub="nobody"),
    "a key of its own": lambda oauth: assertion(oauth, header={"jwk": KEY.as_dict(private=False)}),
    "garbage": lambda _oauth: "garbage",
    "dots": lambda _oauth: "..",
    "too long": lambda oauth: assertion(oauth, note="x" * 9000),
}


@pytest.mark.parametrize("what", REFUSED)
@options(system_accounts=accounts())
async def test_an_assertion_that_does_not_hold_is_refused(oauth: OAuthEnvironment, what: str) -> None:
    assert rejection(await ask(oauth, REFUSED[what](oauth))) == (401, "access_denied")


@options(system_accounts=accounts())
async def test_an_unsigned_or_symmetric_assertion_is_refused(oauth: OAuthEnvironment) -> None:
    head, body, _ = assertion(oauth).split(".")
    assert rejection(await ask(oauth, f"eyJhbGciOiJub25lIn0.{body}.")) == (401, "access_denied")
    assert rejection(await ask(oauth, f"eyJhbGciOiJIUzI1NiJ9.{body}.AAAA")) == (401, "access_denied")
    assert rejection(await ask(oauth, f"{head}.{body}.AAAA")) == (401, "access_denied")


@options(seeds=10, system_accounts=accounts())
async def test_an_assertion_counts_once_also_when_it_comes_twice_at_once(oauth: OAuthEnvironment) -> None:
    signed = assertion(oauth)
    replies = await asyncio.gather(*(ask(oauth, signed) for _ in range(3)))
    assert sorted(reply.status for reply in replies) == [200, 401, 401]
    oauth.clock.move(timedelta(seconds=30))
    assert rejection(await ask(oauth, signed)) == (401, "access_denied")
    assert (await ask(oauth, assertion(oauth))).status == 200


@options(system_accounts=accounts())
async def test_a_service_that_was_taken_out_of_the_configuration_has_no_good_token(oauth: OAuthEnvironment) -> None:
    issued = await oauth.api.tokens.issue_for_service("unikorn-gone")
    assert not await oauth.is_good(issued.token.reveal())


@options(system_accounts=accounts())
async def test_a_registered_client_proves_itself_by_its_key_and_has_no_permissions_of_its_own(
    oauth: OAuthEnvironment,
) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app(public_key=public(KEY), secret_hash="")
    mine: dict[str, Any] = {"iss": app.id, "sub": app.id}
    assert rejection(await ask(oauth, assertion(oauth, **mine))) == (400, "unauthorized_client")
    form = {
        "grant_type": "authorization_code",
        "code": await oauth.code(ann, app),
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "client_assertion_type": ASSERTION_TYPE,
    }
    service = {**form, "client_assertion": assertion(oauth)}
    assert rejection(await oauth.token(service)) == (401, "access_denied")
    other = {**form, "client_assertion": assertion(oauth, **mine), "client_id": "other"}
    assert rejection(await oauth.token(other)) == (401, "access_denied")
    assert (await oauth.token({**form, "client_assertion": assertion(oauth, **mine)})).status == 200
