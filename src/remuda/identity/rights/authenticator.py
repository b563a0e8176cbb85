"""Who stands behind a request, where identity runs in the same process.

A bearer token is whoever it was made for, for as long as everything behind it stands: `Bearers` tells, by reading what
is stored. A client certificate is the service whose name it has. A service acts for the one that it claims to: with
its own rights or, impersonating, with what both may do. A service that carries somebody's bearer token besides its
certificate has that one's rights, and adds no more than its word on whose account that is.

Who was told once is remembered until their credentials end or any object changes that the answer was made from: then
the next request reads again. So the usual request costs neither a read nor a signature, and what is revoked is refused
at once.
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import msgspec

from remuda.access.principal import AccessList, Principal
from remuda.http.authentication import acting_for, carried_by
from remuda.http.credentials import Claim, Credentials
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.people import ServiceAccount, User, user_id
from remuda.identity.kinds.tokens import Revocation, Session, SigningKey
from remuda.identity.rights.acl import OF_ACCOUNTS, OF_SYSTEMS, OF_USERS, Standing
from remuda.identity.rights.certificates import read_certificate
from remuda.identity.rights.service import Rights
from remuda.identity.settings import LOCAL_ISSUER
from remuda.identity.tokens.bearers import Bearers
from remuda.identity.tokens.claims import AccountType
from remuda.identity.tokens.hashing import token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, NotFound, Unauthenticated
from remuda.store.contract import Store
from remuda.store.kept import Kept
from remuda.store.objects import Resource

__all__ = ["IdentityAuthenticator", "check_impersonation", "counting_for", "credentials_key"]

_REMEMBERED = 8192
_TOKENS = (SigningKey, Revocation)
_MADE_FROM: Mapping[AccountType, Sequence[type[Resource]]] = {
    "user": (*_TOKENS, Session, User, OAuth2Provider, *OF_USERS),
    "service": (*_TOKENS, ServiceAccount, *OF_ACCOUNTS),
    "system": (*_TOKENS, *OF_SYSTEMS),
}
_ANYBODY: Sequence[type[Resource]] = (*_MADE_FROM["user"], ServiceAccount)
"""What an answer is made from that is about several."""


class IdentityAuthenticator:
    """The authentication port of identity itself, and of every service in the same process."""

    def __init__(self, *, store: Store, bearers: Bearers, rights: Rights, clock: Clock) -> None:
        self._store, self._bearers, self._rights, self._clock = store, bearers, rights, clock
        self._kept: Kept[Hashable, Principal] = Kept(store, _REMEMBERED)

    async def authenticate(self, credentials: Credentials) -> Principal:
        """Return who shows these credentials, or raise Unauthenticated."""
        key = credentials_key(credentials)
        kept = self._find(key, credentials)
        if kept is not None and (kept.expires is None or self._clock.now() < kept.expires):
            return kept
        stamps = {each: self._store.stamp(kinds) for each, kinds in _MADE_FROM.items()}
        for_anybody = self._store.stamp(_ANYBODY)
        principal = await self._principal(credentials)
        counting = counting_for(principal, credentials)
        if counting.claim is None:
            key = credentials_key(counting)
            self._kept.keep(key, _MADE_FROM[principal.type], stamps[principal.type], principal)
        else:
            self._kept.keep(key, _ANYBODY, for_anybody, principal)
        return principal

    def knows(self, credentials: Credentials) -> bool:
        """Tell whether the token was let in lately, or a proxy vouches for a certificate alone."""
        token = credentials.token
        return token is None or token_hash(token) in self._kept or self._bearers.tokens.has_verified(token)

    def _find(self, key: Hashable, credentials: Credentials) -> Principal | None:
        """Return who was told, of these credentials or of the token alone where nothing else counts beside it."""
        kept = self._kept.find(key)
        if kept is not None or credentials.token is None or credentials.certificate is not None:
            return kept
        shown = self._kept.find(token_hash(credentials.token))
        return None if shown is None or shown.type == "system" else shown

    async def _principal(self, credentials: Credentials) -> Principal:
        service = None if credentials.certificate is None else await self._certified(credentials.certificate)
        if credentials.token is None:
            assert service is not None, "credentials are a token, a certificate, or both"
            return await self._acting(service, credentials)
        shown = await self._shown(credentials.token)
        if shown.type == "system":
            return await self._acting(shown, credentials)
        return shown if service is None else await self._carried(shown, service, credentials)

    async def _shown(self, token: str) -> Principal:
        """Return whose token it is."""
        bearer = await self._bearers.identify(token)
        standing = await self._rights.of_bearer(bearer)
        return Principal(
            subject=bearer.subject,
            type=bearer.type,
            access=standing.access,
            organizations=standing.organizations,
            expires=bearer.expires,
            service=f"operator {bearer.operator}" if bearer.operator else None,
            issuer="" if bearer.issuer == LOCAL_ISSUER else bearer.issuer,
            vouched_by=bearer.organization or None,
        )

    async def _certified(self, pem: str) -> Principal:
        """Return which service's certificate it is."""
        certificate = read_certificate(pem)
        certificate.check(self._clock.now())
        if certificate.name not in self._rights.settings.system_accounts:
            raise Unauthenticated("certificate is not known")
        standing = await self._rights.of_system(certificate.name)
        return Principal(subject=certificate.name, type="system", access=standing.access, expires=certificate.ends)

    async def _acting(self, service: Principal, credentials: Credentials) -> Principal:
        """Return a service as the one that it acts for has it; for nobody else, if it names nobody."""
        impersonated = await self._impersonated(credentials)
        return (
            service if credentials.claim is None else acting_for(service, credentials.claim, impersonated=impersonated)
        )

    async def _carried(self, shown: Principal, service: Principal, credentials: Credentials) -> Principal:
        """Return whose token it is, as the service that carries it says who pays and who is audited."""
        assert credentials.claim is not None, "a certificate comes with a claim"
        impersonated = await self._impersonated(credentials)
        return carried_by(shown, service, credentials.claim, impersonated=impersonated)

    async def _impersonated(self, credentials: Credentials) -> AccessList | None:
        """Return what the one may do who is impersonated, if anybody is, in the organizations that the claim names."""
        claim = check_impersonation(credentials)
        if claim is None:
            return None
        standing = await self._actor(claim)
        access = (standing.only_in(claim.vouched_by) if claim.vouched_by else standing).access
        if not claim.organizations:
            return access
        named = {name: inside for name, inside in access.organizations.items() if name in claim.organizations}
        return replace(access, organizations=named)

    async def _actor(self, claim: Claim) -> Standing:
        try:
            if claim.type == "user":
                user = await self._store.get(User, user_id(claim.actor))
                return await self._rights.of_user(user, issuer=claim.issuer)
            return await self._rights.of_account(await self._store.get(ServiceAccount, claim.actor))
        except NotFound:
            raise Unauthenticated("the actor in X-Principal is not known") from None


def check_impersonation(credentials: Credentials) -> Claim | None:
    """Return the claim by which somebody is impersonated, if anybody is, or raise Malformed if it can be nobody."""
    if not credentials.impersonate:
        return None
    claim = credentials.claim
    if claim is None or not claim.actor or claim.type not in {"user", "service"}:
        raise Malformed("X-Impersonate needs an actor of type user or service in X-Principal: name the one to act for")
    return claim


def counting_for(shown: Principal, credentials: Credentials) -> Credentials:
    """Return the part of credentials that counts, given whose they are: only a service acts for others."""
    if shown.type == "system" or credentials.certificate is not None:
        return credentials
    return Credentials(token=credentials.token)


def credentials_key(credentials: Credentials) -> Hashable:
    """Return what tells credentials apart, without holding any of their secrets, and small whatever they hold."""
    token = "" if credentials.token is None else token_hash(credentials.token)
    if credentials.claim is None and credentials.certificate is None and not credentials.impersonate:
        return token
    certificate = hashlib.sha256((credentials.certificate or "").encode()).digest()
    claim = hashlib.sha256(msgspec.json.encode(credentials.claim)).digest()
    return token, certificate, claim, credentials.impersonate
