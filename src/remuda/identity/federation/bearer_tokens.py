"""Bearer tokens of external issuers: people who log in elsewhere, and come here with what they were given there.

An operator says whose tokens are believed, and how far (`BearerTrust` of a provider of the whole system). Providers of
organizations are never asked: their administrators could be whoever they like. Of several for one issuer the first by
name counts.

What decides is `iss`, letter by letter. It is read before anything is verified, and says only who must have signed the
token: one of ours goes on to our own keys, and one of a trusted issuer is verified by that issuer's keys alone. So
neither can pass for the other. We ourselves are no external issuer, whatever a provider is called.

The issuer is believed about an e-mail address and about its own groups, and about nothing else: where somebody is a
member is written here. Roles of the whole system are bound to an issuer and an address together, so an issuer that
names an administrator of ours has made nobody one.

What the bearer tokens of external issuers say, and whether that is enough for us.

Until its signature was verified a token has `UnverifiedClaims`.

Whoever shows a token that a trusted issuer has signed is told what is missing in it: its operators need to know.

The keys of external issuers whose bearer tokens we believe.

They are where existing installations look for them (`/.well-known/jwks.json` below the issuer) or, where there is
nothing, where the issuer's OpenID discovery says. They are read when the first token comes, again when they have become
old, and when a token names a key that is not among them; but not more than once a minute: whoever sends us tokens with
made-up keys must not make us ask for each. So a token by a key that we know costs no round trip: keys in use are
renewed in the background.

While an issuer does not answer, the keys that it had stay good, for a day at most.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
import structlog
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry, deserialize_compact
from prometheus_client import CollectorRegistry, Counter

from remuda.identity.federation.provider_client import PublicKey, broken, fetch_json, named, read_keys
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider
from remuda.identity.kinds.users import User, user_id
from remuda.identity.ports import Fetch
from remuda.identity.settings import LOCAL_ISSUER, IdentitySettings
from remuda.identity.tokens.bearer import Bearer
from remuda.identity.tokens.jwt import (
    EXTERNAL_TOKEN_CACHE,
    MAX_UNVERIFIED_BYTES,
    NOT_VALID,
    PASSPORT_ISSUER,
    UnverifiedClaims,
    unverified_claims,
)
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError, Unauthenticated, Unavailable
from remuda.kernel.text import folded
from remuda.resources.crud import each_once, find
from remuda.store.contract import Store
from remuda.store.contract import named as object_dependency

ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")
"""What an issuer can be allowed to sign with: one key signs, another verifies."""

_BY_DEFAULT = ("RS256",)
_SKEW = timedelta(minutes=1)
_CLAIMS = "https://unikorn-cloud.org"
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")


class _Registry(JWSRegistry):
    max_header_length = MAX_UNVERIFIED_BYTES  # some issuers put whole certificates there


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


def verify(peeked: UnverifiedClaims, keys: Sequence[PublicKey], trust: BearerTrust) -> tuple[Said, tuple[str, ...]]:
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


FRESH_S = EXTERNAL_TOKEN_CACHE.total_seconds()
"""How old keys may be before they are read again, so that one which the issuer withdrew does not verify for ever."""

_OLD_S = 2 * FRESH_S
"""From then on nobody is let in by them before the issuer was asked."""
_ASK_AGAIN_S = 60.0
_STALE_S = 86_400.0
_NEVER = float("-inf")


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


@dataclass(slots=True)
class _Known:
    """What is known of one issuer."""

    keys: tuple[PublicKey, ...] = ()
    read_at: float = _NEVER
    asked_at: float = _NEVER
    asking: asyncio.Task[None] | None = None


class IssuerKeys:
    """Reads and keeps them. `throttled` counts how often the limit kept us from asking."""

    def __init__(self, *, fetch: Fetch, clock: Clock, throttled: Counter) -> None:
        self._fetch, self._clock, self._throttled = fetch, clock, throttled
        self._issuers: dict[str, _Known] = {}

    async def find(self, issuer: str, kid: str | None) -> Sequence[PublicKey]:
        """Return an issuer's keys with this name, or all if the token names none. Raise Unavailable if we know none."""
        known = self._issuers.setdefault(issuer, _Known())
        age_s, found = self._age_s(known), named(known.keys, kid)
        if not found or age_s >= FRESH_S:
            asking = self._ask_again(issuer, known)
            if asking is not None and (not found or age_s >= _OLD_S):
                await asyncio.shield(asking)  # who gives up waiting does not keep the others from the keys
        if self._age_s(known) >= _STALE_S:
            raise Unavailable("The keys of the token's issuer cannot be read: try again in a minute.")
        return named(known.keys, kid)

    def _ask_again(self, issuer: str, known: _Known) -> asyncio.Task[None] | None:
        """Have an issuer asked once for all who want to know, unless it was asked a moment ago."""
        now = self._clock.monotonic()
        if known.asking is None:
            if now - known.asked_at < _ASK_AGAIN_S:
                self._throttled.inc()
                return None
            known.asked_at, known.asking = now, asyncio.create_task(self._refresh(issuer, known))
        return known.asking

    async def _refresh(self, issuer: str, known: _Known) -> None:
        try:
            known.keys = await self._read(issuer)
            known.read_at = known.asked_at
        except OAuthError as refusal:
            structlog.get_logger().warning(
                "the keys of an external issuer cannot be read", issuer=issuer, cause=refusal.message
            )
        finally:
            known.asking = None

    async def _read(self, issuer: str) -> tuple[PublicKey, ...]:
        below = f"{issuer.removesuffix('/')}/.well-known"
        try:
            return await read_keys(self._fetch, f"{below}/jwks.json")
        except OAuthError as refusal:
            if refusal.error == "temporarily_unavailable":
                raise
        about = await fetch_json(self._fetch, "GET", f"{below}/openid-configuration", _Discovery)
        if about.issuer != issuer:
            raise broken("it calls itself by another issuer than the one configured here")
        return await read_keys(self._fetch, about.jwks_uri)

    def _age_s(self, known: _Known) -> float:
        return self._clock.monotonic() - known.read_at


def is_our_issuer(issuer: str, settings: IdentitySettings) -> bool:
    """Tell whether an issuer is this system itself, by any of its names."""
    return issuer.rstrip("/") in {"", LOCAL_ISSUER, PASSPORT_ISSUER, settings.issuer.rstrip("/")}


class ExternalBearers:
    """Tells who stands behind an external issuer's token (`identity.tokens.bearers.External`)."""

    def __init__(
        self, *, store: Store, clock: Clock, settings: IdentitySettings, fetch: Fetch, metrics: CollectorRegistry
    ) -> None:
        self._store, self._clock, self._settings = store, clock, settings
        self._unroutable = Counter(
            "remuda_bearer_tokens_unroutable",
            "Bearer tokens that nobody can have issued whom we know.",
            ["reason"],
            registry=metrics,
        )
        throttled = Counter(
            "remuda_external_key_refreshes_throttled",
            "Times that an external issuer was not asked for its keys because it was asked a moment ago.",
            registry=metrics,
        )
        self._keys = IssuerKeys(fetch=fetch, clock=clock, throttled=throttled)
        self._stamp: int | None = None
        self._providers: Mapping[str, OAuth2Provider] = {}

    async def __call__(self, token: str) -> Bearer | None:
        """Return who shows this token, or None if it is no trusted external issuer's; raise if it does not hold."""
        peeked = unverified_claims(token)
        if peeked is None:
            self._unroutable.labels("format").inc()
            raise Unauthenticated("unrecognized bearer token format")
        if peeked.issuer in {self._settings.issuer, PASSPORT_ISSUER}:
            return None
        provider = (await self._trusted()).get(peeked.issuer)
        if provider is None or (trust := provider.spec.bearer_trust) is None:
            self._unroutable.labels("issuer").inc()
            return None
        said, groups = verify(peeked, await self._keys.find(peeked.issuer, peeked.kid), trust)
        now = self._clock.now()
        check_times(said, now)
        email = email_of(said, trust)
        user, subject = await self._person(email, trust)
        return Bearer(
            subject=subject,
            type="user",
            expires=self._end(said.exp, now),
            user=user,
            issuer=provider.spec.issuer,
            source=provider.name,
            groups=groups,
            dependencies=(OAuth2Provider, object_dependency(User, user_id(email))),
        )

    async def _trusted(self) -> Mapping[str, OAuth2Provider]:
        """Return the providers whose tokens are believed, by their issuers."""
        stamp = self._store.change_counter((OAuth2Provider,))
        if stamp != self._stamp:
            found = (await self._store.list(OAuth2Provider, index=("platform", "yes"))).items
            trusted: dict[str, OAuth2Provider] = {}
            for each in sorted(found, key=lambda provider: provider.name):
                if not (each.spec.bearer_trust is None or each.is_deleting or self._is_ours(each)):
                    trusted.setdefault(each.spec.issuer, each)
            self._providers, self._stamp = trusted, stamp
        return self._providers

    def _is_ours(self, provider: OAuth2Provider) -> bool:
        return is_our_issuer(provider.spec.issuer, self._settings)

    async def _person(self, email: str, trust: BearerTrust) -> tuple[User | None, str]:
        """Return the user who has an address, however it is written, and as whom that one acts."""
        user = await find(self._store, User, user_id(email))
        if user is None and trust.allow_external_identity:
            return None, email
        if user is None or not user.is_active:
            raise Unauthenticated("user identity not found or inactive")
        return user, user.spec.subject

    def _end(self, exp: float, now: datetime) -> datetime:
        """Return when to look at a token again: its issuer may have withdrawn the key before the token ends."""
        return datetime.fromtimestamp(min(exp, (now + EXTERNAL_TOKEN_CACHE).timestamp()), UTC)
