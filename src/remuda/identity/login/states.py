"""What a browser carries for us from one step of a login to the next.

It is sealed, so nobody can read or change it, and it opens only as what it is, in the browser that it was given to, for
ten minutes. Nothing of it is stored: ten thousand logins that nobody finishes cost nothing.
"""

from datetime import timedelta
from typing import Generic, TypeVar

import msgspec

from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, Unsealable
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret

StateT = TypeVar("StateT", bound=msgspec.Struct)

LIFE = timedelta(minutes=10)
"""How long a step may take."""

_TOO_LONG = 16_384
_STALE = (
    "This page is no longer good: it is older than ten minutes, was used already, or comes from another browser. "
    "Go back to where you wanted to log in, and begin again."
)


class _Kept(msgspec.Struct, Generic[StateT], frozen=True, array_like=True):
    expires: int
    state: StateT


class States:
    """Seals and opens them."""

    def __init__(self, *, sealer: Sealer, clock: Clock) -> None:
        self._sealer, self._clock = sealer, clock

    def seal(self, state: msgspec.Struct, *, browser: str) -> str:
        """Return a state for the browser with this cookie."""
        assert browser, "a state belongs to a browser"
        expires = int((self._clock.now() + LIFE).timestamp())
        plain = Secret(msgspec.json.encode(_Kept(expires, state)).decode())
        return self._sealer.seal(plain, context=_context(type(state), browser))

    def open(self, kind: type[StateT], sealed: str, *, browser: str) -> StateT:
        """Return the state, or raise Malformed if it is not one of this kind, browser and time."""
        if not browser or len(sealed) > _TOO_LONG:
            raise Malformed(_STALE)
        try:
            plain = self._sealer.open(sealed, context=_context(kind, browser)).reveal()
        except Unsealable:
            raise Malformed(_STALE) from None
        kept = msgspec.json.decode(plain, type=_Kept[kind])  # type: ignore[valid-type]  # the kind is one
        if kept.expires <= self._clock.now().timestamp():
            raise Malformed(_STALE)
        return kept.state


def _context(kind: type[msgspec.Struct], browser: str) -> str:
    return f"browser state {kind.__name__} of {token_hash(browser)}"
