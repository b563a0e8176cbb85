"""The authentication port: credentials become a principal.

A claim beside a certificate, or beside a token of a service, says for whom the service acts (`acting_for`). Beside any
other token it is ignored: whoever is no service cannot act for others.

The identity service stands behind it, in this process or over HTTP. It is asked once per request, and again now and
then by a stream that stays open, which ends when the answer changes: an implementation caches what it can.
"""

from typing import Protocol

from msgspec.structs import replace

from remuda.access.principal import AccessList, Principal, both
from remuda.http.claims import Claim
from remuda.http.credentials import Credentials


class Authenticator(Protocol):
    """Tells who stands behind credentials, and what that one may do."""

    def knows(self, credentials: Credentials) -> bool:
        """Tell whether these were let in lately, or cost little to judge: where too much is refused, others wait."""
        ...

    async def authenticate(self, credentials: Credentials) -> Principal:
        """Return the principal, or raise Unauthenticated with a lower-case text that says why the credentials fail.

        Raise Malformed with the `fault` of credentials that have one, if they turn out to be a service's.
        """
        ...


def acting_for(service: Principal, claim: Claim, *, impersonated: AccessList | None = None) -> Principal:
    """Return a service that acts for the one it claims to.

    The claim says who pays and who is audited. The rights are the service's own or, where it impersonates, what both it
    and the one it acts for may do.
    """
    return replace(
        service,
        service=service.subject,
        actor=claim.actor,
        organization=claim.organization,
        project=claim.project,
        organizations=claim.organizations,
        access=service.access if impersonated is None else both(service.access, impersonated),
        issuer=claim.issuer,
        vouched_by=claim.vouched_by,
    )


def carried_by(
    shown: Principal, service: Principal, claim: Claim, *, impersonated: AccessList | None = None
) -> Principal:
    """Return whoever's token it is that a service carries besides its own certificate.

    The rights are those of the token, or what both it and the one may do whom the service impersonates. The service
    adds its word on who pays and who is audited; and neither's credentials count for longer than the other's. What
    either says about who vouches is kept, so that a call made in turn does not reach further than this one.
    """
    return replace(
        shown,
        service=service.subject,
        actor=claim.actor,
        organization=claim.organization,
        project=claim.project,
        access=shown.access if impersonated is None else both(shown.access, impersonated),
        issuer=claim.issuer or shown.issuer,
        vouched_by=shown.vouched_by or claim.vouched_by,
        expires=min(filter(None, (shown.expires, service.expires)), default=None),
    )
