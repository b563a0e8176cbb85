"""Every way in which an external issuer's token can be no good."""

from datetime import timedelta
from typing import Any

import pytest

from remuda.identity.tokens.jwt import peek
from tests.identity.external_issuer import AUDIENCE, CLAIMS, Lobby, forged, in_the_lobby, key, published, signed

ANN = "ann@example.com"
NOT_VALID = "token validation failed"
NO_TOKEN = "unrecognized bearer token format"
EMAIL, VERIFIED, AUTHZ = f"{CLAIMS}/email", f"{CLAIMS}/email_verified", f"{CLAIMS}/authz"

FAMILIES = {"RS": "RSA", "PS": "RSA", "ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
ALL = [f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)]


def pair_for(algorithm: str) -> Any:
    return key(FAMILIES.get(algorithm) or FAMILIES[algorithm[:2]])


async def ready(lobby: Lobby, **trust: Any) -> None:
    await lobby.user(ANN)
    await lobby.trust(**trust)


def refused(make: Any, sentence: str = NOT_VALID, **trust: Any) -> None:
    """Hold that the token that `make` makes of a lobby is refused, and that a good one is not."""

    async def scenario(lobby: Lobby) -> None:
        await ready(lobby, **trust)
        assert sentence in await lobby.refusal(make(lobby))
        good = {AUTHZ: {"acctype": "user", "orgIds": ["x"]}}
        assert (await lobby.let_in(lobby.issuer.token(ANN, **good))).subject == ANN

    in_the_lobby(scenario)


@pytest.mark.parametrize("audience", ["other", ["other", "more"], [], f"{AUDIENCE}/", AUDIENCE[:-1]])
def test_a_token_for_somebody_else(audience: Any) -> None:
    refused(lambda lobby: lobby.issuer.token(aud=audience), "token is for another audience")


def test_an_audience_may_be_one_of_several() -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        assert (await lobby.let_in(lobby.issuer.token(aud=["other", AUDIENCE]))).subject == ANN

    in_the_lobby(scenario)


@pytest.mark.parametrize("claim", ["aud", "exp"])
@pytest.mark.parametrize("value", [None, True, {}, "soon"])
def test_a_token_without_audience_or_end(claim: str, value: Any) -> None:
    sentence = "another audience" if (claim, value) == ("aud", "soon") else NOT_VALID
    refused(lambda lobby: lobby.issuer.token(**{claim: value}), sentence)


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
def test_a_token_at_another_time(claim: str, offset_s: int, is_good: bool) -> None:  # noqa: FBT001  a case
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        token = lobby.issuer.token(**{claim: lobby.clock.now().timestamp() + offset_s})
        if is_good:
            assert (await lobby.let_in(token)).subject == ANN
        else:
            assert await lobby.refusal(token) in {"token is invalid or has expired", "token is not valid yet"}

    in_the_lobby(scenario)


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_a_token_need_not_say_when_it_begins(claim: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        assert (await lobby.let_in(lobby.issuer.token(**{claim: None}))).subject == ANN

    in_the_lobby(scenario)


def test_a_token_ends_when_it_says_and_one_without_end_is_looked_at_again() -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        now = lobby.clock.now()
        short = await lobby.let_in(lobby.issuer.token(exp=int(now.timestamp()) + 100))
        assert short.expires == now.replace(microsecond=0) + timedelta(seconds=100)
        endless = lobby.issuer.token(exp=1e300)
        assert (await lobby.let_in(endless)).expires == now + timedelta(minutes=15)
        await lobby.clock.sleep(1000)
        assert (await lobby.let_in(endless)).expires == lobby.clock.now() + timedelta(minutes=15)

    in_the_lobby(scenario)


@pytest.mark.parametrize("email", [None, 7, [ANN], {"email": ANN}, "", "nobody"])
def test_a_token_that_names_nobody(email: Any) -> None:
    refused(lambda lobby: lobby.issuer.token(**{EMAIL: email, "email": ANN, "sub": ANN}), "does not say whose it is")


@pytest.mark.parametrize("verified", [None, False, "true", 1, "false"])
def test_a_token_of_an_unverified_address(verified: Any) -> None:
    refused(lambda lobby: lobby.issuer.token(**{VERIFIED: verified, "email_verified": True}), "an unverified address")


@pytest.mark.parametrize("verified", [None, False, "no", 7])
def test_an_unverified_address_is_enough_where_the_operator_says_so(verified: Any) -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby, skip_email_verification=True)
        assert (await lobby.let_in(lobby.issuer.token(**{VERIFIED: verified}))).subject == ANN

    in_the_lobby(scenario)


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
    refused(lambda lobby: lobby.issuer.token(**{AUTHZ: authz}), "nobody's user", require_authz_claim=True)


@pytest.mark.parametrize("authz", BAD_AUTHZ)
def test_a_token_need_not_name_an_organization_otherwise(authz: Any) -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        assert (await lobby.let_in(lobby.issuer.token(**{AUTHZ: authz}))).subject == ANN

    in_the_lobby(scenario)


@pytest.mark.parametrize("algorithm", ALL)
def test_an_algorithm_is_taken_where_the_operator_names_it_and_only_there(algorithm: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        lobby.issuer.publish(published(pair_for(algorithm)))
        provider = await lobby.trust(signing_algorithms=tuple(each for each in ALL if each != algorithm))
        await lobby.user(ANN)
        token = lobby.issuer.token(ANN, algorithm, pair_for(algorithm))
        assert await lobby.refusal(token) == NOT_VALID
        await lobby.remove(type(provider), provider.name)
        await lobby.trust(signing_algorithms=(algorithm,))
        assert (await lobby.let_in(token)).subject == ANN

    in_the_lobby(scenario)


@pytest.mark.parametrize("algorithm", [each for each in ALL if each != "RS256"])
def test_without_any_named_only_the_default_is_taken(algorithm: str) -> None:
    def make(lobby: Lobby) -> str:
        pair = pair_for(algorithm)
        lobby.issuer.publish(published(key()), published(pair))
        return lobby.issuer.token(ANN, algorithm, pair)

    refused(make)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_anybody_can_make(algorithm: str) -> None:
    header = {"alg": algorithm, "kid": "one"}
    for allowed in ((), (algorithm, "RS256")):
        refused(lambda lobby: forged(header, lobby.issuer.claims(ANN), key()), signing_algorithms=allowed)


def test_an_issuer_with_nothing_to_sign_with_but_secrets_is_not_believed() -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby, signing_algorithms=("HS256", "none"))
        for algorithm in ("HS256", "none", "RS256"):
            token = forged({"alg": algorithm, "kid": "one"}, lobby.issuer.claims(ANN), key())
            assert await lobby.refusal(token) == NOT_VALID

    in_the_lobby(scenario)


def test_a_shared_secret_that_is_published_as_a_key_verifies_nothing() -> None:
    def make(lobby: Lobby) -> str:
        secret = {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "two"}
        lobby.issuer.publish(secret, published(key()))
        return forged({"alg": "HS256", "kid": "two"}, lobby.issuer.claims(ANN), key())

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
    def make(lobby: Lobby) -> str:
        lobby.issuer.publish(published(key(kid="two"), **facts), published(key()))
        claims = lobby.issuer.claims(ANN)
        return signed({"alg": algorithm, "kid": "two"}, claims, key(kid="two"))

    refused(make, signing_algorithms=("RS256", "PS256"))


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_a_key_that_can_be_guessed() -> None:
    def make(lobby: Lobby) -> str:
        weak = key(kid="weak", bits=1024)
        lobby.issuer.publish(published(weak), published(key()))
        return signed({"alg": "RS256", "kid": "weak"}, lobby.issuer.claims(ANN), weak)

    refused(make)


def test_a_curve_that_is_not_the_algorithms() -> None:
    def make(lobby: Lobby) -> str:
        lobby.issuer.publish(published(key("P-384", "two")), published(key()))
        return forged({"alg": "ES256", "kid": "two"}, lobby.issuer.claims(ANN), key("P-384", "two"))

    refused(make, signing_algorithms=("RS256", "ES256", "ES384"))


@pytest.mark.parametrize("kid", ["one", None])
def test_a_key_of_somebody_else(kid: str | None) -> None:
    stranger = key(kid="stranger")
    refused(lambda lobby: signed({"alg": "RS256", "kid": kid}, lobby.issuer.claims(ANN), stranger))


def test_a_token_that_names_no_key_may_be_by_any_of_the_issuers() -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        lobby.issuer.publish(published(key("P-256", "e")), published(key(kid="two")), published(key()))
        token = signed({"alg": "RS256", "kid": None}, lobby.issuer.claims(ANN), key())
        assert (await lobby.let_in(token)).subject == ANN

    in_the_lobby(scenario)


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
    refused(lambda lobby: forged(made, lobby.issuer.claims(ANN), key()), NO_TOKEN)


def test_a_header_may_say_more_as_long_as_that_means_nothing() -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        more = {"typ": "at+jwt", "x5t": "abc", "jku": "https://evil.example", "jwk": published(key(kid="evil"))}
        good = signed({"alg": "RS256", "kid": "one", "vendor": "x", **more}, lobby.issuer.claims(ANN), key())
        assert (await lobby.let_in(good)).subject == ANN
        evil = signed({"alg": "RS256", "kid": "evil", **more}, lobby.issuer.claims(ANN), key(kid="evil"))
        assert await lobby.refusal(evil) == NOT_VALID
        assert {url.split("/")[2] for url in lobby.issuer.asked} == {"login.example"}

    in_the_lobby(scenario)


@pytest.mark.parametrize("change", [lambda token: token[:-8] + "AAAAAAAA", lambda token: token + "AAAA"])
def test_a_signature_that_was_changed(change: Any) -> None:
    refused(lambda lobby: change(lobby.issuer.token(ANN)))


def test_claims_that_were_changed() -> None:
    def make(lobby: Lobby) -> str:
        mine, others = lobby.issuer.token(ANN).split("."), lobby.issuer.token("bob@example.com").split(".")
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
def test_what_is_no_token(token: str) -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        assert await lobby.refusal(token) == NO_TOKEN
        assert lobby.counted("remuda_bearer_tokens_unroutable_total", reason="format") == 1
        assert lobby.issuer.asked == []

    in_the_lobby(scenario)


def test_a_token_that_is_too_long() -> None:
    refused(lambda lobby: lobby.issuer.token(padding="x" * 12_000), NO_TOKEN)


@pytest.mark.parametrize("claims", [[], "x", None, {"iss": 7}])
def test_claims_that_are_none(claims: Any) -> None:
    refused(lambda _: signed({"alg": "RS256", "kid": "one"}, claims, key()), NO_TOKEN)


def test_a_token_of_nobody_we_trust_is_counted_and_its_issuer_not_asked() -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        assert await lobby.refusal(lobby.issuer.token(iss="https://evil.example")) == NOT_VALID
        assert await lobby.refusal(lobby.issuer.token(iss=None)) == NOT_VALID
        assert lobby.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 2
        assert lobby.issuer.asked == []
        assert (await lobby.let_in(lobby.issuer.token(ANN))).subject == ANN
        own, _ = await lobby.log_in(await lobby.user("bob@example.com"))
        await lobby.let_in(own)
        assert lobby.counted("remuda_bearer_tokens_unroutable_total", reason="issuer") == 2
        assert lobby.counted("remuda_bearer_tokens_unroutable_total", reason="format") == 0

    in_the_lobby(scenario)


def test_no_token_is_told_in_a_refusal_or_kept() -> None:
    async def scenario(lobby: Lobby) -> None:
        await ready(lobby)
        good = lobby.issuer.token(ANN)
        await lobby.let_in(good)
        for token in (lobby.issuer.token(aud="x"), lobby.issuer.token(iss="x"), "canary.canary.canary", good[:-8]):
            error = await lobby.error(token)
            assert not any(part in f"{error!r} {error.sentence}" for part in token.split("."))
        kept = f"{lobby.external.__dict__} {lobby.external._keys.__dict__} {lobby.authenticator._kept._entries}"
        assert not any(part in kept for part in good.split("."))
        assert not any(part in repr(peek(good)) for part in good.split("."))

    in_the_lobby(scenario)
