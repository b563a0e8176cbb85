"""Every way in which an external issuer's token can be no good."""

import re
from datetime import timedelta
from typing import Any

import pytest

from remuda.identity.tokens.jwt import unverified_claims
from remuda.kernel.encoding import from_base64url, to_base64url
from remuda.kernel.errors import Unauthenticated
from tests.kit.identity.external_issuer import (
    AUDIENCE,
    CLAIMS,
    IssuerEnvironment,
    forged,
    key,
    published,
    run_external_issuer,
    signed,
)

ANN = "ann@example.com"
NOT_VALID = "token validation failed"
NO_TOKEN = "unrecognized bearer token format"
EMAIL, VERIFIED, AUTHZ = f"{CLAIMS}/email", f"{CLAIMS}/email_verified", f"{CLAIMS}/authz"

FAMILIES = {"RS": "RSA", "PS": "RSA", "ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
ALL = [f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)]


def pair_for(algorithm: str) -> Any:
    return key(FAMILIES.get(algorithm) or FAMILIES[algorithm[:2]])


async def ready(external_issuer: IssuerEnvironment, **trust: Any) -> None:
    await external_issuer.user(ANN)
    await external_issuer.trust(**trust)


def refused(make: Any, sentence: str = NOT_VALID, **trust: Any) -> None:
    """Hold that the token that `make` makes of a lobby is refused, and that a good one is not."""

    async def scenario(external_issuer: IssuerEnvironment) -> None:
        await ready(external_issuer, **trust)
        assert sentence in await external_issuer.rejection(make(external_issuer))
        good = {AUTHZ: {"acctype": "user", "orgIds": ["x"]}}
        assert (await external_issuer.let_in(external_issuer.issuer.token(ANN, **good))).subject == ANN

    run_external_issuer(scenario)


@pytest.mark.parametrize("audience", ["other", ["other", "more"], [], f"{AUDIENCE}/", AUDIENCE[:-1]])
def test_a_token_for_somebody_else(audience: Any) -> None:
    refused(lambda external_issuer: external_issuer.issuer.token(aud=audience), "token is for another audience")


async def test_an_audience_may_be_one_of_several(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    assert (await external_issuer.let_in(external_issuer.issuer.token(aud=["other", AUDIENCE]))).subject == ANN


@pytest.mark.parametrize("claim", ["aud", "exp"])
@pytest.mark.parametrize("value", [None, True, {}, "soon"])
def test_a_token_without_audience_or_end(claim: str, value: Any) -> None:
    sentence = "another audience" if (claim, value) == ("aud", "soon") else NOT_VALID
    refused(lambda external_issuer: external_issuer.issuer.token(**{claim: value}), sentence)


@pytest.mark.parametrize(
    ("claim", "offset_s", "is_good"),
    [
        ("exp", 1, True),
        ("exp", 0, False),
        ("exp", -1, False),
        ("nbf", 60, True),
        ("nbf", 62, False),
        ("iat", 60, True),
        ("iat", 62, False),
    ],
)
async def test_a_token_at_another_time(
    external_issuer: IssuerEnvironment, claim: str, offset_s: int, *, is_good: bool
) -> None:
    await ready(external_issuer)
    token = external_issuer.issuer.token(**{claim: external_issuer.clock.now().timestamp() + offset_s})
    if is_good:
        assert (await external_issuer.let_in(token)).subject == ANN
    else:
        assert await external_issuer.rejection(token) in {"token is invalid or has expired", "token is not valid yet"}


@pytest.mark.parametrize("claim", ["nbf", "iat"])
async def test_a_token_need_not_say_when_it_begins(external_issuer: IssuerEnvironment, claim: str) -> None:
    await ready(external_issuer)
    assert (await external_issuer.let_in(external_issuer.issuer.token(**{claim: None}))).subject == ANN


async def test_a_token_ends_when_it_says_and_one_without_end_is_looked_at_again(
    external_issuer: IssuerEnvironment,
) -> None:
    await ready(external_issuer)
    now = external_issuer.clock.now()
    short = await external_issuer.let_in(external_issuer.issuer.token(exp=int(now.timestamp()) + 100))
    assert short.expires == now.replace(microsecond=0) + timedelta(seconds=100)
    endless = external_issuer.issuer.token(exp=1e300)
    assert (await external_issuer.let_in(endless)).expires == now + timedelta(minutes=15)
    await external_issuer.clock.sleep(1000)
    assert (await external_issuer.let_in(endless)).expires == external_issuer.clock.now() + timedelta(minutes=15)


@pytest.mark.parametrize("email", [None, 7, [ANN], {"email": ANN}, "", "nobody"])
def test_a_token_that_names_nobody(email: Any) -> None:
    refused(
        lambda external_issuer: external_issuer.issuer.token(**{EMAIL: email, "email": ANN, "sub": ANN}),
        "has no e-mail address",
    )


@pytest.mark.parametrize("verified", [None, False, "true", 1, "false"])
def test_a_token_of_an_unverified_address(verified: Any) -> None:
    refused(
        lambda external_issuer: external_issuer.issuer.token(**{VERIFIED: verified, "email_verified": True}),
        "an unverified e-mail address",
    )


@pytest.mark.parametrize("verified", [None, False, "no", 7])
async def test_an_unverified_address_is_enough_where_the_operator_says_so(
    external_issuer: IssuerEnvironment, verified: Any
) -> None:
    await ready(external_issuer, skip_email_verification=True)
    assert (await external_issuer.let_in(external_issuer.issuer.token(**{VERIFIED: verified}))).subject == ANN


BAD_AUTHZ: list[Any] = [
    None,
    {},
    "user",
    [],
    {"acctype": "user"},
    {"acctype": "user", "orgIds": []},
    {"acctype": "user", "orgIds": "x"},
    {"acctype": "user", "orgIds": [7]},
    {"acctype": "service", "orgIds": ["x"]},
    {"acctype": "system", "orgIds": ["x"]},
    {"orgIds": ["x"]},
]


@pytest.mark.parametrize("authz", BAD_AUTHZ)
def test_a_token_without_an_organization_where_one_is_demanded(authz: Any) -> None:
    refused(
        lambda external_issuer: external_issuer.issuer.token(**{AUTHZ: authz}),
        "has no organization",
        require_authz_claim=True,
    )


@pytest.mark.parametrize("authz", BAD_AUTHZ)
async def test_a_token_need_not_name_an_organization_otherwise(external_issuer: IssuerEnvironment, authz: Any) -> None:
    await ready(external_issuer)
    assert (await external_issuer.let_in(external_issuer.issuer.token(**{AUTHZ: authz}))).subject == ANN


@pytest.mark.parametrize("algorithm", ALL)
async def test_an_algorithm_is_taken_where_the_operator_names_it_and_only_there(
    external_issuer: IssuerEnvironment, algorithm: str
) -> None:
    external_issuer.issuer.publish(published(pair_for(algorithm)))
    provider = await external_issuer.trust(signing_algorithms=tuple(each for each in ALL if each != algorithm))
    await external_issuer.user(ANN)
    token = external_issuer.issuer.token(ANN, algorithm, pair_for(algorithm))
    assert await external_issuer.rejection(token) == NOT_VALID
    await external_issuer.remove(type(provider), provider.name)
    await external_issuer.trust(signing_algorithms=(algorithm,))
    assert (await external_issuer.let_in(token)).subject == ANN


@pytest.mark.parametrize("algorithm", [each for each in ALL if each != "RS256"])
def test_without_any_named_only_the_default_is_taken(algorithm: str) -> None:
    def make(external_issuer: IssuerEnvironment) -> str:
        pair = pair_for(algorithm)
        external_issuer.issuer.publish(published(key()), published(pair))
        return external_issuer.issuer.token(ANN, algorithm, pair)

    refused(make)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_anybody_can_make(algorithm: str) -> None:
    header = {"alg": algorithm, "kid": "one"}
    for allowed in ((), (algorithm, "RS256")):
        refused(
            lambda external_issuer: forged(header, external_issuer.issuer.claims(ANN), key()),
            signing_algorithms=allowed,
        )


async def test_an_issuer_with_nothing_to_sign_with_but_secrets_is_not_believed(
    external_issuer: IssuerEnvironment,
) -> None:
    await ready(external_issuer, signing_algorithms=("HS256", "none"))
    for algorithm in ("HS256", "none", "RS256"):
        token = forged({"alg": algorithm, "kid": "one"}, external_issuer.issuer.claims(ANN), key())
        assert await external_issuer.rejection(token) == NOT_VALID


def test_a_shared_secret_that_is_published_as_a_key_verifies_nothing() -> None:
    def make(external_issuer: IssuerEnvironment) -> str:
        secret = {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "two"}
        external_issuer.issuer.publish(secret, published(key()))
        return forged({"alg": "HS256", "kid": "two"}, external_issuer.issuer.claims(ANN), key())

    refused(make, signing_algorithms=("HS256", "RS256"))


@pytest.mark.parametrize(
    ("algorithm", "facts"),
    [
        ("PS256", {"alg": "RS256"}),
        ("RS256", {"alg": "PS256"}),
        ("RS256", {"use": "enc"}),
        ("RS256", {"key_ops": ["encrypt"]}),
    ],
)
def test_a_key_for_something_else(algorithm: str, facts: dict[str, Any]) -> None:
    def make(external_issuer: IssuerEnvironment) -> str:
        external_issuer.issuer.publish(published(key(kid="two"), **facts), published(key()))
        claims = external_issuer.issuer.claims(ANN)
        return signed({"alg": algorithm, "kid": "two"}, claims, key(kid="two"))

    refused(make, signing_algorithms=("RS256", "PS256"))


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_a_key_that_can_be_guessed() -> None:
    def make(external_issuer: IssuerEnvironment) -> str:
        weak = key(kid="weak", bits=1024)
        external_issuer.issuer.publish(published(weak), published(key()))
        return signed({"alg": "RS256", "kid": "weak"}, external_issuer.issuer.claims(ANN), weak)

    refused(make)


def test_a_curve_that_is_not_the_algorithms() -> None:
    def make(external_issuer: IssuerEnvironment) -> str:
        external_issuer.issuer.publish(published(key("P-384", "two")), published(key()))
        return forged({"alg": "ES256", "kid": "two"}, external_issuer.issuer.claims(ANN), key("P-384", "two"))

    refused(make, signing_algorithms=("RS256", "ES256", "ES384"))


@pytest.mark.parametrize("kid", ["one", None])
def test_a_key_of_somebody_else(kid: str | None) -> None:
    stranger = key(kid="stranger")
    refused(lambda external_issuer: signed({"alg": "RS256", "kid": kid}, external_issuer.issuer.claims(ANN), stranger))


async def test_a_token_that_names_no_key_may_be_by_any_of_the_issuers(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    external_issuer.issuer.publish(published(key("P-256", "e")), published(key(kid="two")), published(key()))
    token = signed({"alg": "RS256", "kid": None}, external_issuer.issuer.claims(ANN), key())
    assert (await external_issuer.let_in(token)).subject == ANN


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"b64": False},
        {"b64": False, "crit": ["b64"]},
        {"enc": "A256GCM"},
        {"kid": 7},
        {"alg": 7},
    ],
)
def test_a_header_with_what_is_to_be_understood_beyond_the_standard(header: dict[str, Any]) -> None:
    made = {"alg": "RS256", "kid": "one"} | header
    refused(lambda external_issuer: forged(made, external_issuer.issuer.claims(ANN), key()), NO_TOKEN)


async def test_a_header_may_say_more_as_long_as_that_means_nothing(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    more = {"typ": "at+jwt", "x5t": "abc", "jku": "https://evil.example", "jwk": published(key(kid="evil"))}
    good = signed({"alg": "RS256", "kid": "one", "vendor": "x", **more}, external_issuer.issuer.claims(ANN), key())
    assert (await external_issuer.let_in(good)).subject == ANN
    evil = signed({"alg": "RS256", "kid": "evil", **more}, external_issuer.issuer.claims(ANN), key(kid="evil"))
    assert await external_issuer.rejection(evil) == NOT_VALID
    assert {url.split("/")[2] for url in external_issuer.issuer.asked} == {"login.example"}


@pytest.mark.parametrize("change", [lambda token: token[:-8] + "AAAAAAAA", lambda token: token + "AAAA"])
def test_a_signature_that_was_changed(change: Any) -> None:
    refused(lambda external_issuer: change(external_issuer.issuer.token(ANN)))


def test_claims_that_were_changed() -> None:
    def make(external_issuer: IssuerEnvironment) -> str:
        mine, others = (
            external_issuer.issuer.token(ANN).split("."),
            external_issuer.issuer.token("bob@example.com").split("."),
        )
        return ".".join((mine[0], others[1], mine[2]))

    refused(make)


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "a.b",
        "a.b.c",
        "a.b.c.d.e",
        "e30.e30.e30",
        "W10.W10.W10",
        "bnVsbA.bnVsbA.",
        "ImFsZyI.e30.e30",
        "!!.!!.!!",
        "\udcff.\udcff.\udcff",
        "e30.e30." + "x" * 20_000,
        "W1tb" * 3000 + ".e30.e30",
    ],
)
async def test_what_is_no_token(external_issuer: IssuerEnvironment, token: str) -> None:
    await ready(external_issuer)
    assert await external_issuer.rejection(token) == NO_TOKEN
    assert external_issuer.counted("remuda_bearer_tokens_unroutable_total", reason="format") == 1
    assert external_issuer.issuer.asked == []


def test_a_token_that_is_too_long() -> None:
    refused(lambda external_issuer: external_issuer.issuer.token(padding="x" * 12_000), NO_TOKEN)


@pytest.mark.parametrize("claims", [[], "x", None, {"iss": 7}])
def test_claims_that_are_none(claims: Any) -> None:
    refused(lambda _: signed({"alg": "RS256", "kid": "one"}, claims, key()), NO_TOKEN)


async def test_a_token_of_nobody_we_trust_is_counted_and_its_issuer_not_asked(
    external_issuer: IssuerEnvironment,
) -> None:
    await ready(external_issuer)
    assert await external_issuer.rejection(external_issuer.issuer.token(iss="https://evil.example")) == NOT_VALID
    assert await external_issuer.rejection(external_issuer.issuer.token(iss=None)) == NOT_VALID
    assert external_issuer.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 2
    assert external_issuer.issuer.asked == []
    assert (await external_issuer.let_in(external_issuer.issuer.token(ANN))).subject == ANN
    own, _ = await external_issuer.log_in(await external_issuer.user("bob@example.com"))
    await external_issuer.let_in(own)
    assert external_issuer.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 2
    assert external_issuer.counted("remuda_bearer_tokens_unroutable_total", reason="format") == 0


@pytest.mark.parametrize("end", [b"1" + b"0" * 400, b"-1" + b"0" * 400, b"1e400", b"9" * 5_000])
async def test_a_token_that_ends_beyond_all_time_is_rejected(external_issuer: IssuerEnvironment, end: bytes) -> None:
    await ready(external_issuer)
    header, payload, signature = external_issuer.issuer.token(ANN).split(".")
    changed = re.sub(rb'"exp":[0-9]+', b'"exp":' + end, from_base64url(payload))
    assert end in changed
    error = await external_issuer.error(f"{header}.{to_base64url(changed)}.{signature}")
    assert isinstance(error, Unauthenticated)


async def test_no_token_is_told_in_a_rejection_or_kept(external_issuer: IssuerEnvironment) -> None:
    await ready(external_issuer)
    good = external_issuer.issuer.token(ANN)
    await external_issuer.let_in(good)
    for token in (
        external_issuer.issuer.token(aud="x"),
        external_issuer.issuer.token(iss="x"),
        "canary.canary.canary",
        good[:-8],
    ):
        error = await external_issuer.error(token)
        assert not any(part in f"{error!r} {error.message}" for part in token.split("."))
    external = external_issuer.external
    kept = f"{external.__dict__} {external._keys.__dict__} {external_issuer.authenticator._cache._entries}"
    assert not any(part in kept for part in good.split("."))
    assert not any(part in repr(unverified_claims(good)) for part in good.split("."))
