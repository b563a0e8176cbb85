"""Signing keys: made once, renewed in time, published before they sign, and kept while anything they signed lives."""

import asyncio
from datetime import timedelta

import pytest

from remuda.identity.kinds.tokens import SigningKey
from remuda.identity.tokens.keys import ANNOUNCED, NAME
from remuda.kernel.errors import Conflict, Unauthenticated
from tests.kit.environment import options
from tests.kit.identity.oauth import OAuthEnvironment, answer, said

LIFE = timedelta(days=90)


async def kid_of_new_token(oauth: OAuthEnvironment) -> str:
    issued = await oauth.api.tokens.issue_for_service("unikorn-region")
    return str(said(issued.token.reveal())[0]["kid"])


@options(seeds=10)
async def test_processes_that_start_at_once_have_one_key_between_them(oauth: OAuthEnvironment) -> None:
    resources = [oauth.new_api() for _ in range(5)]
    found = await asyncio.gather(*(tokens.keys.current() for tokens in resources))
    assert len({each.kid for each in found}) == 1
    assert len((await oauth.store.get(SigningKey, NAME)).spec.private_keys) == 1


async def test_the_public_keys_are_published_and_verify_what_we_sign(oauth: OAuthEnvironment) -> None:
    kid = await kid_of_new_token(oauth)
    (key,) = answer(await oauth.anybody.get("/oauth2/v2/jwks"))["keys"]
    assert set(key) == {"use", "kty", "crv", "alg", "kid", "x", "y"}
    assert (key["use"], key["kty"], key["crv"], key["alg"]) == ("sig", "EC", "P-521", "ES512")
    assert key["kid"] == kid


async def test_a_new_key_is_published_for_a_while_before_it_signs(oauth: OAuthEnvironment) -> None:
    first = await kid_of_new_token(oauth)
    oauth.clock.move(LIFE)
    await oauth.api.keys.rotate()
    published = [key["kid"] for key in answer(await oauth.anybody.get("/oauth2/v2/jwks"))["keys"]]
    assert len(published) == 2
    assert await kid_of_new_token(oauth) == first
    oauth.clock.move(ANNOUNCED)
    assert await kid_of_new_token(oauth) == published[0] != first


async def test_a_key_is_not_renewed_before_its_time(oauth: OAuthEnvironment) -> None:
    await oauth.api.keys.current()
    before = await oauth.store.get(SigningKey, NAME)
    oauth.clock.move(LIFE / 2)
    assert await oauth.api.keys.rotate() == pytest.approx((LIFE / 2).total_seconds())
    assert await oauth.store.get(SigningKey, NAME) == before


@options(seeds=10)
async def test_processes_that_renew_at_once_make_one_key(oauth: OAuthEnvironment) -> None:
    await oauth.api.keys.current()
    oauth.clock.move(LIFE)
    resources = [oauth.new_api() for _ in range(4)]
    ends = await asyncio.gather(*(tokens.keys.rotate() for tokens in resources), return_exceptions=True)
    assert all(isinstance(end, float | Conflict) for end in ends)
    assert len((await oauth.store.get(SigningKey, NAME)).spec.private_keys) == 2


@options(signing_key_lifetime=LIFE / 4)
async def test_a_token_outlives_several_rotations_and_its_key_goes_when_none_of_its_tokens_can_be_alive(
    oauth: OAuthEnvironment,
) -> None:
    account = await oauth.api.tokens.issue_for_account("some-account", "some-organization")
    token = account.token.reveal()
    for _ in range(3):
        oauth.clock.move(LIFE / 4)
        await oauth.api.keys.rotate()
        assert (await oauth.new_api().tokens.verify(token)).sub == "some-account"
    kid = said(token)[0]["kid"]
    oauth.clock.move(3 * LIFE)
    await oauth.api.keys.rotate()
    with pytest.raises(Unauthenticated):
        await oauth.api.tokens.verify(token)
    assert await oauth.api.keys.find(kid) is None
    published = [key["kid"] for key in answer(await oauth.anybody.get("/oauth2/v2/jwks"))["keys"]]
    assert kid not in published


async def test_a_verified_token_is_not_believed_any_more_when_its_key_was_taken_away(oauth: OAuthEnvironment) -> None:
    token = (await oauth.api.tokens.issue_for_service("unikorn-region")).token.reveal()
    await oauth.api.tokens.verify(token)
    await oauth.remove(SigningKey, NAME)
    with pytest.raises(Unauthenticated):
        await oauth.api.tokens.verify(token)
