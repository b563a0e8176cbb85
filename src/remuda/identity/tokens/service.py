"""Access tokens: issue, verification and revocation.

Access tokens are signed (JWS), not encrypted, so that every service can verify them with the public keys. Clients treat
them as opaque. They contain names and ids only.
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from remuda.identity.kinds.tokens import Revocation, RevocationSpec, Session
from remuda.identity.kinds.users import User
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import ACCESS, NOT_VALID, Claims, Purpose, RegisteredClaims, TokenType, read, sign
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Unauthenticated
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.store.contract import Dependency, Store, indexed
from remuda.store.derived import DerivedCache
from remuda.store.logs import Record
from remuda.store.objects import Metadata

_CACHE_SIZE = 8192


class Verified:
    """Cache of the claims of verified tokens, by hash, while the keys are the same. Times are checked at each use."""

    def __init__(self, capacity: int = _CACHE_SIZE) -> None:
        self._most = capacity
        self._version: int | None = None
        self._claims: OrderedDict[str, Claims] = OrderedDict()

    def find(self, token: str, version: int) -> Claims | None:
        """Return the claims of a token that was verified with this version of the keys."""
        if version != self._version:
            return None
        name = token_hash(token)
        claims = self._claims.get(name)
        if claims is not None:
            self._claims.move_to_end(name)
        return claims

    def keep(self, token: str, claims: Claims, version: int) -> None:
        """Cache the claims of a token, and evict the least recently used one."""
        if version != self._version:
            self._claims.clear()
            self._version = version
        self._claims[token_hash(token)] = claims
        if len(self._claims) > self._most:
            self._claims.popitem(last=False)


ClaimsT = TypeVar("ClaimsT", bound=RegisteredClaims)

_REVOCATION_CACHE_SIZE = 8192


def revocations_of(claims: Claims) -> tuple[Dependency, ...]:
    """Return the possible revocations of a token and of its session."""
    return tuple(indexed(Revocation, "revoked", name) for name in (claims.jti, claims.sid) if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """New access token. It is returned once; only the rest may be stored."""

    token: Secret
    id: str
    """The `jti`, by which it is revoked."""
    hash: str
    """SHA-256, in hex."""
    expires: datetime
    expires_in: int
    """Seconds until then, for clients with a wrong clock."""


class Tokens:
    """Service of access tokens."""

    def __init__(
        self, *, store: Store, clock: Clock, randomness: Randomness, settings: IdentitySettings, keys: SigningKeys
    ) -> None:
        self.store, self.clock, self.randomness, self.settings, self.keys = store, clock, randomness, settings, keys
        self._verified = Verified()
        self._revoked: DerivedCache[tuple[str, str], bool] = DerivedCache(store, _REVOCATION_CACHE_SIZE)

    @property
    def audience(self) -> str:
        """Audience of access tokens: the host of the issuer."""
        return urlsplit(self.settings.issuer).hostname or ""

    async def issue_for_account(self, account: str, organization: str) -> Issued:
        """Return a token for a service account. The caller stores its hash, id and expiry with the account."""
        expires = self.clock.now() + self.settings.service_account_token_lifetime
        return await self._issue("sa", account, expires, oid=organization)

    async def issue_for_session(self, user: User, session: Session) -> Issued:
        """Return a token for a session, which does not outlive it."""
        spec = session.spec
        expires = self.clock.now() + self.settings.access_token_lifetime
        expires = expires if spec.expires is None else min(expires, spec.expires)
        details = {
            "sid": session.name,
            "cid": spec.client,
            "uid": user.name,
            "oid": spec.organization,
            "sco": spec.scope,
            "idp": spec.provider if spec.organization else "",
        }
        return await self._issue("fed", user.spec.subject, expires, **details)

    async def issue_for_service(self, name: str) -> Issued:
        return await self._issue("svc", name, self.clock.now() + self.settings.access_token_lifetime)

    async def issue_for_operator(self, user: User, *, operator: str, lifetime: timedelta) -> Issued:
        """Return a short-lived token of a user for an operator on the machine, whom it names."""
        expires = self.clock.now() + min(lifetime, self.settings.access_token_lifetime)
        return await self._issue("op", user.spec.subject, expires, uid=user.name, act=operator)

    async def verify(self, token: str) -> Claims:
        """Return the claims of an access token with valid signature, issuer, audience and times."""
        version = self.keys.version
        known = self._verified.find(token, version)
        claims = known or await self.read(token, ACCESS)
        if claims.iss != self.settings.issuer or self.audience not in claims.aud:
            raise Unauthenticated(NOT_VALID)
        now = self.clock.now().timestamp()
        if not claims.nbf <= now < claims.exp:
            raise Unauthenticated("token is invalid or has expired")
        if known is None:
            self._verified.keep(token, claims, version)
        return claims

    async def read(self, token: str, purpose: Purpose[ClaimsT]) -> ClaimsT:
        """Return the claims of a token that one of our keys signed for a purpose. Times are not checked."""
        return await read(token, purpose, self.keys.find)

    async def sign(self, claims: ClaimsT, purpose: Purpose[ClaimsT]) -> Secret:
        return sign(claims, purpose, await self.keys.current())

    async def revoke(self, id: str, *, expires: datetime, log: Sequence[Record] = ()) -> None:  # noqa: A002  its name
        """Revoke a token by its `jti`, or all of a session by its `sid`; `expires` is when they expire anyway."""
        spec = RevocationSpec(revoked=id, expires=expires)
        with suppress(AlreadyExists):
            await self.store.create(Revocation(metadata=Metadata(name=id), spec=spec), log=log)

    async def find_revocation(self, claims: Claims) -> bool:
        """Return whether a token or its session was revoked.

        It is looked up by an index, because usually nothing is found: a lookup by name would ask the API server on
        Kubernetes. The result is cached until one of them is revoked.
        """
        names = claims.jti, claims.sid
        known = self._revoked.find(names)
        if known is None:
            version = self.store.change_counter()
            known = any([await self._is_named(name) for name in names if name])
            self._revoked.put(names, revocations_of(claims), version, known)
        return known

    async def _is_named(self, name: str) -> bool:
        return bool((await self.store.list_names(Revocation, index=("revoked", name), limit=1)).items)

    async def _issue(self, typ: TokenType, subject: str, expires: datetime, **details: str) -> Issued:
        now = int(self.clock.now().timestamp())
        claims = Claims(
            jti=random_id(self.randomness),
            sub=subject,
            iss=self.settings.issuer,
            aud=(self.audience,),
            iat=now,
            nbf=now,
            exp=int(expires.timestamp()),
            typ=typ,
            **details,
        )
        token = await self.sign(claims, ACCESS)
        return Issued(
            token=token,
            id=claims.jti,
            hash=token_hash(token.reveal()),
            expires=claims.expires,
            expires_in=claims.exp - claims.iat,
        )
