"""What our signed tokens say, one type for each purpose.

The purpose is in the token's header (`typ`), so that a token made for one thing is never taken for another.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, Literal, TypeVar

import msgspec

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
