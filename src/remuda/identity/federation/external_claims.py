"""What the bearer tokens of external issuers say, and whether that is enough for us.

Until its signature was verified a token is a `Peeked`.

Whoever shows a token that a trusted issuer has signed is told what is missing in it: its operators need to know.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry, deserialize_compact

from remuda.identity.federation.provider_client import PublicKey
from remuda.identity.kinds.oauth import BearerTrust
from remuda.identity.tokens.jws import NOT_VALID
from remuda.identity.tokens.peeking import LONGEST, Peeked
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.text import folded
from remuda.resources.crud import each_once

ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")
"""What an issuer can be allowed to sign with: one key signs, another verifies."""

_BY_DEFAULT = ("RS256",)
_SKEW = timedelta(minutes=1)
_CLAIMS = "https://unikorn-cloud.org"
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")


class _Registry(JWSRegistry):
    max_header_length = LONGEST  # some issuers put whole certificates there


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
