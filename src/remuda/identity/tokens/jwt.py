"""Signed tokens (JWS): claims of each kind of token, signing, verification, and unverified claims.

The kind is in the header (`typ`), so that a token of one kind is never accepted as another. Only ES512, known key ids
and exactly these header fields are accepted. Anything else that a header could contain (`none`, embedded keys, key
URLs, critical extensions) is rejected, and so are long tokens.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

import msgspec
from joserfc.errors import JoseError
from joserfc.jws import deserialize_compact, serialize_compact

from remuda.identity.tokens.keys import LoadedKey
from remuda.kernel.encoding import from_base64url
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.secrets import Secret

TokenType = Literal["fed", "sa", "svc", "op"]
"""Kind of access token: of a login, of a service account, of a service, or issued by an operator for a user."""

AccountType = Literal["user", "service", "system"]
"""Kind of subject on the wire: user, service account, service."""

PASSPORT_ISSUER = "uni-identity"


class RegisteredClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Claims of all tokens. Times are seconds since 1970."""

    iss: str
    sub: str
    iat: int
    exp: int
    aud: tuple[str, ...] = ()

    @property
    def expires(self) -> datetime:
        return datetime.fromtimestamp(self.exp, UTC)


class Claims(RegisteredClaims, frozen=True, kw_only=True, omit_defaults=True):
    """Access token. `sub` is an e-mail address (`fed`, `op`), a service account id (`sa`) or a service name (`svc`)."""

    jti: str
    nbf: int
    typ: TokenType
    sid: str = ""
    """Session (`fed`)."""
    cid: str = ""
    """Client through which the user logged in (`fed`)."""
    uid: str = ""
    """Id of the user (`fed`, `op`)."""
    oid: str = ""
    """Organization of the service account (`sa`), or the only one in which the session is valid (`fed`)."""
    sco: str = ""
    """Requested scope (`fed`)."""
    act: str = ""
    """Operator who requested it (`op`)."""
    idp: str = ""
    """Provider of an organization at which the user logged in (`fed`)."""


class IdClaims(RegisteredClaims, frozen=True, kw_only=True, omit_defaults=True):
    """ID token: tells the client who logged in."""

    azp: str
    auth_time: int
    amr: tuple[str, ...] = ()
    """Authentication methods (RFC 8176) that were used here."""
    acr: str = ""
    """`2` after a second factor, `1` without, nothing after a login at an external provider."""
    nonce: str = ""
    at_hash: str = ""
    sid: str = ""
    email: str = ""
    email_verified: bool = False
    idp: str = ""
    """Provider of an organization at which the user logged in."""


class PassportClaims(RegisteredClaims, frozen=True, kw_only=True, omit_defaults=True):
    """Passport: describes a caller to another service, and grants no permissions."""

    jti: str
    nbf: int
    acctype: AccountType
    source: str
    """Issuer of the caller for audits: `uni`, or the name of a provider."""
    src_iss: str
    """Issuer of the caller: `uni`, or the exact name of an external one."""
    org_ids: tuple[str, ...]
    typ: Literal["passport"]
    email: str = ""
    org_id: str = ""
    project_id: str = ""
    idp: str = ""
    """Provider of an organization at which the user logged in."""


ClaimsT = TypeVar("ClaimsT", bound=RegisteredClaims)


@dataclass(frozen=True, slots=True)
class Purpose(Generic[ClaimsT]):
    """Kind of token: `typ` of the header, and type of the claims."""

    typ: str
    claims: type[ClaimsT]


ACCESS = Purpose("at+jwt", Claims)
"""Access tokens (RFC 9068)."""
ID = Purpose("JWT", IdClaims)
"""ID tokens (OpenID Connect)."""
PASSPORT = Purpose("passport+jwt", PassportClaims)


MAX_TOKEN_BYTES = 8192
NOT_VALID = "token validation failed"
"""Only message for an invalid token: details would help attackers."""

_ALGORITHMS = ["ES512"]
_PARTS = 3


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alg: Literal["ES512"]
    typ: str
    kid: str


_decode_header = msgspec.json.Decoder(_Header).decode
_encode = msgspec.json.Encoder().encode


def sign(claims: ClaimsT, purpose: Purpose[ClaimsT], key: LoadedKey) -> Secret:
    header = {"alg": "ES512", "typ": purpose.typ, "kid": key.kid}
    return Secret(serialize_compact(header, _encode(claims), key.key, _ALGORITHMS))


async def read(
    token: str, purpose: Purpose[ClaimsT], find_key: Callable[[str], Awaitable[LoadedKey | None]]
) -> ClaimsT:
    """Return the claims of a token that our key signed for this purpose. The caller checks times and audience."""
    parts = token.split(".") if len(token) <= MAX_TOKEN_BYTES else []
    if len(parts) != _PARTS:
        raise Unauthenticated(NOT_VALID)
    try:
        header = _decode_header(from_base64url(parts[0]))
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


EXTERNAL_TOKEN_CACHE = timedelta(minutes=15)
"""Time for which a verified token of an external issuer is cached: the issuer may withdraw its key."""
MAX_UNVERIFIED_BYTES = 16_384
"""Maximum length of an external token: some issuers include certificates."""
_LATEST = 2**53  # a larger number is no time, and may be too large for a float


T = TypeVar("T")
HeaderT = TypeVar("HeaderT")


class _UnverifiedHeader(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    enc: Any = None
    crit: Any = None
    b64: Any = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing in it changes how the token is parsed."""
        return self.enc is None and self.crit is None and self.b64 is None


class _Payload(msgspec.Struct, frozen=True):
    iss: str = ""
    exp: Any = None


class UnverifiedClaims(msgspec.Struct, frozen=True):
    """Claims of a token before its signature is verified. They only select the issuer."""

    token: str
    issuer: str
    algorithm: str
    kid: str | None
    ends: float
    """Expiry in seconds since 1970; zero if the token has none."""

    def __repr__(self) -> str:
        return f"UnverifiedClaims(issuer={self.issuer!r})"


def unverified_claims(token: str) -> UnverifiedClaims | None:
    """Return the unverified claims of a token, or None if it is not a JWS."""
    decoded = decode_unverified(token, _UnverifiedHeader, _Payload, max_bytes=MAX_UNVERIFIED_BYTES)
    if decoded is None:
        return None
    header, payload = decoded
    ends = float(payload.exp) if isinstance(payload.exp, int | float) and abs(payload.exp) < _LATEST else 0.0
    return UnverifiedClaims(token, payload.iss, header.alg, header.kid, ends) if header.is_plain else None


def decode_unverified(
    token: str, header: type[HeaderT], claims: type[T], *, max_bytes: int
) -> tuple[HeaderT, T] | None:
    """Return the header and the claims of a token before its signature is verified, or None if it is malformed."""
    parts = token.split(".") if len(token) <= max_bytes else []
    if len(parts) != _PARTS:
        return None
    try:
        return _decoded(parts[0], header), _decoded(parts[1], claims)
    except (ValueError, RecursionError):
        return None


def _decoded(part: str, kind: type[T]) -> T:
    return msgspec.json.decode(from_base64url(part), type=kind)
