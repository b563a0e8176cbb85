"""Bearer tokens of external issuers.

An operator configures the trusted issuers (`BearerTrust` of a platform provider). Providers of organizations are never
trusted: their administrators could impersonate any user. The unverified `iss`, compared as a string, only selects the
keys: a token of ours is verified by our keys, one of a trusted issuer by that issuer's keys alone.

An issuer is trusted for an e-mail address and its own groups only; memberships are stored here, and platform roles are
bound to issuer and address together. Errors name the missing claim, since the issuer's operators need it.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import msgspec
import structlog
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry, deserialize_compact
from prometheus_client import CollectorRegistry, Counter

from remuda.identity.federation.provider_client import PublicKey, fetch_json, keys_with_id, provider_error, read_keys
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider
from remuda.identity.kinds.users import User, user_id
from remuda.identity.ports import Fetch
from remuda.identity.settings import IdentitySettings
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
"""Algorithms that an issuer may be allowed to sign with, all asymmetric."""

_DEFAULT_ALGORITHMS = ("RS256",)
_SKEW = timedelta(minutes=1)
_CLAIMS = "https://unikorn-cloud.org"
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")


class _Registry(JWSRegistry):
    max_header_length = MAX_UNVERIFIED_BYTES  # some issuers send certificates


class ExternalClaims(msgspec.Struct, frozen=True):
    """Claims of a verified token. Times are seconds since 1970."""

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
    """Return the asymmetric algorithms that an issuer may sign with."""
    return tuple(each for each in trust.signing_algorithms or _DEFAULT_ALGORITHMS if each in ALGORITHMS)


def verify(
    unverified: UnverifiedClaims, keys: Sequence[PublicKey], trust: BearerTrust
) -> tuple[ExternalClaims, tuple[str, ...]]:
    """Return the claims of a token and its groups if one of these keys signed it, or raise Unauthenticated."""
    registry = _Registry(algorithms=[unverified.algorithm], strict_check_header=False)
    for key in keys if unverified.algorithm in algorithms_of(trust) else ():
        try:
            payload = deserialize_compact(unverified.token, key, registry=registry).payload or b""
            return msgspec.json.decode(payload, type=ExternalClaims), groups_of(payload, trust)
        except (JoseError, ValueError, TypeError, RecursionError):
            continue  # another type of key or algorithm, or not the key that signed this
    raise Unauthenticated(NOT_VALID)


def check_times(claims: ExternalClaims, now: datetime) -> None:
    """Raise Unauthenticated if a token has expired or is not valid yet. The issuer's clock may be a minute ahead."""
    if claims.exp <= now.timestamp():
        raise Unauthenticated("token is invalid or has expired")
    latest = (now + _SKEW).timestamp()
    if max(claims.nbf or 0, claims.iat or 0) > latest:
        raise Unauthenticated("token is not valid yet")


def email_of(claims: ExternalClaims, trust: BearerTrust) -> str:
    """Return the e-mail address of a token in lower case, or raise Unauthenticated."""
    if trust.audience not in ((claims.aud,) if isinstance(claims.aud, str) else claims.aud):
        raise Unauthenticated("token is for another audience")
    email = folded(claims.email.strip()) if isinstance(claims.email, str) else ""
    if not (_EMAIL.fullmatch(email) and email.isprintable()):
        raise Unauthenticated(f"token has no e-mail address: it needs the claim {_CLAIMS}/email")
    if not (trust.skip_email_verification or claims.email_verified is True):
        raise Unauthenticated(f"token has an unverified e-mail address: it needs the claim {_CLAIMS}/email_verified")
    if trust.require_authz_claim and not _is_authorized(claims.authz):
        raise Unauthenticated(f"token has no organization: it needs the claim {_CLAIMS}/authz with an organization")
    return email


def groups_of(payload: bytes, trust: BearerTrust) -> tuple[str, ...]:
    """Return the groups that a token names. Values that are no names are ignored."""
    if "://" not in trust.groups_claim:
        return ()
    claim = msgspec.json.decode(payload, type=dict[str, Any]).get(trust.groups_claim)
    listed = claim if isinstance(claim, list) else [claim]
    return each_once(each for each in listed if isinstance(each, str) and each)


def _is_authorized(authz: Any) -> bool:
    try:
        return bool(msgspec.convert(authz, _Authz).org_ids)
    except msgspec.ValidationError:
        return False


FRESH_S = EXTERNAL_TOKEN_CACHE.total_seconds()
"""Age at which keys are refreshed in the background, so that a withdrawn key does not stay valid."""

_OLD_S = 2 * FRESH_S
"""Age from which verification waits for the refresh."""
_REFRESH_INTERVAL_S = 60.0
_STALE_S = 86_400.0
_NEVER = float("-inf")


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


@dataclass(slots=True)
class _CachedKeys:
    """Cached keys of one issuer."""

    keys: tuple[PublicKey, ...] = ()
    read_at: float = _NEVER
    requested_at: float = _NEVER
    refreshing: asyncio.Task[None] | None = None


class IssuerKeys:
    """Cache of the keys of trusted issuers. `throttled` counts suppressed refreshes.

    Keys are read from `/.well-known/jwks.json` below the issuer, as existing installations do, or from the `jwks_uri`
    of its metadata. They are refreshed when they are old, or when a token names an unknown key, but at most once a
    minute, so that tokens with invented key ids cause no load. While an issuer is unreachable its keys stay valid for a
    day.
    """

    def __init__(self, *, fetch: Fetch, clock: Clock, throttled: Counter) -> None:
        self._fetch, self._clock, self._throttled = fetch, clock, throttled
        self._issuers: dict[str, _CachedKeys] = {}

    async def find(self, issuer: str, kid: str | None) -> Sequence[PublicKey]:
        """Return an issuer's keys with this id, or all if it is None. Raise Unavailable if the keys cannot be read."""
        cached = self._issuers.setdefault(issuer, _CachedKeys())
        age_s, found = self._age_s(cached), keys_with_id(cached.keys, kid)
        if not found or age_s >= FRESH_S:
            refreshing = self._start_refresh(issuer, cached)
            if refreshing is not None and (not found or age_s >= _OLD_S):
                await asyncio.shield(refreshing)  # a cancelled caller does not cancel the refresh
        if self._age_s(cached) >= _STALE_S:
            raise Unavailable("The keys of the token's issuer cannot be read: try again in a minute.")
        return keys_with_id(cached.keys, kid)

    def _start_refresh(self, issuer: str, cached: _CachedKeys) -> asyncio.Task[None] | None:
        """Return the refresh in progress, or start one unless the last was less than a minute ago."""
        now = self._clock.monotonic()
        if cached.refreshing is None:
            if now - cached.requested_at < _REFRESH_INTERVAL_S:
                self._throttled.inc()
                return None
            cached.requested_at, cached.refreshing = now, asyncio.create_task(self._refresh(issuer, cached))
        return cached.refreshing

    async def _refresh(self, issuer: str, cached: _CachedKeys) -> None:
        try:
            cached.keys = await self._read(issuer)
            cached.read_at = cached.requested_at
        except OAuthError as error:
            structlog.get_logger().warning(
                "the keys of an external issuer cannot be read", issuer=issuer, cause=error.message
            )
        finally:
            cached.refreshing = None

    async def _read(self, issuer: str) -> tuple[PublicKey, ...]:
        base = f"{issuer.removesuffix('/')}/.well-known"
        fetch = partial(self._fetch, organization="")
        try:
            return await read_keys(fetch, f"{base}/jwks.json")
        except OAuthError as error:
            if error.error == "temporarily_unavailable":
                raise
        metadata = await fetch_json(fetch, "GET", f"{base}/openid-configuration", _Discovery)
        if metadata.issuer != issuer:
            raise provider_error("the issuer in its metadata is not the configured one")
        return await read_keys(fetch, metadata.jwks_uri)

    def _age_s(self, cached: _CachedKeys) -> float:
        return self._clock.monotonic() - cached.read_at


def is_our_issuer(issuer: str, settings: IdentitySettings) -> bool:
    """Tell whether an issuer is this system, by any of its names."""
    return issuer.rstrip("/") in {"", LOCAL_ISSUER, PASSPORT_ISSUER, settings.issuer.rstrip("/")}


class ExternalBearers:
    """Authentication by tokens of external issuers (`identity.tokens.bearers.External`)."""

    def __init__(
        self, *, store: Store, clock: Clock, settings: IdentitySettings, fetch: Fetch, metrics: CollectorRegistry
    ) -> None:
        self._store, self._clock, self._settings = store, clock, settings
        self._unroutable = Counter(
            "remuda_bearer_tokens_unroutable",
            "Bearer tokens whose issuer is missing, malformed or unknown.",
            ["reason"],
            registry=metrics,
        )
        throttled = Counter(
            "remuda_external_key_refreshes_throttled",
            "Refreshes of an external issuer's keys that the limit of one per minute suppressed.",
            registry=metrics,
        )
        self._keys = IssuerKeys(fetch=fetch, clock=clock, throttled=throttled)
        self._version: int | None = None
        self._providers: Mapping[str, OAuth2Provider] = {}

    async def __call__(self, token: str) -> Bearer | None:
        """Return the bearer of a token, or None if its issuer is not a trusted external one. Raise if invalid."""
        unverified = unverified_claims(token)
        if unverified is None:
            self._unroutable.labels("format").inc()
            raise Unauthenticated("unrecognized bearer token format")
        if unverified.issuer in {self._settings.issuer, PASSPORT_ISSUER}:
            return None
        provider = (await self._trusted()).get(unverified.issuer)
        if provider is None or (trust := provider.spec.bearer_trust) is None:
            self._unroutable.labels("issuer").inc()
            return None
        claims, groups = verify(unverified, await self._keys.find(unverified.issuer, unverified.kid), trust)
        now = self._clock.now()
        check_times(claims, now)
        email = email_of(claims, trust)
        user, subject = await self._find_user(email, trust)
        return Bearer(
            subject=subject,
            type="user",
            expires=self._recheck_time(claims.exp, now),
            user=user,
            issuer=provider.spec.issuer,
            source=provider.name,
            groups=groups,
            proof="provider",
            dependencies=(OAuth2Provider, object_dependency(User, user_id(email))),
        )

    async def _trusted(self) -> Mapping[str, OAuth2Provider]:
        """Return the trusted providers by issuer; of several the first by name."""
        version = self._store.change_counter((OAuth2Provider,))
        if version != self._version:
            found = (await self._store.list(OAuth2Provider, index=("platform", "yes"))).items
            trusted: dict[str, OAuth2Provider] = {}
            for each in sorted(found, key=lambda provider: provider.name):
                if not (each.spec.bearer_trust is None or each.is_deleting or self._is_ours(each)):
                    trusted.setdefault(each.spec.issuer, each)
            self._providers, self._version = trusted, version
        return self._providers

    def _is_ours(self, provider: OAuth2Provider) -> bool:
        return is_our_issuer(provider.spec.issuer, self._settings)

    async def _find_user(self, email: str, trust: BearerTrust) -> tuple[User | None, str]:
        """Return the user with this address, if any, and the subject to act as."""
        user = await find(self._store, User, user_id(email))
        if user is None and trust.allow_external_identity:
            return None, email
        if user is None or not user.is_active:
            raise Unauthenticated("user identity not found or inactive")
        return user, user.spec.subject

    def _recheck_time(self, exp: float, now: datetime) -> datetime:
        """Return the time to verify a token again: its issuer may withdraw the key before the token expires."""
        return datetime.fromtimestamp(min(exp, (now + EXTERNAL_TOKEN_CACHE).timestamp()), UTC)
