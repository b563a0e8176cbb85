"""Tokens that were verified a moment ago: checking a signature costs half a millisecond, and looking here nothing.

What is kept depends on the token and the keys alone. Times and state are judged at every use.
"""

from collections import OrderedDict

from remuda.identity.tokens.jwt import Claims
from remuda.identity.tokens.secrets import token_hash

_MOST = 8192


class Verified:
    """What the latest tokens say, by their hashes, for as long as the keys are the same."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._stamp: int | None = None
        self._claims: OrderedDict[str, Claims] = OrderedDict()

    def find(self, token: str, stamp: int) -> Claims | None:
        """Return what a token says, if it was verified with the keys of this stamp."""
        if stamp != self._stamp:
            return None
        name = token_hash(token)
        claims = self._claims.get(name)
        if claims is not None:
            self._claims.move_to_end(name)
        return claims

    def keep(self, token: str, claims: Claims, stamp: int) -> None:
        """Remember what a token says; the one that was not asked for the longest is forgotten."""
        if stamp != self._stamp:
            self._claims.clear()
            self._stamp = stamp
        self._claims[token_hash(token)] = claims
        if len(self._claims) > self._most:
            self._claims.popitem(last=False)
