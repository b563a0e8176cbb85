"""Who may use the livery in tests: a few people and a service, known by fixed tokens.

Every kind of caller that rights tell apart is here once. Tokens can be made to expire and can be revoked.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from remuda.access.principal import AccessList, OrganizationAccess, Permission, Principal, Verb
from remuda.http.authentication import RequestCredentials, acting_for
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unauthenticated

ORGANIZATION = "a0000000-0000-4000-8000-000000000001"
PROJECT = "a0000000-0000-4000-8000-00000000000a"
OTHER_PROJECT = "a0000000-0000-4000-8000-00000000000b"
"""A project of the same organization, in which the project's users have no rights."""
FOREIGN_ORGANIZATION = "b0000000-0000-4000-8000-000000000002"
FOREIGN_PROJECT = "b0000000-0000-4000-8000-00000000000a"

PROJECTS: Mapping[str, frozenset[str]] = {
    ORGANIZATION: frozenset({PROJECT, OTHER_PROJECT}),
    FOREIGN_ORGANIZATION: frozenset({FOREIGN_PROJECT}),
}

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nbGl2ZXJ5\n-----END CERTIFICATE-----\n"
"""What the service's proxy passes on."""

_VERBS: tuple[Verb, ...] = ("create", "read", "update", "delete")
_ENDPOINTS = ("livery:yards", "livery:yards/references", "livery:mounts")
ALL = frozenset(Permission(endpoint, verb) for endpoint in _ENDPOINTS for verb in _VERBS)
READ = frozenset(permission for permission in ALL if permission.verb == "read")
OPERATOR = ALL | {Permission("livery:operations", verb) for verb in ("read", "update")}


def _user(subject: str, access: AccessList, *organizations: str) -> Principal:
    return Principal(subject=f"{subject}@example.com", type="user", access=access, organizations=organizations)


def _in_project(permissions: frozenset[Permission]) -> AccessList:
    return AccessList(organizations={ORGANIZATION: OrganizationAccess(projects={PROJECT: permissions})})


def _in_organization(organization: str, permissions: frozenset[Permission]) -> AccessList:
    return AccessList(organizations={organization: OrganizationAccess(permissions=permissions)})


PRINCIPALS: Mapping[str, Principal] = {
    "admin": _user("admin", AccessList(everywhere=OPERATOR)),
    "organization-admin": _user("organization-admin", _in_organization(ORGANIZATION, ALL), ORGANIZATION),
    "user": _user("user", _in_project(ALL), ORGANIZATION),
    "reader": _user("reader", _in_project(READ), ORGANIZATION),
    "member": _user("member", _in_organization(ORGANIZATION, frozenset()), ORGANIZATION),
    "foreigner": _user("foreigner", _in_organization(FOREIGN_ORGANIZATION, ALL), FOREIGN_ORGANIZATION),
    "nobody": _user("nobody", AccessList()),
}
"""Everybody with a token, which is the name here."""

SERVICE = Principal(subject="stagecoach", type="system", access=AccessList(everywhere=ALL))
"""Whom the certificate shows."""


class TokenAuthenticator:
    """Knows the tokens by heart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expiries: dict[str, datetime] = {}
        self._revoked: set[str] = set()
        self._access: dict[str, AccessList] = {}

    def knows(self, credentials: RequestCredentials) -> bool:
        """Tell whether a token is one of those, or a proxy vouches for a certificate."""
        return credentials.token is None or credentials.token in PRINCIPALS

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return who has this token or certificate."""
        if credentials.token is not None:
            return self._user(credentials.token)
        if credentials.certificate != CERTIFICATE or credentials.claim is None:
            raise Unauthenticated("the certificate is not known")
        impersonated = self._find(credentials.claim.actor).access if credentials.impersonate else None
        return acting_for(SERVICE, credentials.claim, impersonated=impersonated)

    def expire(self, token: str, after: timedelta) -> None:
        """Let a token end after a while."""
        self._expiries[token] = self._clock.now() + after

    def revoke(self, token: str) -> None:
        """Let a token end now."""
        self._revoked.add(token)

    def grant(self, token: str, access: AccessList) -> None:
        """Give whoever has this token other rights from now on."""
        self._access[token] = access

    def _user(self, token: str) -> Principal:
        expires = self._expiries.get(token)
        if token not in PRINCIPALS or token in self._revoked:
            raise Unauthenticated("token is not valid")
        if expires is not None and expires <= self._clock.now():
            raise Unauthenticated("token has expired")
        principal = PRINCIPALS[token]
        return replace(principal, expires=expires, access=self._access.get(token, principal.access))

    def _find(self, subject: str) -> Principal:
        for principal in PRINCIPALS.values():
            if principal.subject == subject:
                return principal
        raise Unauthenticated("the actor is not known")
