"""Keys that a provider publishes: only short public ones are read."""

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc.jwk import ECKey, RSAKey

from remuda.identity.federation.provider_client import read_keys
from remuda.identity.ports import Fetched

RSA: dict[str, Any] = dict(RSAKey.generate_key(2048).as_dict(private=True))
PUBLIC = {name: RSA[name] for name in ("kty", "n", "e")}


async def keys_of(*published: dict[str, Any]) -> int:
    async def fetch(*_: Any) -> Fetched:
        return Fetched(status=200, body=msgspec.json.encode({"keys": published}))

    return len(await read_keys(fetch, "https://idp.example.com/keys"))


async def test_public_keys_are_read() -> None:
    elliptic = dict(ECKey.generate_key("P-256").as_dict(private=False))
    assert await keys_of(PUBLIC | {"kid": "one", "use": "sig", "x5c": ["ignored"]}, elliptic) == 2


async def test_m27_a_private_key_is_not_imported_since_its_primes_would_be_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compute(*_: Any) -> None:
        raise AssertionError("the primes are computed")

    monkeypatch.setattr(rsa, "rsa_recover_prime_factors", compute)
    assert await keys_of(PUBLIC | {"d": RSA["d"]}) == 0
    assert await keys_of(PUBLIC | {"p": RSA["p"], "q": RSA["q"]}) == 1, "members of a private key are ignored"


async def test_m27_a_key_with_a_large_exponent_is_not_imported_since_it_verifies_slowly() -> None:
    assert await keys_of(PUBLIC | {"e": "AQAAAAE"}) == 0
    assert await keys_of(PUBLIC | {"e": PUBLIC["n"]}) == 0
    assert await keys_of(PUBLIC | {"e": "AQAB"}) == 1


@pytest.mark.parametrize("member", ["n", "e", "kid"])
async def test_m27_a_key_with_a_very_long_member_is_not_imported(member: str) -> None:
    assert await keys_of(PUBLIC | {member: "A" * 2000 + PUBLIC.get(member, "x")}) == 0
