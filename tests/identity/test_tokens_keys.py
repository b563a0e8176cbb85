"""Signing keys: made once, renewed in time, published before they sign, and kept while anything they signed lives."""

import asyncio
from datetime import timedelta

import pytest

from remuda.identity.kinds.tokens import SigningKey
from remuda.identity.tokens.keys import ANNOUNCED, NAME
from remuda.kernel.errors import Conflict, Unauthenticated
from tests.identity.tokens_desk import Desk, answer, at_a_desk, said

LIFE = timedelta(days=90)


async def kid_of_new_token(desk: Desk) -> str:
    issued = await desk.room.tokens.issue_for_service("unikorn-region")
    return str(said(issued.token.reveal())[0]["kid"])


def test_processes_that_start_at_once_have_one_key_between_them() -> None:
    async def scenario(desk: Desk) -> None:
        rooms = [desk.new_room() for _ in range(5)]
        found = await asyncio.gather(*(room.keys.current() for room in rooms))
        assert len({each.kid for each in found}) == 1
        assert len((await desk.store.get(SigningKey, NAME)).spec.private_keys) == 1

    at_a_desk(scenario, seeds=10)


def test_the_public_keys_are_published_and_verify_what_we_sign() -> None:
    async def scenario(desk: Desk) -> None:
        kid = await kid_of_new_token(desk)
        (key,) = answer(await desk.anybody.get("/oauth2/v2/jwks"))["keys"]
        assert set(key) == {"use", "kty", "crv", "alg", "kid", "x", "y"}
        assert (key["use"], key["kty"], key["crv"], key["alg"]) == ("sig", "EC", "P-521", "ES512")
        assert key["kid"] == kid

    at_a_desk(scenario)


def test_a_new_key_is_published_for_a_while_before_it_signs() -> None:
    async def scenario(desk: Desk) -> None:
        first = await kid_of_new_token(desk)
        desk.clock.move(LIFE)
        await desk.room.keys.rotate()
        published = [key["kid"] for key in answer(await desk.anybody.get("/oauth2/v2/jwks"))["keys"]]
        assert len(published) == 2
        assert await kid_of_new_token(desk) == first
        desk.clock.move(ANNOUNCED)
        assert await kid_of_new_token(desk) == published[0] != first

    at_a_desk(scenario)


def test_a_key_is_not_renewed_before_its_time() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.room.keys.current()
        before = await desk.store.get(SigningKey, NAME)
        desk.clock.move(LIFE / 2)
        assert await desk.room.keys.rotate() == pytest.approx((LIFE / 2).total_seconds())
        assert await desk.store.get(SigningKey, NAME) == before

    at_a_desk(scenario)


def test_processes_that_renew_at_once_make_one_key() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.room.keys.current()
        desk.clock.move(LIFE)
        rooms = [desk.new_room() for _ in range(4)]
        ends = await asyncio.gather(*(room.keys.rotate() for room in rooms), return_exceptions=True)
        assert all(isinstance(end, float | Conflict) for end in ends)
        assert len((await desk.store.get(SigningKey, NAME)).spec.private_keys) == 2

    at_a_desk(scenario, seeds=10)


def test_a_token_outlives_several_rotations_and_its_key_goes_when_none_of_its_tokens_can_be_alive() -> None:
    async def scenario(desk: Desk) -> None:
        account = await desk.room.tokens.issue_for_account("some-account", "some-organization")
        token = account.token.reveal()
        for _ in range(3):
            desk.clock.move(LIFE / 4)
            await desk.room.keys.rotate()
            assert (await desk.new_room().tokens.verify(token)).sub == "some-account"
        kid = said(token)[0]["kid"]
        desk.clock.move(3 * LIFE)
        await desk.room.keys.rotate()
        with pytest.raises(Unauthenticated):
            await desk.room.tokens.verify(token)
        assert await desk.room.keys.find(kid) is None
        published = [key["kid"] for key in answer(await desk.anybody.get("/oauth2/v2/jwks"))["keys"]]
        assert kid not in published

    at_a_desk(scenario, signing_key_life=LIFE / 4)


def test_a_verified_token_is_not_believed_any_more_when_its_key_was_taken_away() -> None:
    async def scenario(desk: Desk) -> None:
        token = (await desk.room.tokens.issue_for_service("unikorn-region")).token.reveal()
        await desk.room.tokens.verify(token)
        await desk.remove(SigningKey, NAME)
        with pytest.raises(Unauthenticated):
            await desk.room.tokens.verify(token)

    at_a_desk(scenario)
