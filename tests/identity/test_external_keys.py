"""The keys of external issuers: asked for seldom, and never trusted for ever."""

import asyncio
from typing import Any

import pytest

from remuda.identity.ports import Fetched
from remuda.kernel.errors import Unauthenticated, Unavailable
from tests.kit.identity.external_issuer import (
    ELSEWHERE,
    Issuer,
    IssuerEnvironment,
    key,
    published,
    signed,
)

ANN = "ann@example.com"
KEYS = f"{ELSEWHERE}/.well-known/jwks.json"
DISCOVERY = f"{ELSEWHERE}/.well-known/openid-configuration"
NOT_VALID = "token validation failed"
NO_KEYS = "The keys of the token's issuer cannot be read"


async def ready(external_issuer: IssuerEnvironment, **trust: Any) -> None:
    await external_issuer.user(ANN)
    await external_issuer.trust(**trust)


async def is_in(external_issuer: IssuerEnvironment, token: str | None = None) -> bool:
    """Tell whether a token is let in; a new one, which nobody remembers, unless given."""
    token = token or fresh(external_issuer)
    return (await external_issuer.let_in(token)).subject == ANN


def fresh(external_issuer: IssuerEnvironment, kid: str | None = "one", by: Any = None) -> str:
    claims = external_issuer.issuer.claims(
        ANN, jti=external_issuer.new_id(), exp=external_issuer.clock.now().timestamp() + 10**6
    )
    return signed({"alg": "RS256", "kid": kid}, claims, by or key())


def throttled(external_issuer: IssuerEnvironment) -> float:
    return external_issuer.counted("remuda_external_key_refreshes_throttled_total")


async def test_keys_are_read_once_for_many_tokens(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    assert await asyncio.gather(*(is_in(external_issuer) for _ in range(10))) == [True] * 10
    assert await is_in(external_issuer, fresh(external_issuer, None))
    assert external_issuer.issuer.asked == [KEYS]
    assert throttled(external_issuer) == 0


async def test_made_up_keys_make_us_ask_once_a_minute(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    await is_in(external_issuer)
    for number in range(5):
        assert await external_issuer.rejection(fresh(external_issuer, f"made-up-{number}")) == NOT_VALID
    assert (external_issuer.issuer.asked, throttled(external_issuer)) == ([KEYS], 5)
    await external_issuer.clock.sleep(61)
    for number in range(5):
        assert await external_issuer.rejection(fresh(external_issuer, f"made-up-{number}")) == NOT_VALID
    assert (external_issuer.issuer.asked, throttled(external_issuer)) == ([KEYS] * 2, 9)
    assert await is_in(external_issuer)


async def test_a_new_key_is_known_within_a_minute(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    await is_in(external_issuer)
    external_issuer.issuer.publish(published(key()), published(key(kid="two")))
    token = fresh(external_issuer, "two", key(kid="two"))
    assert await external_issuer.rejection(token) == NOT_VALID
    await external_issuer.clock.sleep(61)
    assert await is_in(external_issuer, token)
    assert await is_in(external_issuer)


async def test_a_key_that_was_withdrawn_ends_what_it_signed_however_well_that_is_remembered(
    external_issuer: IssuerEnvironment,
) -> None:

    async def is_let_in(external_issuer: IssuerEnvironment, token: str) -> bool:
        try:
            return await is_in(external_issuer, token)
        except Unauthenticated:
            return False

    await ready(external_issuer)
    token = fresh(external_issuer)
    assert await is_in(external_issuer, token)
    external_issuer.issuer.publish(published(key(kid="two")))
    asked = 0
    while asked < 45 and await is_let_in(external_issuer, token):
        await external_issuer.clock.sleep(60)
        asked += 1
    assert 15 <= asked <= 31
    assert await external_issuer.rejection(token) == NOT_VALID
    assert await is_in(external_issuer, fresh(external_issuer, "two", key(kid="two")))


async def test_a_key_that_was_withdrawn_lets_nobody_in_after_a_long_silence(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    token = fresh(external_issuer)
    await is_in(external_issuer, token)
    external_issuer.issuer.publish(published(key(kid="two")))
    await external_issuer.clock.sleep(2000)
    assert await external_issuer.rejection(token) == NOT_VALID


async def test_keys_in_use_are_renewed_behind_the_back_of_those_who_use_them(
    external_issuer: IssuerEnvironment,
) -> None:
    may_answer, answer = asyncio.Event(), external_issuer.issuer.__call__

    async def slow(*asked: Any, organization: str) -> Fetched:
        await may_answer.wait()
        return await answer(*asked, organization=organization)

    await ready(external_issuer)
    await is_in(external_issuer)
    await external_issuer.clock.sleep(1000)
    external_issuer.external._keys._fetch = slow
    assert await is_in(external_issuer), "it does not wait"
    external_issuer.issuer.publish(published(key(kid="two")))
    may_answer.set()
    await external_issuer.clock.sleep(1)
    assert external_issuer.issuer.asked == [KEYS] * 2
    assert await external_issuer.rejection(fresh(external_issuer)) == NOT_VALID


async def test_who_gives_up_waiting_does_not_keep_others_from_the_keys(external_issuer: IssuerEnvironment) -> None:
    may_answer, answer = asyncio.Event(), external_issuer.issuer.__call__

    async def slow(*asked: Any, organization: str) -> Fetched:
        await may_answer.wait()
        return await answer(*asked, organization=organization)

    await ready(external_issuer)
    external_issuer.external._keys._fetch = slow
    impatient = asyncio.create_task(external_issuer.let_in(fresh(external_issuer)))
    patient = asyncio.create_task(is_in(external_issuer))
    await external_issuer.clock.sleep(1)
    impatient.cancel()
    await external_issuer.clock.sleep(1)
    may_answer.set()
    assert await patient
    assert impatient.cancelled()
    assert external_issuer.issuer.asked == [KEYS]


async def test_an_issuer_that_does_not_answer_is_no_fault_of_the_token(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    external_issuer.issuer.is_down = True
    for _ in range(3):
        error = await external_issuer.error(fresh(external_issuer))
        assert isinstance(error, Unavailable)
        assert error.message.startswith(NO_KEYS)
    assert (external_issuer.issuer.asked, throttled(external_issuer)) == ([KEYS], 2)
    external_issuer.issuer.is_down = False
    await external_issuer.clock.sleep(61)
    assert await is_in(external_issuer)


async def test_keys_stay_good_for_a_day_while_their_issuer_does_not_answer(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    await is_in(external_issuer)
    external_issuer.issuer.is_down = True
    await external_issuer.clock.sleep(86_000)
    assert await is_in(external_issuer)
    assert await external_issuer.rejection(fresh(external_issuer, "made-up")) == NOT_VALID
    await external_issuer.clock.sleep(500)
    assert isinstance(await external_issuer.error(fresh(external_issuer)), Unavailable)
    external_issuer.issuer.is_down = False
    await external_issuer.clock.sleep(61)
    assert await is_in(external_issuer)


@pytest.mark.parametrize(
    "page",
    [b"", b"nonsense", b"[]", b"{}", b'{"keys": 7}', b'{"keys": ["x"]}', b'{"keys": [{"a": "\xff"}]}', b"[" * 100_000],
)
async def test_what_are_no_keys_changes_nothing(external_issuer: IssuerEnvironment, page: bytes) -> None:
    await ready(external_issuer)
    await is_in(external_issuer)
    external_issuer.issuer.pages["/.well-known/jwks.json"] = page
    await external_issuer.clock.sleep(2000)
    assert await is_in(external_issuer)
    assert await external_issuer.rejection(fresh(external_issuer, "made-up")) == NOT_VALID


@pytest.mark.parametrize(
    "odd", [{}, {"kty": "RSA"}, {"kty": "odd", "kid": "one"}, {"kty": "RSA", "n": "!", "e": "!", "kid": "one"}]
)
async def test_a_key_that_cannot_be_read_does_not_keep_us_from_the_others(
    external_issuer: IssuerEnvironment, odd: dict[str, Any]
) -> None:
    await ready(external_issuer)
    external_issuer.issuer.publish(odd, published(key()))
    assert await is_in(external_issuer)


async def test_an_issuer_without_keys_in_the_usual_place_is_asked_where_they_are(
    external_issuer: IssuerEnvironment,
) -> None:
    await ready(external_issuer)
    keys = external_issuer.issuer.pages.pop("/.well-known/jwks.json")
    external_issuer.issuer.pages["/certs"] = keys
    external_issuer.issuer.pages["/.well-known/openid-configuration"] = {
        "issuer": ELSEWHERE,
        "jwks_uri": f"{ELSEWHERE}/certs",
    }
    assert await is_in(external_issuer)
    assert external_issuer.issuer.asked == [KEYS, DISCOVERY, f"{ELSEWHERE}/certs"]


async def test_a_discovery_of_another_issuer_is_not_followed(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    external_issuer.issuer.pages = {
        "/.well-known/openid-configuration": {"issuer": f"{ELSEWHERE}/", "jwks_uri": f"{ELSEWHERE}/certs"}
    }
    assert isinstance(await external_issuer.error(fresh(external_issuer)), Unavailable)
    assert external_issuer.issuer.asked == [KEYS, DISCOVERY]


async def test_a_slash_at_the_end_belongs_to_the_issuer_and_not_to_where_its_keys_are(
    external_issuer: IssuerEnvironment,
) -> None:
    external_issuer.issuer.url = f"{ELSEWHERE}/"
    await ready(external_issuer, issuer=external_issuer.issuer.url)
    assert await is_in(external_issuer)
    assert external_issuer.issuer.asked == [KEYS]


async def test_each_issuer_has_keys_of_its_own(external_issuer: IssuerEnvironment) -> None:
    other = Issuer(external_issuer.clock.now, "https://other.example")
    external_issuer.others.append(other)
    other.publish(published(key(kid="two")))
    await ready(external_issuer)
    await external_issuer.trust("d1111111-0000-4000-8000-000000000002", issuer=other.url)
    assert await is_in(external_issuer)
    external_issuer.issuer.is_down = True
    assert await is_in(external_issuer, signed({"alg": "RS256", "kid": "two"}, other.claims(ANN), key(kid="two")))
    assert (external_issuer.issuer.asked, other.asked) == ([KEYS], [f"{other.url}/.well-known/jwks.json"])
