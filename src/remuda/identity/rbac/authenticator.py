"""Who stands behind a request, where identity runs in the same process.

A bearer token is whoever it was made for, for as long as everything behind it stands: `Bearers` tells, by reading what
is stored. A client certificate is the service whose name it has. A service acts for the one that it claims to: with
its own rights or, impersonating, with what both may do. A service that carries somebody's bearer token besides its
certificate has that one's rights, and adds no more than its word on whose account that is.

Who was told once is remembered until their credentials end or anything changes that the answer was made from: then the
next request reads again. So the usual request costs neither a read nor a signature, and what is revoked is refused
at once.

Client certificates: whose name is in one, and when it holds.

That it was signed by somebody we trust has been verified by the proxy that passes it on.
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
from remuda.identity.kinds.users import ServiceAccount, User, user_id
from remuda.identity.rbac.acl import Standing
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import LOCAL_ISSUER
from remuda.identity.tokens.bearer import Bearers
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, NotFound, Unauthenticated
from remuda.store.contract import Dependency, Store, named
from remuda.store.derived import DerivedCache

_NOT_VALID = "certificate is not valid"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What matters of one."""

    name: str
    """Its common name."""
    begins: datetime
    ends: datetime

    def check(self, now: datetime) -> None:
        """Raise Unauthenticated unless it holds now."""
        if not self.begins <= now < self.ends:
            raise Unauthenticated("certificate has expired or is not yet valid")


def read_certificate(pem: str) -> Certificate:
    """Return what a certificate says, or raise Unauthenticated if it is none, or names nobody or several."""
    try:
        certificate = load_pem_x509_certificate(pem.encode())
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except ValueError:
        raise Unauthenticated(_NOT_VALID) from None
    if len(names) != 1 or not isinstance(names[0].value, str):
        raise Unauthenticated(_NOT_VALID)
    return Certificate(names[0].value, begins, ends)


_REMEMBERED = 8192


class IdentityAuthenticator:
    """The authentication port of identity itself, and of every service in the same process."""

    def __init__(self, *, store: Store, bearers: Bearers, permissions: Permissions, clock: Clock) -> None:
        self._store, self._bearers, self._rights, self._clock = store, bearers, permissions, clock
        self._kept: DerivedCache[Hashable, Principal] = DerivedCache(store, _REMEMBERED)

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return who shows these credentials, or raise Unauthenticated."""
        key = credentials_key(credentials)
        kept = self._kept.find(key) or self._of_token(credentials)
        if kept is not None and (kept.expires is None or self._clock.now() < kept.expires):
            return kept
        stamp, made_from = self._store.change_counter(), list[Dependency]()
        principal = await self._principal(credentials, made_from)
        counting = counting_for(principal, credentials)
        if counting.claim is None:
            key = credentials_key(counting)
        self._kept.put(key, made_from, stamp, principal)
        return principal

    def knows(self, credentials: RequestCredentials) -> bool:
        """Tell whether the token was let in lately, or a proxy vouches for a certificate alone."""
        token = credentials.token
        return token is None or token_hash(token) in self._kept or self._bearers.tokens.has_verified(token)

    def _of_token(self, credentials: RequestCredentials) -> Principal | None:
        """Return who was told of the token alone, where nothing else counts beside it."""
        if credentials.token is None or credentials.certificate is not None:
            return None
        shown = self._kept.find(token_hash(credentials.token))
        return None if shown is None or shown.type == "system" else shown

    async def _principal(self, credentials: RequestCredentials, made_from: list[Dependency]) -> Principal:
        """Return who shows credentials, and add what that was made from."""
        certificate = credentials.certificate
        service = None if certificate is None else await self._certified(certificate, made_from)
        if credentials.token is None:
            assert service is not None, "credentials are a token, a certificate, or both"
            return await self._acting(service, credentials, made_from)
        shown = await self._shown(credentials.token, made_from)
        credentials = counting_for(shown, credentials)
        if shown.type == "system":
            return await self._acting(shown, credentials, made_from)
        return shown if service is None else await self._carried(shown, service, credentials, made_from)

    async def _shown(self, token: str, made_from: list[Dependency]) -> Principal:
        bearer = await self._bearers.identify(token)
        standing = await self._rights.of_bearer(bearer)
        made_from += (*bearer.rests_on, *standing.made_from)
        return Principal(
            subject=bearer.subject,
            type=bearer.type,
            access=standing.access,
            organizations=standing.organizations,
            expires=bearer.expires,
            service=f"operator {bearer.operator}" if bearer.operator else None,
            issuer="" if bearer.issuer == LOCAL_ISSUER else bearer.issuer,
            member_of_only=bearer.organization or None,
        )

    async def _certified(self, pem: str, made_from: list[Dependency]) -> Principal:
        """Return which service's certificate it is."""
        certificate = read_certificate(pem)
        certificate.check(self._clock.now())
        if certificate.name not in self._rights.settings.system_accounts:
            raise Unauthenticated("certificate is not known")
        standing = await self._rights.of_system(certificate.name)
        made_from += standing.made_from
        return Principal(subject=certificate.name, type="system", access=standing.access, expires=certificate.ends)

    async def _acting(
        self, service: Principal, credentials: RequestCredentials, made_from: list[Dependency]
    ) -> Principal:
        """Return a service as the one that it acts for has it; for nobody else, if it names nobody."""
        impersonated = await self._impersonated(credentials, made_from)
        return (
            service if credentials.claim is None else acting_for(service, credentials.claim, impersonated=impersonated)
        )

    async def _carried(
        self, shown: Principal, service: Principal, credentials: RequestCredentials, made_from: list[Dependency]
    ) -> Principal:
        """Return whose token it is, as the service that carries it says who pays and who is audited."""
        assert credentials.claim is not None, "a certificate comes with a claim"
        impersonated = await self._impersonated(credentials, made_from)
        return presented_by(shown, service, credentials.claim, impersonated=impersonated)

    async def _impersonated(self, credentials: RequestCredentials, made_from: list[Dependency]) -> AccessList | None:
        """Return what the one may do who is impersonated, if anybody is, in the organizations that the claim names."""
        claim = check_impersonation(credentials)
        if claim is None:
            return None
        standing = await self._actor(claim)
        made_from += (_actor_of(claim), *standing.made_from)
        access = (standing.only_in(claim.member_of_only) if claim.member_of_only else standing).access
        if not claim.organizations:
            return access
        named = {name: inside for name, inside in access.organizations.items() if name in claim.organizations}
        return replace(access, organizations=named)

    async def _actor(self, claim: PrincipalClaim) -> Standing:
        try:
            if claim.type == "user":
                user = await self._store.get(User, user_id(claim.actor))
                return await self._rights.of_user(user, issuer=claim.issuer)
            return await self._rights.of_account(await self._store.get(ServiceAccount, claim.actor))
        except NotFound:
            raise Unauthenticated("the actor in X-Principal is not known") from None


def _actor_of(claim: PrincipalClaim) -> Dependency:
    return named(User, user_id(claim.actor)) if claim.type == "user" else named(ServiceAccount, claim.actor)


def check_impersonation(credentials: RequestCredentials) -> PrincipalClaim | None:
    """Return the claim by which somebody is impersonated, if anybody is, or raise Malformed if it can be nobody."""
    if not credentials.impersonate:
        return None
    claim = credentials.claim
    if claim is None or not claim.actor or claim.type not in {"user", "service"}:
        raise Malformed("X-Impersonate needs an actor of type user or service in X-Principal: name the one to act for")
    return claim


def counting_for(shown: Principal, credentials: RequestCredentials) -> RequestCredentials:
    """Return the part of credentials that counts, given whose they are: only a service acts for others.

    A service whose claim makes no sense is refused (Malformed): without it, it would act with all of its own rights.
    """
    if shown.type != "system" and credentials.certificate is None:
        return RequestCredentials(token=credentials.token)
    if credentials.fault:
        raise Malformed(credentials.fault)
    return credentials


def credentials_key(credentials: RequestCredentials) -> Hashable:
    """Return what tells credentials apart, without holding any of their secrets, and small whatever they hold."""
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
