"""Authenticator in the process of identity, for bearer tokens and client certificates.

A bearer token identifies its subject while everything that it depends on is valid (`Bearers`). A client certificate,
which the pipeline has verified, identifies the service with its common name, unless that service has a key. A service
may name an actor: it acts with its own permissions or, impersonating, with the intersection of both. A service that
sends a user's bearer token with its certificate has that user's permissions, and only adds payer and audit information.

Principals are cached until their credentials expire or a dependency changes, so the usual request needs neither a read
nor a signature check, and a revoked token is rejected at once.
"""

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from cryptography.x509 import load_pem_x509_certificate
from cryptography.x509.oid import NameOID

from remuda.access.principal import AccessList, Principal
from remuda.http.authentication import PrincipalClaim, RequestCredentials, acting_for, presented_by
from remuda.http.certificates import EXPIRED, check_client
from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.factors import LoginProof
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.tokens import Revocation, Session
from remuda.identity.kinds.users import Group, OrganizationUser, Role, ServiceAccount, User, user_id
from remuda.identity.rbac.acl import ResolvedAccess
from remuda.identity.rbac.service import Permissions
from remuda.identity.tokens.bearer import Bearers
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, NotFound, Unauthenticated
from remuda.store.contract import Dependency, Store, named
from remuda.store.derived import DerivedCache

_NOT_VALID = "certificate is not valid"


@dataclass(frozen=True, slots=True)
class Certificate:
    """Client certificate."""

    name: str
    begins: datetime
    ends: datetime

    def check(self, now: datetime) -> None:
        """Raise Unauthenticated unless the certificate is valid now."""
        if not self.begins <= now < self.ends:
            raise Unauthenticated(EXPIRED)


_LONGEST_CERTIFICATE = 64 * 1024


def read_certificate(pem: str) -> Certificate:
    """Parse a PEM certificate, or raise Unauthenticated if it is not a client's or has not exactly one common name."""
    if len(pem) > _LONGEST_CERTIFICATE:
        raise Unauthenticated(_NOT_VALID)
    try:
        certificate = load_pem_x509_certificate(pem.encode())
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except ValueError:
        raise Unauthenticated(_NOT_VALID) from None
    check_client(certificate)
    if len(names) != 1 or not isinstance(names[0].value, str):
        raise Unauthenticated(_NOT_VALID)
    return Certificate(names[0].value, begins, ends)


_CACHE_SIZE = 8192
_ACCESS: tuple[Dependency, ...] = (
    *(User, Session, Revocation, ServiceAccount, OAuth2Provider),
    *(OrganizationUser, Group, Role, Organization, Project),
)
"""Kinds of the objects that decide which credentials are accepted and what they permit."""


class IdentityAuthenticator:
    """Authenticator of identity and of every service in the same process."""

    def __init__(self, *, store: Store, bearers: Bearers, permissions: Permissions, clock: Clock) -> None:
        self._store, self._bearers, self._permissions, self._clock = store, bearers, permissions, clock
        self._cache: DerivedCache[Hashable, Principal] = DerivedCache(store, _CACHE_SIZE)

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return the principal of credentials, or raise Unauthenticated."""
        key = credentials_key(credentials)
        cached = self._cache.find(key) or self._cached_for_token(credentials)
        if cached is not None and (cached.expires is None or self._clock.now() < cached.expires):
            return cached
        counter, dependencies = self._store.change_counter(), list[Dependency]()
        principal = await self._principal(credentials, dependencies)
        effective = effective_credentials(principal, credentials)
        if effective.claim is None:
            key = credentials_key(effective)
        self._cache.put(key, dependencies, counter, principal)
        return principal

    def access_version(self) -> int:
        """Return a number that changes with anything that a principal is computed from."""
        return self._store.change_counter(_ACCESS)

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        """Return whether the token is ours, by its signature, or known, or there is only a client certificate.

        So a token of ours never waits for the failures of others. That of an external issuer does until it is known.
        """
        token = credentials.token
        if token is None or token_hash(token) in self._cache:
            return True
        try:
            await self._bearers.tokens.verify(token)
        except Unauthenticated:
            return False
        return True

    def _cached_for_token(self, credentials: RequestCredentials) -> Principal | None:
        """Return the cached principal of a token that has no other credentials beside it."""
        if credentials.token is None or credentials.certificate is not None:
            return None
        bearer = self._cache.find(token_hash(credentials.token))
        return None if bearer is None or bearer.type == "system" else bearer

    async def _principal(self, credentials: RequestCredentials, dependencies: list[Dependency]) -> Principal:
        """Return the principal of credentials, and add its dependencies."""
        certificate = credentials.certificate
        service = None if certificate is None else await self._certified_service(certificate, dependencies)
        if credentials.token is None:
            assert service is not None, "credentials are a token, a certificate, or both"
            return await self._acting_service(service, credentials, dependencies)
        bearer = await self._bearer(credentials.token, dependencies)
        credentials = effective_credentials(bearer, credentials)
        if bearer.type == "system":
            return await self._acting_service(bearer, credentials, dependencies)
        return bearer if service is None else await self._forwarded_bearer(bearer, service, credentials, dependencies)

    async def _bearer(self, token: str, dependencies: list[Dependency]) -> Principal:
        bearer = await self._bearers.identify(token)
        resolved = await self._permissions.of_bearer(bearer)
        dependencies += (*bearer.dependencies, *resolved.dependencies)
        return Principal(
            subject=bearer.subject,
            type=bearer.type,
            display_name=bearer.display_name,
            access=resolved.access,
            organizations=resolved.organizations,
            closed=resolved.closed,
            expires=bearer.expires,
            service=f"operator {bearer.operator}" if bearer.operator else None,
            issuer="" if bearer.issuer == LOCAL_ISSUER else bearer.issuer,
            member_of_only=bearer.organization or None,
        )

    async def _certified_service(self, pem: str, dependencies: list[Dependency]) -> Principal:
        certificate = read_certificate(pem)
        certificate.check(self._clock.now())
        account = self._permissions.settings.system_accounts.get(certificate.name)
        if account is None:
            raise Unauthenticated("certificate is not known")
        if account.public_key:
            raise Unauthenticated("certificate is not accepted: this account has a key and needs a signed assertion")
        resolved = await self._permissions.of_system(certificate.name)
        dependencies += resolved.dependencies
        return Principal(subject=certificate.name, type="system", access=resolved.access, expires=certificate.ends)

    async def _acting_service(
        self, service: Principal, credentials: RequestCredentials, dependencies: list[Dependency]
    ) -> Principal:
        """Return a service with the actor of its claim, if there is one."""
        impersonated = await self._impersonated(credentials, dependencies)
        return (
            service if credentials.claim is None else acting_for(service, credentials.claim, impersonated=impersonated)
        )

    async def _forwarded_bearer(
        self, bearer: Principal, service: Principal, credentials: RequestCredentials, dependencies: list[Dependency]
    ) -> Principal:
        """Return the bearer of a token that a service forwards, with payer and audit information of its claim."""
        assert credentials.claim is not None, "a certificate comes with a claim"
        impersonated = await self._impersonated(credentials, dependencies)
        return presented_by(bearer, service, credentials.claim, impersonated=impersonated)

    async def _impersonated(self, credentials: RequestCredentials, dependencies: list[Dependency]) -> AccessList | None:
        """Return the permissions of the impersonated actor, in the organizations that the claim names."""
        claim = check_impersonation(credentials)
        if claim is None:
            return None
        resolved = await self._actor(claim)
        dependencies += (_actor_of(claim), *resolved.dependencies)
        access = (resolved.restricted_to(claim.member_of_only) if claim.member_of_only else resolved).access
        if claim.has_global_access and not claim.organizations:
            return AccessList(everywhere=access.everywhere)
        if not claim.organizations:
            return access
        named = {name: inside for name, inside in access.organizations.items() if name in claim.organizations}
        return replace(access, organizations=named)

    async def _actor(self, claim: PrincipalClaim) -> ResolvedAccess:
        try:
            if claim.type == "user":
                user = await self._store.get(User, user_id(claim.actor))
                # A claim that names organizations is limited to those that were open to the actor's login.
                proof: LoginProof = "factor" if claim.organizations or claim.has_global_access else "password"
                return await self._permissions.of_user(user, proof=proof, issuer=claim.issuer)
            return await self._permissions.of_account(await self._store.get(ServiceAccount, claim.actor))
        except NotFound:
            raise Unauthenticated("the actor in X-Principal is not known") from None


def _actor_of(claim: PrincipalClaim) -> Dependency:
    return named(User, user_id(claim.actor)) if claim.type == "user" else named(ServiceAccount, claim.actor)


def check_impersonation(credentials: RequestCredentials) -> PrincipalClaim | None:
    """Return the claim of an impersonation, or raise Malformed if it has no valid actor."""
    if not credentials.impersonate:
        return None
    claim = credentials.claim
    if claim is None or not claim.actor or claim.type not in {"user", "service"}:
        raise Malformed("X-Impersonate needs an actor of type user or service in X-Principal: name the one to act for")
    return claim


def effective_credentials(bearer: Principal, credentials: RequestCredentials) -> RequestCredentials:
    """Return the part of credentials that applies to this principal: only a service acts for others.

    A service with an invalid claim is rejected (Malformed), since without it, it would act with all its own
    permissions.
    """
    if bearer.type != "system" and credentials.certificate is None:
        return RequestCredentials(token=credentials.token, token_digest=credentials.token_digest)
    if credentials.fault:
        raise Malformed(credentials.fault)
    return credentials


def credentials_key(credentials: RequestCredentials) -> Hashable:
    """Return a small cache key of credentials without their secrets."""
    if credentials.token_digest:
        return credentials.token_digest
    token = "" if credentials.token is None else token_hash(credentials.token)
    if (
        credentials.claim is None
        and credentials.certificate is None
        and not (credentials.impersonate or credentials.fault)
    ):
        return token
    certificate = hashlib.sha256((credentials.certificate or "").encode()).digest()
    claim = hashlib.sha256(msgspec.json.encode(credentials.claim)).digest()
    return token, certificate, claim, credentials.impersonate, credentials.fault
