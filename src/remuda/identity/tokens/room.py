"""The tokens room put together."""

from dataclasses import dataclass

from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import Bearers, External
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import Sessions
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRoom:
    """Everything about tokens, of which there is one in a process: its parts share what they remember."""

    keys: SigningKeys
    tokens: Tokens
    sessions: Sessions
    bearers: Bearers


def token_room(
    *,
    store: Store,
    clock: Clock,
    randomness: Randomness,
    settings: IdentitySettings,
    external: External | None = None,
) -> TokenRoom:
    """Return the room; `external` knows the tokens of other issuers."""
    keys = SigningKeys(store=store, clock=clock, randomness=randomness, settings=settings)
    tokens = Tokens(store=store, clock=clock, randomness=randomness, settings=settings, keys=keys)
    sessions = Sessions(store=store, clock=clock, randomness=randomness, settings=settings, tokens=tokens)
    bearers = Bearers(store=store, tokens=tokens, sessions=sessions, external=external)
    return TokenRoom(keys=keys, tokens=tokens, sessions=sessions, bearers=bearers)
