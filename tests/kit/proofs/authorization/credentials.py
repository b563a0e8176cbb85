"""Lets the callers of a matrix in: each has a token, or a certificate of the service that it is.

PermissionSet are made into access lists here, and a service's into what it and the one it acts for may both do, by the
code that every service uses: the matrix says what must come out.
"""

import base64
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cache
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from remuda.access.principal import AccessList, OrganizationAccess, Permission, Principal
from remuda.http.authentication import PrincipalClaim, RequestCredentials, acting_for
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unauthenticated
from tests.kit.certificates import authority
from tests.kit.proofs.authorization.matrix import Caller, PermissionSet

_LIFE = timedelta(hours=1)


class CallerCredentials:
    """The authenticator, and what callers show it."""

    def __init__(self, callers: Iterable[Caller], clock: Clock) -> None:
        self._clock = clock
        self._callers = {caller.name: caller for caller in callers}
        self._tokens = {_token(name): name for name in self._callers if name not in {"anonymous", "forged"}}
        self._expiries = {_token("expired"): clock.now() - _LIFE}
        self._tokens.pop(_token("revoked"))

    def access_version(self) -> int:
        """Return the same each time: nothing changes."""
        return 0

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        """Tell whether it was given this token, or a certificate."""
        return credentials.token is None or credentials.token in self._tokens

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return who has this token or certificate."""
        if credentials.token is not None:
            return self._by_token(credentials.token)
        for caller in self._callers.values():
            if caller.own is not None and credentials.certificate == _certificate(caller.own.name):
                assert credentials.claim is not None, "a service says for whom it acts"
                return self._acting(caller.own, credentials.claim, impersonates=credentials.impersonate)
        raise Unauthenticated("the certificate is not known")

    def headers(self, caller: Caller) -> Mapping[str, str]:
        """Return what a caller sends to say who it is; a service's certificate comes from the proxy in front."""
        if caller.name == "anonymous":
            return {}
        if caller.own is None:
            return {"authorization": f"Bearer {_token(caller.name)}"}
        claim = msgspec.json.encode(self._claim(caller))
        return {
            "ssl-client-cert": quote(_certificate(caller.own.name)),
            "ssl-client-verify": "SUCCESS",
            "x-principal": base64.urlsafe_b64encode(claim).decode().rstrip("="),
            **({"x-impersonate": "true"} if caller.impersonates else {}),
        }

    def principal(self, caller: Caller) -> Principal:
        """Return a caller as a service in the same process meets it."""
        if caller.own is None:
            return _principal(caller)
        return self._acting(caller.own, self._claim(caller), impersonates=caller.impersonates)

    def _by_token(self, token: str) -> Principal:
        name = self._tokens.get(token)
        if name is None:
            raise Unauthenticated("token is not valid")
        expires = self._expiries.get(token, self._clock.now() + _LIFE)
        if expires <= self._clock.now():
            raise Unauthenticated("token has expired")
        return replace(_principal(self._callers[name]), expires=expires)

    def _acting(self, service: Caller, claim: PrincipalClaim, *, impersonates: bool) -> Principal:
        whom = next(each for each in self._callers.values() if _principal(each).subject == claim.actor)
        return acting_for(_principal(service), claim, impersonated=_principal(whom).access if impersonates else None)

    def _claim(self, caller: Caller) -> PrincipalClaim:
        whom = _principal(self._callers[caller.acts_for])
        return PrincipalClaim(actor=whom.subject, type="user", organizations=whom.organizations)


def _token(name: str) -> str:
    return name.replace(" ", "-")


@cache
def _certificate(service: str) -> str:
    return authority().issue(service).pem


def _principal(caller: Caller) -> Principal:
    names = {*caller.organizations, *(place.organization for place in caller.projects)}
    organizations = {
        name: OrganizationAccess(
            permissions=_permissions(caller.organizations.get(name, frozenset())),
            projects={
                place.project: _permissions(permissions)
                for place, permissions in caller.projects.items()
                if place.organization == name
            },
        )
        for name in names
    }
    return Principal(
        subject=f"{_token(caller.name)}@example.com",
        type="user",
        access=AccessList(everywhere=_permissions(caller.everywhere), organizations=organizations),
        organizations=tuple(sorted(names)),
    )


def _permissions(permissions: PermissionSet) -> frozenset[Permission]:
    return frozenset(Permission(endpoint, verb) for endpoint, verb in permissions)  # type: ignore[arg-type]  # by hand
