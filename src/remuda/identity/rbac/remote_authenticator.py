"""Who stands behind a request, where identity runs in another process.

A token's signature is checked here by identity's public keys, so that garbage never leaves this process, and its id is
looked up in the revocation feed. What its holder may do is asked of identity with the holder's own credentials, and
kept for 2 s: that is how long a right that was taken away can outlive its end here. A token that was revoked is refused
as soon as the feed tells. When the feed is older than 10 s, or identity does not answer, nobody is let in (503).

Whose tokens are believed besides identity's own, and by which keys, it alone knows. So a token of another issuer is
identity's to judge, and so is whose it is: that, too, is asked for and kept.

A client certificate is handed on as a proxy does, so identity believes it if this process is one of its configured
proxies; a service token needs no such thing.
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
from remuda.identity.rbac.authenticator import Certificate, counting_for, credentials_key, read_certificate
from remuda.identity.rbac.revocation_feed import IdentitySilent, PublicKeys, RevocationFeed
from remuda.identity.rbac.routes import ACL
from remuda.identity.rbac.schema import access_of
from remuda.identity.tokens.jwt import (
    ACCESS,
    BELIEVED,
    NOT_VALID,
    PASSPORT_ISSUER,
    AccountType,
    Claims,
    Peeked,
    TokenType,
    peek,
    read,
)
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.service import Verified
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, Unauthenticated, Unavailable

RIGHTS_HOLD_S = 2.0
"""How long an answer of identity is believed."""

_REMEMBERED = 8192
_OK = 200
_TYPES: Mapping[TokenType, AccountType] = {"fed": "user", "op": "user", "sa": "service", "svc": "system"}


T = TypeVar("T")


class _Authz(msgspec.Struct, frozen=True):
    org_ids: tuple[str, ...] = msgspec.field(name="orgIds")


class _Userinfo(msgspec.Struct, frozen=True):
    sub: str
    authz: _Authz = msgspec.field(name="https://unikorn-cloud.org/authz")


@dataclass(frozen=True, slots=True)
class _Told:
    principal: Principal
    until: float


@dataclass(frozen=True, slots=True)
class _Asking:
    task: asyncio.Task[Principal]
    began: float


class RemoteAuthenticator:
    """The authentication port of a service in a process of its own."""

    def __init__(
        self, *, issuer: str, fetch: Fetch, feed: RevocationFeed, clock: Clock, server: str | None = None
    ) -> None:
        """Take identity's URL as its tokens have it, and where it is reached from here if that is elsewhere."""
        self._issuer, self._server = issuer, (server or issuer).rstrip("/")
        self._audience = urlsplit(issuer).hostname or ""
        self._fetch, self._feed, self._clock = fetch, feed, clock
        self._keys = PublicKeys(f"{self._server}/oauth2/v2/jwks", fetch=fetch, clock=clock)
        self._verified = Verified(_REMEMBERED)
        self._told: OrderedDict[Hashable, _Told] = OrderedDict()
        self._asking: dict[Hashable, _Asking] = {}

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return who shows these credentials, or raise Unauthenticated, or IdentitySilent if nobody can tell."""
        self._feed.check()
        shown = await self._shown(credentials)
        credentials = counting_for(shown, credentials)
        key = credentials_key(credentials)
        told = self._told.get(key)
        if told is None or self._clock.monotonic() >= told.until:
            return await self._ask_once(key, credentials, shown)
        self._told.move_to_end(key)
        return told.principal

    def knows(self, credentials: RequestCredentials) -> bool:
        """Tell whether the token was verified or let in lately, or a proxy vouches for a certificate alone."""
        token = credentials.token
        return token is None or self._found(token) is not None or token_hash(token) in self._told

    async def _shown(self, credentials: RequestCredentials) -> Principal:
        """Return whose credentials they are, as far as that can be told here: not what that one may do."""
        if credentials.token is None:
            assert credentials.certificate is not None, "credentials are a token, a certificate, or both"
            certificate = read_certificate(credentials.certificate)
            certificate.check(self._clock.now())
            return _service(certificate)
        peeked = self._peek(credentials.token)
        if peeked is not None:
            return self._stranger(peeked)
        claims = await self._verify(credentials.token)
        operator = f"operator {claims.act}" if claims.act else None
        vouched_by = claims.oid if claims.typ == "fed" and claims.oid else None
        return Principal(
            subject=claims.sub,
            type=_TYPES[claims.typ],
            expires=claims.expires,
            service=operator,
            member_of_only=vouched_by,
        )

    def _found(self, token: str) -> Claims | None:
        return self._verified.find(token, self._keys.stamp)

    def _peek(self, token: str) -> Peeked | None:
        """Return what the token of another issuer says of itself; None if it is one of ours, or none at all."""
        peeked = peek(token) if self._found(token) is None else None
        return None if peeked is None or peeked.issuer in {self._issuer, PASSPORT_ISSUER} else peeked

    def _stranger(self, peeked: Peeked) -> Principal:
        """Return somebody of another issuer, without a name: that it holds, and whose it is, identity has to say."""
        now = self._clock.now()
        if peeked.ends <= now.timestamp():
            raise Unauthenticated("token is invalid or has expired")
        ends = datetime.fromtimestamp(min(peeked.ends, (now + BELIEVED).timestamp()), UTC)
        return Principal(subject="", type="user", issuer=peeked.issuer, expires=ends)

    async def _verify(self, token: str) -> Claims:
        claims = self._found(token)
        if claims is None:
            claims = await read(token, ACCESS, self._keys.find)
            self._verified.keep(token, claims, self._keys.stamp)
        if claims.iss != self._issuer or self._audience not in claims.aud:
            raise Unauthenticated(NOT_VALID)
        if not claims.nbf <= self._clock.now().timestamp() < claims.exp:
            raise Unauthenticated("token is invalid or has expired")
        if claims.jti in self._feed or claims.sid in self._feed:
            raise Unauthenticated("token is revoked: log in again, or get another one")
        return claims

    async def _ask_once(self, key: Hashable, credentials: RequestCredentials, shown: Principal) -> Principal:
        """Ask identity, once for all requests that wait for the same answer, unless that was asked for too long ago."""
        now = self._clock.monotonic()
        asking = self._asking.get(key)
        if asking is None or now - asking.began >= RIGHTS_HOLD_S:
            asking = self._asking[key] = _Asking(asyncio.create_task(self._ask(key, credentials, shown, now)), now)
            asking.task.add_done_callback(partial(self._asked, key))
        return await asyncio.shield(asking.task)

    def _asked(self, key: Hashable, task: asyncio.Task[Principal]) -> None:
        if (asking := self._asking.get(key)) is not None and asking.task is task:
            del self._asking[key]
        if not task.cancelled():
            task.exception()  # whoever waits is told; if nobody waits any more, nobody need be

    async def _ask(self, key: Hashable, credentials: RequestCredentials, shown: Principal, now: float) -> Principal:
        access = access_of(await self._get(ACL.path, _headers(credentials), ACL.response_type))
        organizations = tuple(access.organizations)
        if not shown.subject:
            bearer = _headers(RequestCredentials(token=credentials.token))
            who = await self._get("/oauth2/v2/userinfo", bearer, _Userinfo)
            shown, organizations = replace(shown, subject=who.sub), who.authz.org_ids
        principal = _principal(replace(shown, access=access, organizations=organizations), credentials)
        self._told[key] = _Told(principal, now + RIGHTS_HOLD_S)
        self._told.move_to_end(key)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        return principal

    async def _get(self, path: str, headers: Mapping[str, str], kind: type[T]) -> T:
        try:
            answer = await self._fetch("GET", f"{self._server}{path}", dict(headers), None)
        except Unavailable:
            raise IdentitySilent("identity does not answer") from None
        if answer.status == _OK:
            return read_response(answer.body, kind, server=self._server)
        error = error_from(answer.status, {}, answer.body, server=self._server)
        if isinstance(error, Unauthenticated | Malformed):
            raise error
        raise IdentitySilent(f"identity answered {answer.status}")


def _principal(shown: Principal, credentials: RequestCredentials) -> Principal:
    """Return who acts for whom. The rights are as identity told them, which has looked at the claim too."""
    if credentials.claim is None:
        return shown
    if shown.type == "system":
        return acting_for(shown, credentials.claim)
    if credentials.certificate is None:
        return shown
    return presented_by(shown, _service(read_certificate(credentials.certificate)), credentials.claim)


def _service(certificate: Certificate) -> Principal:
    return Principal(subject=certificate.name, type="system", expires=certificate.ends)


def _headers(credentials: RequestCredentials) -> Mapping[str, str]:
    """Return credentials as they came."""
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
