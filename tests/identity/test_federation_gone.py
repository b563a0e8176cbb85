"""A provider that is gone takes along what it has vouched for."""

import pytest

from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.kernel.errors import Unauthenticated
from remuda.store.objects import Metadata
from tests.identity.rights_door import Door, at_the_door


def test_a_token_is_good_for_as_long_as_the_provider_is_there_that_vouched() -> None:
    async def scenario(door: Door) -> None:
        spec = OAuth2ProviderSpec(issuer="https://login.example.com", client_id="us")
        provider = await door.store.create(OAuth2Provider(metadata=Metadata(name=door.new_id()), spec=spec))
        ann = await door.user("ann@example.com")
        session = await door.tokens.sessions.begin(user=ann, client="console", provider=provider.name)
        token = (await door.tokens.tokens.issue_for_session(ann, session)).token.reveal()
        own, _ = await door.log_in(ann)
        assert (await door.let_in(token)).subject == "ann@example.com"
        await door.remove(OAuth2Provider, provider.name)
        with pytest.raises(Unauthenticated, match="log in again"):
            await door.let_in(token)
        assert (await door.let_in(own)).subject == "ann@example.com"

    at_the_door(scenario)
