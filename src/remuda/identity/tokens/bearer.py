"""Authentication of bearer tokens: the claims of a token, checked against stored objects.

A user may be suspended, a session ended, a service account rotated, or a token revoked since the token was issued. In
this process that applies at once.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from remuda.identity.consent import domain_of, is_issued_by
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.factors import LoginProof
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import Domain, Organization, domain_id
from remuda.identity.kinds.tokens import Session, SigningKey
from remuda.identity.kinds.users import ServiceAccount, User
from remuda.identity.lookups import find_active_user
from remuda.identity.tokens.jwt import NOT_VALID, AccountType, Claims
from remuda.identity.tokens.secrets import is_hash_of
from remuda.identity.tokens.service import Tokens, revocations_of
from remuda.identity.tokens.sessions import Sessions, provider_exists
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.names import display_name
from remuda.resources.conventions import NAME
from remuda.resources.crud import find
from remuda.store.contract import Dependency, Store, named


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """Bearer of a valid token."""

    subject: str
    """E-mail address, id of a service account, or name of a service."""
    type: AccountType
    expires: datetime
    dependencies: tuple[Dependency, ...]
    """Objects that were read: the result is valid until one of them changes or the token expires."""
    claims: Claims | None = None
    """Claims of a token that we issued."""
    user: User | None = None
    """The user; None for a user whom only an external issuer knows."""
    account: ServiceAccount | None = None
    issuer: str = LOCAL_ISSUER
    """Issuer: ours, or the exact name of an external one."""
    source: str = LOCAL_ISSUER
    """Issuer for audits: ours, or the name of a provider."""
    groups: tuple[str, ...] = ()
    """Groups of the user at an external issuer."""
    scope: str = ""
    """Scope requested at the login."""
    organization: str = ""
    """The only organization in which it has permissions, if its provider authenticated the user."""
    provider: str = ""
    """Provider at which the user logged in."""
    has_verified_email: bool = True
    """Whether we may assert the address: after a login at an organization's provider, only while the organization has
    proven the domain."""
    proof: LoginProof = "password"
    """Proof of the user's login. An operator's token counts as one with a second factor, since an operator on the
    machine could read and write everything anyway."""
    operator: str = ""
    """Operator on the machine who requested the token."""

    @property
    def display_name(self) -> str:
        """The name of a service account. The subject of every other bearer is a name."""
        return "" if self.account is None else display_name(self.account.metadata.labels.get(NAME, ""))


External = Callable[[str], Awaitable[Bearer | None]]
"""Authenticates tokens of external issuers: None for an untrusted issuer, Unauthenticated for an invalid token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearers:
    """Authentication of bearer tokens."""

    store: Store
    tokens: Tokens
    sessions: Sessions
    external: External | None = None

    async def identify(self, token: str) -> Bearer:
        """Return the bearer of a token, or raise Unauthenticated."""
        if self.external is not None and (bearer := await self.external(token)) is not None:
            return bearer
        claims = await self.tokens.verify(token)
        if await self.tokens.find_revocation(claims):
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
            dependencies=(*_always(claims), named(ServiceAccount, claims.sub)),
        )

    def _service(self, claims: Claims) -> Bearer:
        if claims.sub not in self.tokens.settings.system_accounts:
            raise Unauthenticated(NOT_VALID)
        return Bearer(
            subject=claims.sub, type="system", expires=claims.expires, claims=claims, dependencies=_always(claims)
        )

    async def _user(self, claims: Claims) -> Bearer:
        session = await self.sessions.find(claims.sid) if claims.typ == "fed" else None
        if claims.typ == "fed" and (session is None or not await provider_exists(self.store, session.spec.provider)):
            raise Unauthenticated("the session has ended: log in again")
        user = await find_active_user(self.store, claims.uid)
        if user is None:
            raise Unauthenticated("user identity not found or inactive")
        organization = session.spec.organization if session else ""
        has_verified_email, domain = True, tuple[Dependency, ...]()
        if organization:
            has_verified_email = await is_issued_by(self.store, organization, user.spec.subject)
            domain = (named(Organization, organization), named(Domain, domain_id(domain_of(user.spec.subject))))
        return Bearer(
            subject=claims.sub,
            type="user",
            expires=claims.expires,
            claims=claims,
            user=user,
            scope=claims.sco,
            organization=organization,
            provider=session.spec.provider if session and organization else "",
            has_verified_email=has_verified_email,
            proof=session.spec.proof if session else "factor",
            operator=claims.act,
            dependencies=(
                *_always(claims),
                named(Session, claims.sid),
                OAuth2Provider,
                named(User, claims.uid),
                *domain,
            ),
        )


def _always(claims: Claims) -> tuple[Dependency, ...]:
    """Return the dependencies of every token that we issued: the keys, and its revocations."""
    return SigningKey, *revocations_of(claims)
