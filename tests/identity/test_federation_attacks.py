"""A provider that attacks this process with what it responds: each login fails, and costs little."""

import pytest
from joserfc import jws
from joserfc.jwk import RSAKey

from remuda.identity.federation.code_flow import _verified
from remuda.identity.federation.provider_client import ProviderClient, issuer_of
from remuda.identity.kinds.oauth import OAuth2Provider
from tests.kit.environment import options, provided_by
from tests.kit.identity.federation import GOOGLE, KEY, federated, log_in
from tests.kit.identity.login import LoginEnvironment, sent_to
from tests.kit.identity.openid_provider import Provider

federation = provided_by(federated)
upstream = provided_by(federated, position=1)

WITHOUT_EMAIL = {"email": None}


@pytest.mark.parametrize("token", ["ä", "a\r\nX-Other: b", "\x00", "a" * 40_000], ids=["é", "header", "zero", "long"])
@options(lambda token: {"provider": Provider(key=KEY, claims=WITHOUT_EMAIL, access_token=token)})
async def test_m27_an_access_token_that_is_no_header_value_is_not_sent(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    upstream.userinfo = {"sub": "someone", "email": "jo@example.com", "email_verified": True}
    failed = sent_to(await log_in(federation, upstream))
    assert (failed["error"], "access token is malformed" in failed["error_description"]) == ("server_error", True)
    assert not [url for _, url in upstream.asked if url.endswith("/userinfo")]


@options(lambda: {"provider": Provider(key=KEY, email="j" * 20_000 + "@example.com")})
async def test_m27_an_address_of_any_length_is_not_examined(federation: LoginEnvironment, upstream: Provider) -> None:
    failed = sent_to(await log_in(federation, upstream))
    assert (failed["error"], failed["error_description"]) == (
        "access_denied",
        "the provider does not send your e-mail address",
    )


def test_m27_few_keys_are_tried_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, keys = [], [RSAKey.generate_key(2048) for _ in range(6)]
    verify = jws.deserialize_compact

    def counted(token: bytes, key: RSAKey, **more: list[str]) -> object:
        tried.append(key)
        return verify(token, key, **more)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr("remuda.identity.federation.code_flow.jws.deserialize_compact", counted)
    with pytest.raises(Exception, match="no valid signature"):
        _verified(jws.serialize_compact({"alg": "RS256"}, b"{}", RSAKey.generate_key(2048)), keys)
    assert tried == keys[:4]


@options(lambda: {"provider": Provider(key=KEY, about={"token_endpoint_auth_methods_supported": ["x" * 50_000]})})
async def test_m27_of_the_metadata_only_what_is_used_is_kept(federation: LoginEnvironment, upstream: Provider) -> None:
    client = ProviderClient(fetch=upstream, clock=federation.world.clock)
    provider = await federation.store.get(OAuth2Provider, GOOGLE)
    metadata = await client.metadata(issuer_of(provider))
    assert metadata.token_endpoint_auth_methods_supported == ()
