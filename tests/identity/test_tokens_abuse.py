"""No token is believed that we did not sign, for this purpose, for here and for now."""

import base64
import hmac
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA512
from joserfc.jwk import ECKey

from remuda.identity.tokens.jwt import ACCESS, ID, MAX_TOKEN_BYTES, PASSPORT, Purpose
from remuda.kernel.errors import Unauthenticated
from tests.kit.identity.oauth import ISSUER, OAuthEnvironment, answer, said

Forge = Callable[[dict[str, Any], dict[str, Any], ECKey], str]
"""Makes a token of the header and claims of a good one, and the key that signed it."""


def to_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(header: dict[str, Any], claims: Any, key: ECKey) -> str:
    """Sign whatever it is, without asking whether one should."""
    parts = f"{to_base64(msgspec.json.encode(header))}.{to_base64(msgspec.json.encode(claims))}"
    assert key.private_key is not None
    r, s = decode_dss_signature(key.private_key.sign(parts.encode(), ec.ECDSA(SHA512())))
    return f"{parts}.{to_base64(r.to_bytes(66) + s.to_bytes(66))}"


def unsigned(header: dict[str, Any], claims: dict[str, Any], _key: ECKey) -> str:
    return f"{to_base64(msgspec.json.encode({**header, 'alg': 'none'}))}.{to_base64(msgspec.json.encode(claims))}."


def signed_with_the_public_key(header: dict[str, Any], claims: dict[str, Any], key: ECKey) -> str:
    head = to_base64(msgspec.json.encode({**header, "alg": "HS256"}))
    parts = f"{head}.{to_base64(msgspec.json.encode(claims))}"
    return f"{parts}.{to_base64(hmac.digest(key.as_pem(private=False), parts.encode(), 'sha256'))}"


def with_header(**more: Any) -> Forge:
    return lambda header, claims, key: signed({**header, **more}, claims, key)


def with_claims(**more: Any) -> Forge:
    return lambda header, claims, key: signed(header, {**claims, **more}, key)


def own_key_in_header(header: dict[str, Any], claims: dict[str, Any], _key: ECKey) -> str:
    mine = ECKey.generate_key("P-521")
    return signed({**header, "jwk": mine.as_dict(private=False), "kid": mine.thumbprint()}, claims, mine)


def wrong_key(header: dict[str, Any], claims: dict[str, Any], _key: ECKey) -> str:
    return signed(header, claims, ECKey.generate_key("P-521"))


def tampered(header: dict[str, Any], claims: dict[str, Any], key: ECKey) -> str:
    head, _, signature = signed(header, claims, key).split(".")
    return f"{head}.{to_base64(msgspec.json.encode({**claims, 'sub': 'unikorn-compute'}))}.{signature}"


FORGERIES: dict[str, Forge] = {
    "alg none": unsigned,
    "HS256 with the public key": signed_with_the_public_key,
    "another key": wrong_key,
    "a key of its own": own_key_in_header,
    "other claims": tampered,
    "an address of keys": with_header(jku="https://evil.example.com/keys"),
    "an address of certificates": with_header(x5u="https://evil.example.com/certificate"),
    "an extension that must be understood": with_header(crit=["b64"], b64=False),
    "an unknown key": with_header(kid="unknown"),
    "an ID token's type": with_header(typ="JWT"),
    "a passport's type": with_header(typ="passport+jwt"),
    "no type": lambda header, claims, key: signed({k: v for k, v in header.items() if k != "typ"}, claims, key),
    "another issuer": with_claims(iss="https://evil.example.com"),
    "another audience": with_claims(aud=["other.example.com"]),
    "no audience": with_claims(aud=[]),
    "an end in the past": with_claims(exp=1),
    "a beginning in the future": with_claims(nbf=2**40),
    "an end that is no number": with_claims(exp="tomorrow"),
    "an unknown type": with_claims(typ="root"),
    "claims that are no object": lambda header, _claims, key: signed(header, [1], key),
    "a length beyond all measure": with_claims(sco="x" * MAX_TOKEN_BYTES),
    "nothing in it": lambda _header, _claims, _key: "",
    "dots alone": lambda _header, _claims, _key: "..",
    "five parts": lambda _header, _claims, _key: "a.b.c.d.e",
    "no base64": lambda _header, _claims, _key: "§§§.§§§.§§§",
    "half a surrogate": lambda _header, _claims, _key: "\ud800.\ud800.\ud800",
    "deep nesting": lambda _header, _claims, _key: f"{to_base64(b'[' * 5000)}.e30.e30"[:MAX_TOKEN_BYTES],
}


@pytest.mark.parametrize("what", FORGERIES)
async def test_a_forged_token_is_refused(oauth: OAuthEnvironment, what: str) -> None:
    good = (await oauth.api.tokens.issue_for_service("unikorn-region")).token.reveal()
    header, claims = said(good)
    key = (await oauth.api.keys.current()).key
    assert (await oauth.api.tokens.verify(signed(header, claims, key))).sub == "unikorn-region"
    forged = FORGERIES[what](header, claims, key)
    with pytest.raises(Unauthenticated) as refused:
        await oauth.api.tokens.verify(forged)
    assert not forged or forged not in refused.value.message


async def test_a_token_is_good_until_it_ends_and_no_longer(oauth: OAuthEnvironment) -> None:
    token = (await oauth.api.tokens.issue_for_service("unikorn-region")).token.reveal()
    claims = await oauth.api.tokens.verify(token)
    assert (claims.iss, claims.aud, claims.typ) == (ISSUER, ("identity.example.com",), "svc")
    oauth.clock.move(timedelta(hours=1, seconds=-1))
    await oauth.api.tokens.verify(token)
    oauth.clock.move(timedelta(seconds=1))
    with pytest.raises(Unauthenticated):
        await oauth.api.tokens.verify(token)


async def test_what_was_made_for_one_purpose_is_refused_for_every_other(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    tokens = await oauth.log_in(ann, app)
    exchanged = await oauth.token(
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": tokens["access_token"],
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        }
    )
    made = {ACCESS.typ: tokens["access_token"], ID.typ: tokens["id_token"]}
    made[PASSPORT.typ] = answer(exchanged)["access_token"]
    purposes: list[Purpose[Any]] = [ACCESS, ID, PASSPORT]
    for purpose in purposes:
        for typ, token in made.items():
            if typ == purpose.typ:
                await oauth.api.tokens.read(token, purpose)
                continue
            with pytest.raises(Unauthenticated):
                await oauth.api.tokens.read(token, purpose)
    for token in (tokens["id_token"], made[PASSPORT.typ], tokens["refresh_token"]):
        assert not await oauth.is_good(token)


async def test_a_service_account_has_the_one_token_that_is_stored_with_it(oauth: OAuthEnvironment) -> None:
    org = await oauth.organization()
    robot = await oauth.account(org)
    first, second = [await oauth.api.tokens.issue_for_account(robot.name, org) for _ in range(2)]
    replace = msgspec.structs.replace
    spec = replace(robot.spec, access_token=first.hash, token_id=first.id, expiry=first.expires)
    robot = await oauth.store.update(replace(robot, spec=spec))
    assert await oauth.is_good(first.token.reveal())
    assert not await oauth.is_good(second.token.reveal())
    await oauth.store.update(replace(robot, spec=replace(robot.spec, access_token=second.hash)))
    assert not await oauth.is_good(first.token.reveal())
    assert await oauth.is_good(second.token.reveal())
    await oauth.remove(type(robot), robot.name)
    assert not await oauth.is_good(second.token.reveal())


async def test_a_revoked_token_is_refused_at_once(oauth: OAuthEnvironment) -> None:
    issued = await oauth.api.tokens.issue_for_service("unikorn-region")
    assert await oauth.is_good(issued.token.reveal())
    await oauth.api.tokens.revoke(issued.id, expires=issued.expires)
    await oauth.api.tokens.revoke(issued.id, expires=issued.expires)
    assert not await oauth.is_good(issued.token.reveal())


async def test_an_operators_token_is_short_and_falls_with_its_user(oauth: OAuthEnvironment) -> None:
    ann = await oauth.user("ann@example.com")
    issued = await oauth.api.tokens.issue_for_operator(ann, operator="root@machine", lifetime=timedelta(days=9))
    assert issued.expires - oauth.clock.now() <= timedelta(hours=1)
    claims = await oauth.api.tokens.verify(issued.token.reveal())
    assert (claims.typ, claims.sub, claims.act) == ("op", "ann@example.com", "root@machine")
    assert await oauth.is_good(issued.token.reveal())
    await oauth.suspend(ann)
    assert not await oauth.is_good(issued.token.reveal())
