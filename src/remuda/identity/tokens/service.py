"""The port of the tokens room: access tokens are made, verified and revoked here.

Access tokens are signed (JWS) rather than encrypted: every service can verify one by our public keys, without asking
us. Clients take them for opaque. What is signed holds only names and ids.

Tokens that were verified a moment ago: checking a signature costs half a millisecond, and looking here nothing.

What is kept depends on the token and the keys alone. Times and state are judged at every use.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from remuda.identity.kinds.tokens import Revocation, RevocationSpec, Session
from remuda.identity.kinds.users import User
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import ACCESS, NOT_VALID, Claims, Purpose, Stamped, TokenType, read, sign
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

_MOST = 8192


class Verified:
    """What the latest tokens say, by their hashes, for as long as the keys are the same."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._stamp: int | None = None
        self._claims: OrderedDict[str, Claims] = OrderedDict()

    def find(self, token: str, stamp: int) -> Claims | None:
        """Return what a token says, if it was verified with the keys of this stamp."""
        if stamp != self._stamp:
            return None
        name = token_hash(token)
        claims = self._claims.get(name)
        if claims is not None:
            self._claims.move_to_end(name)
        return claims

    def keep(self, token: str, claims: Claims, stamp: int) -> None:
        """Remember what a token says; the one that was not asked for the longest is forgotten."""
        if stamp != self._stamp:
            self._claims.clear()
            self._stamp = stamp
        self._claims[token_hash(token)] = claims
        if len(self._claims) > self._most:
            self._claims.popitem(last=False)


StampedT = TypeVar("StampedT", bound=Stamped)

_REMEMBERED = 8192


def revocations_of(claims: Claims) -> tuple[Dependency, ...]:
    """Return the revocations that would be of a token, or of its session."""
    return tuple(indexed(Revocation, "revoked", name) for name in (claims.jti, claims.sid) if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A new access token. It is shown once; what may be kept of it is the rest."""

    token: Secret
    id: str
    """Its `jti`, by which it is revoked."""
    hash: str
    """Its SHA-256, in hex."""
    expires: datetime
    expires_in: int
    """The seconds until then, for clients whose clock is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Makes and checks tokens."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    keys: SigningKeys
    _verified: Verified = field(default_factory=Verified)
    _revoked: DerivedCache[tuple[str, str], bool] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_revoked", DerivedCache(self.store, _REMEMBERED))

    @property
    def audience(self) -> str:
        """For whom access tokens are: the host of our own URL."""
        return urlsplit(self.settings.issuer).hostname or ""

    async def issue_for_account(self, account: str, organization: str) -> Issued:
        """Return a token for a service account. The caller stores its hash, id and end with the account."""
        ends = self.clock.now() + self.settings.service_account_token_lifetime
        return await self._issue("sa", account, ends, oid=organization)

    async def issue_for_session(self, user: User, session: Session) -> Issued:
        """Return a token for somebody who logged in; it does not outlive the session."""
        spec = session.spec
        ends = self.clock.now() + self.settings.access_token_lifetime
        ends = ends if spec.expires is None else min(ends, spec.expires)
        facts = {
            "sid": session.name,
            "cid": spec.client,
            "uid": user.name,
            "oid": spec.organization,
            "sco": spec.scope,
        }
        return await self._issue("fed", user.spec.subject, ends, **facts)

    async def issue_for_service(self, name: str) -> Issued:
        """Return a token for a service that has proved its name."""
        return await self._issue("svc", name, self.clock.now() + self.settings.access_token_lifetime)

    async def issue_for_operator(self, user: User, *, operator: str, life: timedelta) -> Issued:
        """Return a token in a user's name, for whoever sits at the machine itself: short, and saying who that was."""
        ends = self.clock.now() + min(life, self.settings.access_token_lifetime)
        return await self._issue("op", user.spec.subject, ends, uid=user.name, act=operator)

    async def verify(self, token: str) -> Claims:
        """Return what an access token of ours says, or raise Unauthenticated: signature, issuer, audience and times.

        Whether its session, account or user still stands, and whether it was revoked, `Bearers` can tell.
        """
        stamp = self.keys.stamp
        known = self._verified.find(token, stamp)
        claims = known or await self.read(token, ACCESS)
        if claims.iss != self.settings.issuer or self.audience not in claims.aud:
            raise Unauthenticated(NOT_VALID)
        now = self.clock.now().timestamp()
        if not claims.nbf <= now < claims.exp:
            raise Unauthenticated("token is invalid or has expired")
        if known is None:
            self._verified.keep(token, claims, stamp)
        return claims

    def has_verified(self, token: str) -> bool:
        """Tell whether this token was verified lately, so that to do it again costs nothing."""
        return self._verified.find(token, self.keys.stamp) is not None

    async def read(self, token: str, purpose: Purpose[StampedT]) -> StampedT:
        """Return what one of our keys has signed for a purpose, or raise Unauthenticated. Its times are not judged."""
        return await read(token, purpose, self.keys.find)

    async def sign(self, claims: StampedT, purpose: Purpose[StampedT]) -> Secret:
        return sign(claims, purpose, await self.keys.current())

    async def revoke(self, id: str, *, expires: datetime, log: Sequence[Record] = ()) -> None:  # noqa: A002  its name
        """Let nobody believe a token (by its `jti`) or any of a session (by its `sid`); `expires` is when they end."""
        spec = RevocationSpec(revoked=id, expires=expires)
        try:
            await self.store.create(Revocation(metadata=Metadata(name=id), spec=spec), log=log)
        except AlreadyExists:
            return

    async def is_revoked(self, claims: Claims) -> bool:
        """Tell whether a token, or its session, was revoked.

        By an index, because mostly nothing is found: to look for an absent name asks the API server on Kubernetes. What
        was found is remembered until one of them is revoked.
        """
        names = claims.jti, claims.sid
        known = self._revoked.find(names)
        if known is None:
            stamp = self.store.change_counter()
            known = any([await self._is_named(name) for name in names if name])
            self._revoked.put(names, revocations_of(claims), stamp, known)
        return known

    async def _is_named(self, name: str) -> bool:
        return bool((await self.store.list_names(Revocation, index=("revoked", name), limit=1)).items)

    async def _issue(self, typ: TokenType, subject: str, expires: datetime, **facts: str) -> Issued:
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
            **facts,
        )
        token = await self.sign(claims, ACCESS)
        return Issued(
            token=token,
            id=claims.jti,
            hash=token_hash(token.reveal()),
            expires=claims.expires,
            expires_in=claims.exp - claims.iat,
        )
