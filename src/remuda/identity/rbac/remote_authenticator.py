"""Authenticator in another process than identity.

A token is verified here with identity's public keys, and looked up in the revocation feed. The permissions of its
bearer are requested from identity with the bearer's own credentials, and cached for 2 s: so long a revoked permission
can remain effective here. When the feed is stale or identity does not respond, no caller is authenticated (503).

Only identity knows the external issuers and their keys, so the subject of a token of another issuer is requested from
identity, too, and cached.

A client certificate is forwarded as a proxy does, so identity accepts it if this process is one of its configured
proxies; a service token does not need that.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.authentication import RequestCredentials, acting_for, presented_by, write_claim
from remuda.http.remote_errors import error_from
from remuda.http.transport import read_response
from remuda.identity.ports import Fetch
from remuda.identity.rbac.authenticator import Certificate, credentials_key, effective_credentials, read_certificate
from remuda.identity.rbac.revocation_feed import IdentityUnavailable, PublicKeys, RevocationFeed
from remuda.identity.rbac.routes import ACL
from remuda.identity.rbac.schema import access_of
from remuda.identity.tokens.jwt import (
    ACCESS,
    EXTERNAL_TOKEN_CACHE,
    NOT_VALID,
    PASSPORT_ISSUER,
    AccountType,
    Claims,
    TokenType,
    UnverifiedClaims,
    read,
    unverified_claims,
)
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.service import Verified
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, RemudaError, Unauthenticated, Unavailable
from remuda.kernel.names import display_name

CACHE_S = 2.0
"""Time for which a response of identity is cached."""

_CACHE_SIZE = 8192
_OK = 200
_TYPES: Mapping[TokenType, AccountType] = {"fed": "user", "op": "user", "sa": "service", "svc": "system"}


T = TypeVar("T")


class _Authz(msgspec.Struct, frozen=True):
    org_ids: tuple[str, ...] = msgspec.field(name="orgIds")


class _Userinfo(msgspec.Struct, frozen=True):
    sub: str
    authz: _Authz = msgspec.field(name="https://unikorn-cloud.org/authz")


@dataclass(frozen=True, slots=True)
class _CachedPrincipal:
    principal: Principal
    until: float


@dataclass(frozen=True, slots=True)
class _Request:
    task: asyncio.Task[Principal]
    began: float


class RemoteAuthenticator:
    """Authenticator of a service in another process than identity."""

    def __init__(
        self, *, issuer: str, fetch: Fetch, feed: RevocationFeed, clock: Clock, server: str | None = None
    ) -> None:
        """Take identity's issuer URL, and its URL from here if that differs."""
        self._issuer, self._server = issuer, (server or issuer).rstrip("/")
        self._audience = urlsplit(issuer).hostname or ""
        self._fetch, self._feed, self._clock = fetch, feed, clock
        self._keys = PublicKeys(f"{self._server}/oauth2/v2/jwks", fetch=fetch, clock=clock)
        self._verified = Verified(_CACHE_SIZE)
        self._cache: OrderedDict[Hashable, _CachedPrincipal] = OrderedDict()
        self._requests: dict[Hashable, _Request] = {}

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return the principal of credentials, or raise Unauthenticated or IdentityUnavailable."""
        self._feed.check()
        bearer = await self._bearer(credentials)
        credentials = effective_credentials(bearer, credentials)
        key = credentials_key(credentials)
        cached = self._cache.get(key)
        if cached is None or self._clock.monotonic() >= cached.until:
            return await self._request_once(key, credentials, bearer)
        self._cache.move_to_end(key)
        return cached.principal

    def access_version(self) -> int:
        """Return a number that changes with the revocations. Other changes are known when the cache is too old."""
        return self._feed.version

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        """Return whether the token is identity's, by its signature, or known, or there is only a client certificate."""
        token = credentials.token
        if token is None or self._cached_claims(token) is not None or token_hash(token) in self._cache:
            return True
        if self._foreign_claims(token) is not None:
            return False
        try:
            await self._verify(token)
        except RemudaError:
            return False
        return True

    async def _bearer(self, credentials: RequestCredentials) -> Principal:
        """Return the subject of credentials, as far as known here, without its permissions."""
        if credentials.token is None:
            assert credentials.certificate is not None, "credentials are a token, a certificate, or both"
            certificate = read_certificate(credentials.certificate)
            certificate.check(self._clock.now())
            return _service(certificate)
        foreign = self._foreign_claims(credentials.token)
        if foreign is not None:
            return self._foreign_bearer(foreign)
        claims = await self._verify(credentials.token)
        operator = f"operator {claims.act}" if claims.act else None
        provider_organization = claims.oid if claims.typ == "fed" and claims.oid else None
        return Principal(
            subject=claims.sub,
            type=_TYPES[claims.typ],
            expires=claims.expires,
            service=operator,
            member_of_only=provider_organization,
        )

    def _cached_claims(self, token: str) -> Claims | None:
        return self._verified.find(token, self._keys.version)

    def _foreign_claims(self, token: str) -> UnverifiedClaims | None:
        """Return the unverified claims of a token of another issuer; None if it is ours or malformed."""
        claims = unverified_claims(token) if self._cached_claims(token) is None else None
        return None if claims is None or claims.issuer in {self._issuer, PASSPORT_ISSUER} else claims

    def _foreign_bearer(self, claims: UnverifiedClaims) -> Principal:
        """Return a principal without a subject for a token of another issuer, which identity has to verify."""
        now = self._clock.now()
        if claims.ends <= now.timestamp():
            raise Unauthenticated("token is invalid or has expired")
        ends = datetime.fromtimestamp(min(claims.ends, (now + EXTERNAL_TOKEN_CACHE).timestamp()), UTC)
        return Principal(subject="", type="user", issuer=claims.issuer, expires=ends)

    async def _verify(self, token: str) -> Claims:
        claims = self._cached_claims(token)
        if claims is None:
            claims = await read(token, ACCESS, self._keys.find)
            self._verified.keep(token, claims, self._keys.version)
        if claims.iss != self._issuer or self._audience not in claims.aud:
            raise Unauthenticated(NOT_VALID)
        if not claims.nbf <= self._clock.now().timestamp() < claims.exp:
            raise Unauthenticated("token is invalid or has expired")
        if claims.jti in self._feed or claims.sid in self._feed:
            raise Unauthenticated("token is revoked: log in again, or get another one")
        return claims

    async def _request_once(self, key: Hashable, credentials: RequestCredentials, bearer: Principal) -> Principal:
        """Send one request for all callers that wait for the same response, unless it was sent too long ago."""
        now = self._clock.monotonic()
        request = self._requests.get(key)
        if request is None or now - request.began >= CACHE_S:
            request = self._requests[key] = _Request(
                asyncio.create_task(self._request(key, credentials, bearer, now)), now
            )
            request.task.add_done_callback(partial(self._finished, key))
        return await asyncio.shield(request.task)

    def _finished(self, key: Hashable, task: asyncio.Task[Principal]) -> None:
        if (request := self._requests.get(key)) is not None and request.task is task:
            del self._requests[key]
        if not task.cancelled():
            task.exception()  # waiting callers get it; without one it is not needed

    async def _request(
        self, key: Hashable, credentials: RequestCredentials, bearer: Principal, now: float
    ) -> Principal:
        acl = await self._get(ACL.path, _headers(credentials), ACL.response_type)
        access = access_of(acl)
        organizations = tuple(access.organizations)
        if not bearer.subject:
            headers = _headers(RequestCredentials(token=credentials.token))
            userinfo = await self._get("/oauth2/v2/userinfo", headers, _Userinfo)
            bearer, organizations = replace(bearer, subject=userinfo.sub), userinfo.authz.org_ids
        principal = _principal(
            replace(
                bearer,
                access=access,
                organizations=organizations,
                closed=acl.second_factor_required,
                display_name=display_name(acl.caller_name) if bearer.type == "service" else "",
            ),
            credentials,
        )
        self._cache[key] = _CachedPrincipal(principal, now + CACHE_S)
        self._cache.move_to_end(key)
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return principal

    async def _get(self, path: str, headers: Mapping[str, str], kind: type[T]) -> T:
        try:
            response = await self._fetch("GET", f"{self._server}{path}", dict(headers), None, organization="")
        except Unavailable:
            raise IdentityUnavailable("identity does not respond") from None
        if response.status == _OK:
            return read_response(response.body, kind, server=self._server)
        error = error_from(response.status, {}, response.body, server=self._server)
        if isinstance(error, Unauthenticated | Malformed):
            raise error
        raise IdentityUnavailable(f"identity responded {response.status}")


def _principal(bearer: Principal, credentials: RequestCredentials) -> Principal:
    """Return the principal with its actor. Identity computed the permissions with the same claim."""
    if credentials.claim is None:
        return bearer
    if bearer.type == "system":
        return acting_for(bearer, credentials.claim)
    if credentials.certificate is None:
        return bearer
    return presented_by(bearer, _service(read_certificate(credentials.certificate)), credentials.claim)


def _service(certificate: Certificate) -> Principal:
    return Principal(subject=certificate.name, type="system", expires=certificate.ends)


def _headers(credentials: RequestCredentials) -> Mapping[str, str]:
    headers = {"Accept": "application/json"}
    if credentials.token is not None:
        headers["Authorization"] = f"Bearer {credentials.token}"
    if credentials.certificate is not None:
        headers |= {"ssl-client-cert": quote(credentials.certificate), "ssl-client-verify": "SUCCESS"}
    if credentials.claim is not None:
        headers["X-Principal"] = write_claim(credentials.claim)
    if credentials.impersonate:
        headers["X-Impersonate"] = "true"
    return headers
