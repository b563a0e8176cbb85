"""What our signed tokens say, one type for each purpose.

The purpose is in the token's header (`typ`), so that a token made for one thing is never taken for another.

Signed tokens: made, and taken apart again with suspicion.

One algorithm (ES512), keys that we know by id, and a header that says these things and nothing else: whatever a header
could otherwise bring along (`none`, a key of its own, an address to fetch one from, extensions that must be understood)
is refused unread. A token that is too long is not even looked at.

What a token claims to be, before anybody has verified it.

That is good for finding out who should have signed it, and for nothing else. A token that is too long, or brings along
what has to be understood beyond the standard, is nobody's.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

import msgspec
from joserfc.errors import JoseError
from joserfc.jws import deserialize_compact, serialize_compact

from remuda.identity.tokens.keys import LoadedKey
from remuda.kernel import encoding as base64url
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.secrets import Secret

TokenType = Literal["fed", "sa", "svc", "op"]
"""Whose access token it is: a person's who logged in, a service account's, a service's, or one that an operator had
made on the machine itself in a person's name."""

AccountType = Literal["user", "service", "system"]
"""What stands behind a token, in the words of the wire: a person, a service account, a service."""

PASSPORT_ISSUER = "uni-identity"
"""Who issues passports."""


class Stamped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all of them say. Times are seconds since 1970."""

    iss: str
    sub: str
    iat: int
    exp: int
    aud: tuple[str, ...] = ()

    @property
    def expires(self) -> datetime:
        """When it ends."""
        return datetime.fromtimestamp(self.exp, UTC)


class Claims(Stamped, frozen=True, kw_only=True, omit_defaults=True):
    """An access token. `sub` is an e-mail address (`fed`, `op`), a service account's id (`sa`) or a service's name."""

    jti: str
    nbf: int
    typ: TokenType
    sid: str = ""
    """The session (`fed`)."""
    cid: str = ""
    """The client through which the user logged in (`fed`)."""
    uid: str = ""
    """The user's id (`fed`, `op`)."""
    oid: str = ""
    """The service account's organization (`sa`), or the one that alone vouches for the user, if one does (`fed`)."""
    sco: str = ""
    """The scope that was asked for (`fed`)."""
    act: str = ""
    """Who had it made (`op`)."""


class IdClaims(Stamped, frozen=True, kw_only=True, omit_defaults=True):
    """An ID token: for the client to know who logged in, and good for nothing else."""

    azp: str
    auth_time: int
    nonce: str = ""
    at_hash: str = ""
    sid: str = ""
    email: str = ""
    email_verified: bool = False


class PassportClaims(Stamped, frozen=True, kw_only=True, omit_defaults=True):
    """A passport: what identity tells another service about a caller. It holds no rights."""

    jti: str
    nbf: int
    acctype: AccountType
    source: str
    """Where the caller is known: `uni`, or a provider's name. For audits."""
    src_iss: str
    """Who vouched for the caller: `uni`, or an external issuer, letter by letter."""
    org_ids: tuple[str, ...]
    typ: Literal["passport"]
    email: str = ""
    org_id: str = ""
    project_id: str = ""


StampedT = TypeVar("StampedT", bound=Stamped)


@dataclass(frozen=True, slots=True)
class Purpose(Generic[StampedT]):
    """What a token is for: the `typ` of its header, and what it says."""

    typ: str
    claims: type[StampedT]


ACCESS = Purpose("at+jwt", Claims)
"""Access tokens (RFC 9068)."""
ID = Purpose("JWT", IdClaims)
"""ID tokens (OpenID Connect)."""
PASSPORT = Purpose("passport+jwt", PassportClaims)
"""Passports."""


MAX_TOKEN_BYTES = 8192
"""How many characters a token may have."""
NOT_VALID = "token validation failed"
"""All that whoever shows a bad token is told: why helps only those who make them."""

_ALGORITHMS = ["ES512"]
_PARTS = 3


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
    parts = token.split(".") if len(token) <= MAX_TOKEN_BYTES else []
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


BELIEVED = timedelta(minutes=15)
"""How long a token of an external issuer is believed before it is looked at again: its issuer may have withdrawn the
key that signed it."""
MAX_UNVERIFIED_BYTES = 16_384
"""How many characters it may have: some issuers put whole certificates into it."""


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
    parts = token.split(".") if len(token) <= MAX_UNVERIFIED_BYTES else []
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
