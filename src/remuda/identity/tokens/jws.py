"""Signed tokens: made, and taken apart again with suspicion.

One algorithm (ES512), keys that we know by id, and a header that says these things and nothing else: whatever a header
could otherwise bring along (`none`, a key of its own, an address to fetch one from, extensions that must be understood)
is refused unread. A token that is too long is not even looked at.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import msgspec
from joserfc.errors import JoseError
from joserfc.jws import deserialize_compact, serialize_compact

from remuda.identity.tokens.jwt import Purpose, Stamped
from remuda.identity.tokens.keys import LoadedKey
from remuda.kernel import encoding as base64url
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.secrets import Secret

LONGEST = 8192
"""How many characters a token may have."""
NOT_VALID = "token validation failed"
"""All that whoever shows a bad token is told: why helps only those who make them."""

_ALGORITHMS = ["ES512"]
_PARTS = 3

StampedT = TypeVar("StampedT", bound=Stamped)


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alg: Literal["ES512"]
    typ: str
    kid: str


_decode_header = msgspec.json.Decoder(_Header).decode
_encode = msgspec.json.Encoder().encode


def sign(claims: StampedT, purpose: Purpose[StampedT], key: LoadedKey) -> Secret:
    """Return the token."""
    header = {"alg": "ES512", "typ": purpose.typ, "kid": key.kid}
    return Secret(serialize_compact(header, _encode(claims), key.key, _ALGORITHMS))


async def read(
    token: str, purpose: Purpose[StampedT], find_key: Callable[[str], Awaitable[LoadedKey | None]]
) -> StampedT:
    """Return what a token says that one of our keys has signed for this purpose, or raise Unauthenticated.

    Whether it holds now, and here, is for the caller to see.
    """
    parts = token.split(".") if len(token) <= LONGEST else []
    if len(parts) != _PARTS:
        raise Unauthenticated(NOT_VALID)
    try:
        header = _decode_header(base64url.decode(parts[0]))
    except (ValueError, RecursionError):
        raise Unauthenticated(NOT_VALID) from None
    key = await find_key(header.kid) if header.typ == purpose.typ else None
    if key is None:
        raise Unauthenticated(NOT_VALID)
    try:
        payload = deserialize_compact(token, key.key, _ALGORITHMS).payload
        return msgspec.json.decode(payload or b"", type=purpose.claims)
    except (JoseError, ValueError, RecursionError):
        raise Unauthenticated(NOT_VALID) from None
