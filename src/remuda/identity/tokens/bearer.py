"""Who stands behind a bearer token now: the token's own word, held against what is stored.

A token that was good when it was made is not good for ever: its user may be suspended, its session ended, its service
account rotated, the token itself revoked. In this process that holds at once.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tokens import Session, SigningKey
from remuda.identity.kinds.users import ServiceAccount, User
from remuda.identity.lookups import find_active_user
from remuda.identity.settings import LOCAL_ISSUER
from remuda.identity.tokens.jwt import NOT_VALID, AccountType, Claims
from remuda.identity.tokens.secrets import is_hash_of
from remuda.identity.tokens.service import Tokens, revocations_of
from remuda.identity.tokens.sessions import Sessions, is_vouched
from remuda.kernel.errors import Unauthenticated
from remuda.resources.crud import find
from remuda.store.contract import Dependency, Store, named


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """Whoever has shown a good token."""

    subject: str
    """An e-mail address, a service account's id, or a service's name."""
    type: AccountType
    expires: datetime
    """When the token ends."""
    rests_on: tuple[Dependency, ...]
    """What was read to know all this: while nothing of it changes, it holds until the token ends."""
    claims: Claims | None = None
    """What the token says, if it is ours."""
    user: User | None = None
    """The user; somebody whom only an external issuer knows has none."""
    account: ServiceAccount | None = None
    issuer: str = LOCAL_ISSUER
    """Who vouches for it: us, or an external issuer, letter by letter."""
    source: str = LOCAL_ISSUER
    """The same for audits: us, or the name of a provider."""
    groups: tuple[str, ...] = ()
    """The groups that an external issuer puts it into."""
    scope: str = ""
    """What was asked for at the login."""
    organization: str = ""
    """The one organization that vouches for it, and where alone it has rights."""
    operator: str = ""
    """Who sat at the machine itself and took the user's name."""


External = Callable[[str], Awaitable[Bearer | None]]
"""Tells who stands behind the token of an external issuer: None where it is nobody's whom we trust to issue any, and
Unauthenticated where it does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearers:
    """Tells who stands behind a token."""

    store: Store
    tokens: Tokens
    sessions: Sessions
    external: External | None = None

    async def identify(self, token: str) -> Bearer:
        """Return who shows this token, or raise Unauthenticated."""
        if self.external is not None and (bearer := await self.external(token)) is not None:
            return bearer
        claims = await self.tokens.verify(token)
        if await self.tokens.is_revoked(claims):
            raise Unauthenticated("token is revoked: log in again, or get another one")
        if claims.typ == "sa":
            return await self._account(claims, token)
        if claims.typ == "svc":
            return self._service(claims)
        return await self._user(claims)

    async def _account(self, claims: Claims, token: str) -> Bearer:
        account = await find(self.store, ServiceAccount, claims.sub, include_deleting=False)
        if account is None or not is_hash_of(account.spec.access_token, token):
            raise Unauthenticated(NOT_VALID)
        return Bearer(
            subject=claims.sub,
            type="service",
            expires=claims.expires,
            claims=claims,
            account=account,
            rests_on=(*_always(claims), named(ServiceAccount, claims.sub)),
        )

    def _service(self, claims: Claims) -> Bearer:
        if claims.sub not in self.tokens.settings.system_accounts:
            raise Unauthenticated(NOT_VALID)
        return Bearer(
            subject=claims.sub, type="system", expires=claims.expires, claims=claims, rests_on=_always(claims)
        )

    async def _user(self, claims: Claims) -> Bearer:
        session = await self.sessions.find(claims.sid) if claims.typ == "fed" else None
        if claims.typ == "fed" and (session is None or not await is_vouched(self.store, session.spec.provider)):
            raise Unauthenticated("the session has ended: log in again")
        user = await find_active_user(self.store, claims.uid)
        if user is None:
            raise Unauthenticated("user identity not found or inactive")
        return Bearer(
            subject=claims.sub,
            type="user",
            expires=claims.expires,
            claims=claims,
            user=user,
            scope=claims.sco,
            organization=session.spec.organization if session else "",
            operator=claims.act,
            rests_on=(*_always(claims), named(Session, claims.sid), OAuth2Provider, named(User, claims.uid)),
        )


def _always(claims: Claims) -> tuple[Dependency, ...]:
    """Return what every token of ours rests on: the keys, and that it is not revoked."""
    return SigningKey, *revocations_of(claims)
