"""Authentication: the credentials of a request, the principal that a service acts for, and the authenticator port.

A caller has a bearer token; a service has a client certificate instead or in addition. TLS has verified it, or a proxy
in front passes it on in headers. These count only from proxies that may vouch for certificates, and the certificate is
verified here again; the certificate of a proxy's own connection never counts for its clients. A service must name the
principal it acts for in `X-Principal`; with `X-Impersonate` it asks for no more than both may do. A token may belong to
a service as well, which only the `Authenticator` can tell, so both headers are also read beside a token, and what is
wrong with them is kept as `fault`: a service is rejected for it. Beside any other token the headers are ignored.

`X-Principal` is the JSON of a `Claim` in unpadded base64url, or a compact JWS with that payload. A JWS is verified with
the key of the client certificate, which determines the algorithms; key parameters of its header are ignored. Identity
implements the authenticator, in this process or over HTTP. It is called for each request, and repeatedly for an open
stream, which ends when the result changes.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from msgspec.structs import replace

from remuda.access.principal import AccessList, Principal, intersection
from remuda.http.proxies import CertificateProxies
from remuda.http.responses import Header
from remuda.kernel.clock import Clock
from remuda.kernel.encoding import from_base64url, to_base64url
from remuda.kernel.errors import Malformed, Unauthenticated
from remuda.kernel.names import display_name

_BY_CURVE = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_OF_RSA = ["PS256", "PS512"]
_LONGEST = 8 * 1024


class PrincipalClaim(msgspec.Struct, frozen=True, kw_only=True, rename={"organization": "organizationId"}):
    """Principal that a service acts for; it pays and is audited."""

    actor: str = ""
    type: Literal["user", "service", "system"] | None = None
    organization: str | None = None
    project: str | None = msgspec.field(default=None, name="projectId")
    organizations: tuple[str, ...] = msgspec.field(default=(), name="organizationIds")
    issuer: str = ""
    """External issuer of the actor; empty means identity itself."""
    member_of_only: str | None = msgspec.field(default=None, name="memberOfOnly")
    """The only organization in which the actor is known."""
    has_global_access: bool = msgspec.field(default=False, name="hasGlobalAccess")
    """Whether the login of the actor had global permissions, of roles that may require a second factor."""
    actor_name: str = msgspec.field(default="", name="actorName")
    """The display name of an actor that is a service account. It is only shown."""


_DECODE = msgspec.json.Decoder(PrincipalClaim).decode


def read_claim(header: bytes | None, *, certificate: str) -> PrincipalClaim:
    """Return the valid claim of a service with this certificate, or raise Malformed."""
    if header is None:
        raise Malformed("X-Principal is missing: a service must name the principal it acts for")
    _check_length(header)
    try:
        return _DECODE(_signed(header, certificate) if b"." in header else from_base64url(header))
    except (ValueError, RecursionError, JoseError):
        raise Malformed(
            "X-Principal is not valid: send a JSON object as unpadded base64url, or signed with the certificate's key"
        ) from None


def read_claim_of_bearer(header: bytes) -> PrincipalClaim:
    """Return the claim beside a token, or raise Malformed. Without a certificate no JWS can be verified."""
    _check_length(header)
    try:
        return _DECODE(from_base64url(header))
    except (ValueError, RecursionError):
        raise Malformed(
            "X-Principal is not valid: send a JSON object as unpadded base64url; "
            "a signed one needs the certificate whose key signed it"
        ) from None


def _check_length(header: bytes) -> None:
    if len(header) > _LONGEST:
        raise Malformed(f"X-Principal is too long: send at most {_LONGEST} bytes")


def claim_of(principal: Principal) -> PrincipalClaim:
    return PrincipalClaim(
        actor=principal.actor_name,
        type=principal.type,
        organization=principal.organization,
        project=principal.project,
        organizations=principal.organizations,
        issuer=principal.issuer,
        member_of_only=principal.member_of_only,
        has_global_access=principal.type == "user" and bool(principal.access.everywhere),
        actor_name=principal.display_name,
    )


def write_claim(claim: PrincipalClaim) -> str:
    """Encode a claim for the header, unsigned."""
    return to_base64url(msgspec.json.encode(claim))


def _signed(header: bytes, certificate: str) -> bytes:
    key, algorithms = _key_of(certificate)
    return jws.deserialize_compact(header, key, algorithms=algorithms).payload


def _key_of(certificate: str) -> tuple[RSAKey | ECKey, list[str]]:
    public = load_pem_x509_certificate(certificate.encode()).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if isinstance(public, RSAPublicKey):
        return RSAKey.import_key(pem), _OF_RSA
    if isinstance(public, EllipticCurvePublicKey) and public.curve.name in _BY_CURVE:
        return ECKey.import_key(pem), [_BY_CURVE[public.curve.name]]
    raise ValueError("the certificate has a key of another kind")


_SENSITIVE = (b"authorization", b"ssl-client-cert", b"ssl-client-verify", b"x-principal", b"x-impersonate")
_OF_TOKENS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~+/"


class RequestCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials of a request. At least one of token and certificate is there."""

    token: str | None = None
    token_digest: str = ""
    """SHA-256 of the token in hexadecimal digits, if there is only a token; empty if it was not computed."""
    certificate: str | None = None
    """Client certificate as PEM, verified. The intermediate certificates may follow it."""
    claim: PrincipalClaim | None = None
    """Always present with a certificate. With a token alone it counts only if the token belongs to a service."""
    impersonate: bool = False
    """Whether the service asks for what both it and the actor of its claim, if any, may do."""
    fault: str = ""
    """Problem of the claim or of `X-Impersonate` beside a token: a service is rejected with it (400)."""

    def with_digest(self) -> "RequestCredentials":
        """Return the credentials with the digest of a token that has nothing beside it, for repeated use."""
        if self.token is None or self.certificate or self.claim or self.impersonate or self.fault:
            return self
        return msgspec.structs.replace(self, token_digest=hashlib.sha256(self.token.encode()).hexdigest())

    def __repr__(self) -> str:
        return f"Credentials(claim={self.claim!r}, impersonate={self.impersonate!r})"


def read_credentials(
    headers: Mapping[bytes, bytes],
    *,
    all_headers: Sequence[Header],
    peer: str | None,
    proxies: CertificateProxies,
    clock: Clock,
    tls_certificate: str | None = None,
) -> RequestCredentials:
    """Read the credentials, or raise Unauthenticated if there are none and Malformed if they are invalid.

    Raise Unauthenticated, too, for a certificate that no authority of ours has issued, or that it may have revoked.
    `headers` is a mapping of `all_headers`, which show whether one was repeated and is therefore ambiguous.
    `tls_certificate` is the one that the client has shown and TLS has verified. It counts unless there is only a token:
    a client may show it everywhere.
    """
    authorization = headers.get(b"authorization")
    if headers.get(b"ssl-client-cert") and peer is not None and peer in proxies:
        _reject_duplicates(all_headers)
        token = None if authorization is None else read_bearer(authorization)
        return _service_credentials(headers, token, _forwarded_certificate(headers, proxies, clock))
    if tls_certificate is not None and (authorization is None or b"x-principal" in headers):
        _reject_duplicates(all_headers)
        proxies.check_revocation(tls_certificate, clock.now())
        token = None if authorization is None else read_bearer(authorization)
        return _service_credentials(headers, token, tls_certificate)
    if authorization is None:
        raise Unauthenticated("authorization header missing")
    if len(headers) != len(all_headers):
        _reject_duplicates(all_headers)
    token = read_bearer(authorization)
    if b"x-principal" not in headers and b"x-impersonate" not in headers:
        return RequestCredentials(token=token)
    return _bearer_credentials(headers, token)


def _reject_duplicates(all_headers: Sequence[Header]) -> None:
    names = [name for name, _ in all_headers if name in _SENSITIVE]
    if len(names) != len(set(names)):
        raise Unauthenticated("authorization header malformed")


def read_bearer(authorization: bytes) -> str:
    """Return the token of an Authorization header, or raise Unauthenticated if there is none."""
    scheme, _, token = authorization.strip().partition(b" ")
    token = token.lstrip()
    if token and scheme.lower() != b"bearer":
        raise Unauthenticated("authorization scheme not allowed")
    # A regular expression takes ten times as long for a long token.
    if token.rstrip(b"=").translate(None, _OF_TOKENS) or not token.strip(b"="):
        raise Unauthenticated("authorization header malformed")
    return token.decode()


def _bearer_credentials(headers: Mapping[bytes, bytes], token: str) -> RequestCredentials:
    header = headers.get(b"x-principal")
    try:
        claim = None if header is None else read_claim_of_bearer(header)
        return RequestCredentials(token=token, claim=claim, impersonate=_impersonates(headers))
    except Malformed as error:
        return RequestCredentials(token=token, fault=error.message)


def _forwarded_certificate(headers: Mapping[bytes, bytes], proxies: CertificateProxies, clock: Clock) -> str:
    if headers.get(b"ssl-client-verify") != b"SUCCESS":
        raise Malformed(
            "certificate propagation failure: the proxy must send ssl-client-verify: SUCCESS with a certificate "
            "that it has verified, and no ssl-client-cert otherwise"
        )
    return proxies.verified(headers[b"ssl-client-cert"], clock.now())


def _service_credentials(headers: Mapping[bytes, bytes], token: str | None, certificate: str) -> RequestCredentials:
    claim = read_claim(headers.get(b"x-principal"), certificate=certificate)
    impersonate = _impersonates(headers)
    if impersonate and not claim.actor:
        raise Malformed("X-Impersonate needs an actor in X-Principal: name the one to act for")
    return RequestCredentials(token=token, certificate=certificate, claim=claim, impersonate=impersonate)


def _impersonates(headers: Mapping[bytes, bytes]) -> bool:
    value = headers.get(b"x-impersonate", b"false").lower()
    if value not in {b"true", b"false"}:
        raise Malformed(
            "X-Impersonate is neither true nor false: send true to ask for what both may do, or leave it out"
        )
    return value == b"true"


class Authenticator(Protocol):
    """Port that verifies credentials and returns the principal with its permissions."""

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        """Return whether these credentials were accepted recently, or carry a valid signature; others wait under load.

        It is as cheap as a signature, and says nothing about whether they are still accepted.
        """

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        """Return the principal, or raise Unauthenticated with a lower-case text that states the reason.

        Raise Malformed with the `fault` of credentials that have one, if they turn out to be a service's.
        """

    def access_version(self) -> int:
        """Return a number that changes whenever credentials or permissions may have changed, as far as known here."""


def acting_for(service: Principal, claim: PrincipalClaim, *, impersonated: AccessList | None = None) -> Principal:
    """Return a service as the principal that it acts for.

    The claim says who pays and who is audited. The permissions are the service's own or, if it impersonates, what both
    it and the actor may do.
    """
    return replace(
        service,
        service=service.subject,
        actor=claim.actor,
        display_name=display_name(claim.actor_name),
        organization=claim.organization,
        project=claim.project,
        organizations=claim.organizations,
        access=service.access if impersonated is None else intersection(service.access, impersonated),
        issuer=claim.issuer,
        member_of_only=claim.member_of_only,
    )


def presented_by(
    bearer: Principal, service: Principal, claim: PrincipalClaim, *, impersonated: AccessList | None = None
) -> Principal:
    """Return the principal of a token that a service presents besides its own certificate.

    The permissions are those of the token, or what both it and the impersonated principal may do. The service's claim
    says who pays and who is audited, and the earlier expiry applies. `vouched_by` is kept from either, so that a
    further call does not reach further than this one.
    """
    return replace(
        bearer,
        service=service.subject,
        actor=claim.actor,
        display_name=display_name(claim.actor_name) if claim.actor not in {"", bearer.subject} else bearer.display_name,
        organization=claim.organization,
        project=claim.project,
        access=bearer.access if impersonated is None else intersection(bearer.access, impersonated),
        issuer=claim.issuer or bearer.issuer,
        member_of_only=bearer.member_of_only or claim.member_of_only,
        expires=min(filter(None, (bearer.expires, service.expires)), default=None),
    )
