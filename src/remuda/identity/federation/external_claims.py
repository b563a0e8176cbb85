"""What the bearer tokens of external issuers say, and whether that is enough for us.

Until its signature was verified a token is a `Peeked`: what it claims to be, good for finding out who should have
signed it and for nothing else. A token that is too long, or brings along what has to be understood beyond the standard,
is nobody's.

Whoever shows a token that a trusted issuer has signed is told what is missing in it: its operators need to know.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

import msgspec
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry, deserialize_compact

from remuda.identity.federation.upstream import PublicKey
from remuda.identity.kinds.oauth import BearerTrust
from remuda.identity.tokens.jws import NOT_VALID
from remuda.kernel import base64url
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.folding import folded
from remuda.resources.writing import each_once

__all__ = ["ALGORITHMS", "Peeked", "Said", "algorithms_of", "check_times", "email_of", "groups_of", "peek", "verify"]

ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")
"""What an issuer can be allowed to sign with: one key signs, another verifies."""

_BY_DEFAULT = ("RS256",)
_LONGEST = 16_384
_PARTS = 3
_SKEW = timedelta(minutes=1)
_CLAIMS = "https://unikorn-cloud.org"
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")

T = TypeVar("T")


class _Registry(JWSRegistry):
    max_header_length = _LONGEST  # some issuers put whole certificates there


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


class _Sender(msgspec.Struct, frozen=True):
    iss: str = ""


class Peeked(msgspec.Struct, frozen=True):
    """What a token says before anybody has verified it."""

    token: str
    issuer: str
    algorithm: str
    kid: str | None

    def __repr__(self) -> str:
        return f"Peeked(issuer={self.issuer!r})"


class Said(msgspec.Struct, frozen=True):
    """What a verified token says. Times are seconds since 1970."""

    aud: str | tuple[str, ...]
    exp: float
    nbf: float | None = None
    iat: float | None = None
    email: Any = msgspec.field(default=None, name=f"{_CLAIMS}/email")
    email_verified: Any = msgspec.field(default=None, name=f"{_CLAIMS}/email_verified")
    authz: Any = msgspec.field(default=None, name=f"{_CLAIMS}/authz")


class _Authz(msgspec.Struct, frozen=True):
    acctype: Literal["user"]
    org_ids: tuple[str, ...] = msgspec.field(name="orgIds")


def peek(token: str) -> Peeked | None:
    """Return what a token claims to be, or None if it is no signed token (JWS)."""
    parts = token.split(".") if len(token) <= _LONGEST else []
    if len(parts) != _PARTS:
        return None
    try:
        head = _decoded(parts[0], _Head)
        sender = _decoded(parts[1], _Sender)
    except (ValueError, RecursionError):
        return None
    return Peeked(token, sender.iss, head.alg, head.kid) if head.is_plain else None


def algorithms_of(trust: BearerTrust) -> tuple[str, ...]:
    """Return what an issuer may sign with. A shared secret is never enough, whatever is stored."""
    return tuple(each for each in trust.signing_algorithms or _BY_DEFAULT if each in ALGORITHMS)


def verify(peeked: Peeked, keys: Sequence[PublicKey], trust: BearerTrust) -> tuple[Said, tuple[str, ...]]:
    """Return what a token says, and its groups, if one of these keys has signed it; else raise Unauthenticated."""
    registry = _Registry(algorithms=[peeked.algorithm], strict_check_header=False)
    for key in keys if peeked.algorithm in algorithms_of(trust) else ():
        try:
            payload = deserialize_compact(peeked.token, key, registry=registry).payload or b""
            return msgspec.json.decode(payload, type=Said), groups_of(payload, trust)
        except (JoseError, ValueError, TypeError, RecursionError):
            continue  # a key of another kind or for another algorithm, or not the one that signed this
    raise Unauthenticated(NOT_VALID)


def check_times(said: Said, now: datetime) -> None:
    """Refuse a token that has ended, or begins later. The issuer's clock may be ahead of ours by a minute."""
    if said.exp <= now.timestamp():
        raise Unauthenticated("token is invalid or has expired")
    latest = (now + _SKEW).timestamp()
    if max(said.nbf or 0, said.iat or 0) > latest:
        raise Unauthenticated("token is not valid yet")


def email_of(said: Said, trust: BearerTrust) -> str:
    """Return the address that a token stands for, in lower case, if the token is for us and vouches for it."""
    if trust.audience not in ((said.aud,) if isinstance(said.aud, str) else said.aud):
        raise Unauthenticated("token is for another audience")
    email = folded(said.email.strip()) if isinstance(said.email, str) else ""
    if not (_EMAIL.fullmatch(email) and email.isprintable()):
        raise Unauthenticated(f"token does not say whose it is: it needs the claim {_CLAIMS}/email")
    if not (trust.skip_email_verification or said.email_verified is True):
        raise Unauthenticated(f"token is of an unverified address: it needs the claim {_CLAIMS}/email_verified")
    if trust.require_authz_claim and not _is_authorized(said.authz):
        raise Unauthenticated(f"token is of nobody's user: it needs the claim {_CLAIMS}/authz with an organization")
    return email


def groups_of(payload: bytes, trust: BearerTrust) -> tuple[str, ...]:
    """Return the groups that a token names, letter by letter; what is no name of a group is passed over."""
    if "://" not in trust.groups_claim:
        return ()
    named = msgspec.json.decode(payload, type=dict[str, Any]).get(trust.groups_claim)
    listed = named if isinstance(named, list) else [named]
    return each_once(each for each in listed if isinstance(each, str) and each)


def _is_authorized(authz: Any) -> bool:
    try:
        return bool(msgspec.convert(authz, _Authz).org_ids)
    except msgspec.ValidationError:
        return False


def _decoded(part: str, kind: type[T]) -> T:
    return msgspec.json.decode(base64url.decode(part), type=kind)
