"""Values of any length are refused before they are examined: addresses, issuers, and keys of providers."""

import msgspec
import pytest
from joserfc.jwk import RSAKey

from remuda.identity.federation.provider_client import read_keys
from remuda.identity.ports import Fetched
from remuda.identity.tenancy.rules import check_issuer
from remuda.identity.users import rules
from remuda.kernel.errors import Invalid, Malformed
from remuda.kernel.text import folded


def test_a_long_address_is_refused_before_it_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(text: str) -> str:
        sizes.append(len(text))
        return folded(text)

    monkeypatch.setattr(rules, "folded", counted)
    assert rules.email_address("Ann@example.com") == "ann@example.com"
    with pytest.raises(Malformed):
        rules.email_address("é" * 100_000 + "@example.com")
    assert max(sizes) <= 1024


def test_an_issuer_has_at_most_2048_characters() -> None:
    url = "https://idp.example.com/"
    check_issuer(url.ljust(2048, "a"))
    with pytest.raises(Invalid, match="2048"):
        check_issuer(url.ljust(2049, "a"))


async def test_a_provider_s_key_of_too_many_digits_is_left_out() -> None:
    good = RSAKey.generate_key(2048, {"kid": "good"}, private=False).as_dict(private=False)
    keys = [good, {**good, "kid": "endless", "n": "x" * 5_000}, {**good, "kid": "steep", "e": "A" * 5_000 + "AQAB"}]

    async def fetch(_method: str, _url: str, _headers: dict[str, str], _body: bytes | None) -> Fetched:
        return Fetched(status=200, body=msgspec.json.encode({"keys": keys}))

    assert [key.kid for key in await read_keys(fetch, "https://idp.example.com/keys")] == ["good"]
