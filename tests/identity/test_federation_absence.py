"""A provider that is gone takes along what it has vouched for."""

import pytest

from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.kernel.errors import Unauthenticated
from remuda.store.objects import Metadata
from tests.kit.identity.authenticator import AuthenticatorEnvironment


async def test_a_token_is_good_for_as_long_as_the_provider_is_there_that_vouched(
    authentication: AuthenticatorEnvironment,
) -> None:
    spec = OAuth2ProviderSpec(issuer="https://login.example.com", client_id="us")
    provider = await authentication.store.create(
        OAuth2Provider(metadata=Metadata(name=authentication.new_id()), spec=spec)
    )
    ann = await authentication.user("ann@example.com")
    session = await authentication.tokens.sessions.begin(user=ann, client="console", provider=provider.name)
    token = (await authentication.tokens.tokens.issue_for_session(ann, session)).token.reveal()
    own, _ = await authentication.log_in(ann)
    assert (await authentication.let_in(token)).subject == "ann@example.com"
    await authentication.remove(OAuth2Provider, provider.name)
    with pytest.raises(Unauthenticated, match="log in again"):
        await authentication.let_in(token)
    assert (await authentication.let_in(own)).subject == "ann@example.com"
