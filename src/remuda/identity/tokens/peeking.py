"""What a token claims to be, before anybody has verified it.

That is good for finding out who should have signed it, and for nothing else. A token that is too long, or brings along
what has to be understood beyond the standard, is nobody's.
"""

from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from remuda.kernel import encoding as base64url

BELIEVED = timedelta(minutes=15)
"""How long a token of an external issuer is believed before it is looked at again: its issuer may have withdrawn the
key that signed it."""
LONGEST = 16_384
"""How many characters it may have: some issuers put whole certificates into it."""

_PARTS = 3

T = TypeVar("T")


class _Head(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    enc: Any = None
    crit: Any = None
    b64: Any = None

    @property
    def is_plain(self) -> bool:
        """Nothing in it changes how the token is to be read."""
        return self.enc is None and self.crit is None and self.b64 is None


class _Payload(msgspec.Struct, frozen=True):
    iss: str = ""
    exp: Any = None


class Peeked(msgspec.Struct, frozen=True):
    """What a token says of itself."""

    token: str
    issuer: str
    algorithm: str
    kid: str | None
    ends: float
    """In seconds since 1970; one that does not say has ended."""

    def __repr__(self) -> str:
        return f"Peeked(issuer={self.issuer!r})"


def peek(token: str) -> Peeked | None:
    """Return what a token claims to be, or None if it is no signed token (JWS)."""
    parts = token.split(".") if len(token) <= LONGEST else []
    if len(parts) != _PARTS:
        return None
    try:
        head = _decoded(parts[0], _Head)
        said = _decoded(parts[1], _Payload)
    except (ValueError, RecursionError):
        return None
    ends = float(said.exp) if isinstance(said.exp, int | float) else 0.0
    return Peeked(token, said.iss, head.alg, head.kid, ends) if head.is_plain else None


def _decoded(part: str, kind: type[T]) -> T:
    return msgspec.json.decode(base64url.decode(part), type=kind)
