"""What a request brings to say who sends it, read from its headers.

A caller has a bearer token. A service has a client certificate instead, or beside it: the proxy in front has verified
it and passes it on in headers. Anybody can write such headers, so they are believed from configured proxies and do not
exist when somebody else sends them. Nor is a certificate passed on for somebody else: a service is who its own
certificate says. It must say for whom it acts (`X-Principal`, see `claims`); with `X-Impersonate` it asks for no more
than both may.

A token may be a service's as well, which only the `Authenticator` can tell. So both headers are read beside a token,
too, and what is wrong with them is kept as `fault`: a service is refused for it, since it would else act with more than
it meant to. If the token is not a service's they mean nothing, and whatever they hold is no reason to refuse it.

Nothing here tells whether credentials hold: that is the `Authenticator`'s to say.

For whom a service acts: `X-Principal`, read and, where it is signed, verified.

It is the JSON of a `Claim` in base64url without padding, or a compact JWS with that JSON as its payload. A JWS is
signed with the key of the service's client certificate, and nothing else verifies it: the key says which algorithms can
be meant, so nobody chooses a weaker one, and what its header says about keys is not looked at.

The authentication port: credentials become a principal.

A claim beside a certificate, or beside a token of a service, says for whom the service acts (`acting_for`). Beside any
other token it is ignored: whoever is no service cannot act for others.

The identity service stands behind it, in this process or over HTTP. It is asked once per request, and again now and
then by a stream that stays open, which ends when the answer changes: an implementation caches what it can.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal, Protocol
from urllib.parse import unquote

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from msgspec.structs import replace

from remuda.access.principal import AccessList, Principal, both
from remuda.http.responses import Header
from remuda.kernel import encoding as base64url
from remuda.kernel.errors import Malformed, Unauthenticated

_BY_CURVE = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_OF_RSA = ["PS256", "PS512"]
_LONGEST = 8 * 1024


class Claim(msgspec.Struct, frozen=True, kw_only=True, rename={"organization": "organizationId"}):
    """For whom a service says it acts; it pays and is audited."""

    actor: str = ""
    type: Literal["user", "service", "system"] | None = None
    organization: str | None = None
    project: str | None = msgspec.field(default=None, name="projectId")
    organizations: tuple[str, ...] = msgspec.field(default=(), name="organizationIds")
    issuer: str = ""
    """The external issuer that says who the actor is; empty means identity itself."""
    vouched_by: str | None = msgspec.field(default=None, name="vouchedBy")
    """The one organization that vouches for the actor, and outside which the actor is nobody."""


_DECODE = msgspec.json.Decoder(Claim).decode


def read_claim(header: bytes | None, *, certificate: str) -> Claim:
    """Return the claim of a service with this certificate, which must be there and hold."""
    if header is None:
        raise Malformed("X-Principal is missing: a service says for whom it acts")
    _check_length(header)
    try:
        return _DECODE(_signed(header, certificate) if b"." in header else base64url.decode(header))
    except (ValueError, RecursionError, JoseError):
        raise Malformed(
            "X-Principal is not valid: send a JSON object as unpadded base64url, or signed with the certificate's key"
        ) from None


def read_claim_of_bearer(header: bytes) -> Claim:
    """Return what came beside a token, or raise Malformed. Without a certificate nothing verifies a JWS."""
    _check_length(header)
    try:
        return _DECODE(base64url.decode(header))
    except (ValueError, RecursionError):
        raise Malformed(
            "X-Principal is not valid: send a JSON object as unpadded base64url; "
            "a signed one needs the certificate whose key signed it"
        ) from None


def _check_length(header: bytes) -> None:
    if len(header) > _LONGEST:
        raise Malformed(f"X-Principal is too long: send at most {_LONGEST} bytes")


def write_claim(claim: Claim) -> str:
    """Return a claim as the header has it, unsigned."""
    return base64url.encode(msgspec.json.encode(claim))


def _signed(header: bytes, certificate: str) -> bytes:
    key, algorithms = _key_of(certificate)
    return jws.deserialize_compact(header, key, algorithms=algorithms).payload


def _key_of(certificate: str) -> tuple[RSAKey | ECKey, list[str]]:
    """Return the key of a certificate, and the algorithms that are meant for it."""
    public = load_pem_x509_certificate(certificate.encode()).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if isinstance(public, RSAPublicKey):
        return RSAKey.import_key(pem), _OF_RSA
    if isinstance(public, EllipticCurvePublicKey) and public.curve.name in _BY_CURVE:
        return ECKey.import_key(pem), [_BY_CURVE[public.curve.name]]
    raise ValueError("the certificate has a key of another kind")


_SENSITIVE = (b"authorization", b"ssl-client-cert", b"ssl-client-verify", b"x-principal", b"x-impersonate")
_OF_TOKENS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~+/"
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s[0-9A-Za-z+/=\s]+-----END CERTIFICATE-----\s*")


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a request says about who sends it. At least one of token and certificate is there."""

    token: str | None = None
    certificate: str | None = None
    """The client certificate as PEM, verified by a proxy we trust."""
    claim: Claim | None = None
    """Always there beside a certificate. Beside a token alone it counts if the token is a service's, and for nobody
    else."""
    impersonate: bool = False
    """The service asks for what both it and the actor of its claim may do. Beside a token alone there may be no actor,
    or no claim at all."""
    fault: str = ""
    """What is wrong with the claim or the wish to impersonate, beside a token alone: a service is told (400) and not
    let in, and for nobody else it counts. Empty if nothing is."""

    def __repr__(self) -> str:
        return f"Credentials(claim={self.claim!r}, impersonate={self.impersonate!r})"


class TrustedProxies:
    """The addresses whose word is believed, about client certificates and whom they speak for: none by default."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks: tuple[IPv4Network | IPv6Network, ...] = tuple(map(ip_network, networks))

    def __contains__(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)

    def client_of(self, peer: str, forwarded: bytes) -> str:
        """Return where a request comes from that `peer` sent with this `X-Forwarded-For`.

        Each proxy adds the address that it was called from. So the last one that is no proxy of ours is the client;
        what stands before it was written by anybody.
        """
        hops = [hop.strip() for hop in forwarded.decode("latin-1").split(",")]
        while peer in self and hops and _is_address(hops[-1]):
            peer = hops.pop()
        return peer


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def read_credentials(
    headers: Mapping[bytes, bytes], *, all_headers: Sequence[Header], peer: str | None, proxies: TrustedProxies
) -> Credentials:
    """Read the credentials, or raise Unauthenticated where there are none and Malformed where they make no sense.

    `headers` is a mapping of `all_headers`, which tell whether one came twice: then nobody can say which one counts.
    """
    authorization = headers.get(b"authorization")
    if b"ssl-client-cert" in headers and peer is not None and peer in proxies:
        _refuse_doubles(all_headers)
        token = None if authorization is None else read_bearer(authorization)
        return _service_credentials(headers, token)
    if authorization is None:
        raise Unauthenticated("authorization header missing")
    if len(headers) != len(all_headers):
        _refuse_doubles(all_headers)
    token = read_bearer(authorization)
    if b"x-principal" not in headers and b"x-impersonate" not in headers:
        return Credentials(token=token)
    return _bearer_credentials(headers, token)


def _refuse_doubles(all_headers: Sequence[Header]) -> None:
    names = [name for name, _ in all_headers if name in _SENSITIVE]
    if len(names) != len(set(names)):
        raise Unauthenticated("authorization header malformed")


def read_bearer(authorization: bytes) -> str:
    """Return the token in a header Authorization, or raise Unauthenticated if there is none."""
    scheme, _, token = authorization.strip().partition(b" ")
    token = token.lstrip()
    if token and scheme.lower() != b"bearer":
        raise Unauthenticated("authorization scheme not allowed")
    # To look at each character of a long token with a regular expression takes ten times as long.
    if token.rstrip(b"=").translate(None, _OF_TOKENS) or not token.strip(b"="):
        raise Unauthenticated("authorization header malformed")
    return token.decode()


def _bearer_credentials(headers: Mapping[bytes, bytes], token: str) -> Credentials:
    said = headers.get(b"x-principal")
    try:
        claim = None if said is None else read_claim_of_bearer(said)
        return Credentials(token=token, claim=claim, impersonate=_impersonates(headers))
    except Malformed as error:
        return Credentials(token=token, fault=error.sentence)


def _service_credentials(headers: Mapping[bytes, bytes], token: str | None) -> Credentials:
    certificate = unquote(headers[b"ssl-client-cert"].decode("latin-1"))
    if headers.get(b"ssl-client-verify") != b"SUCCESS" or not _PEM.fullmatch(certificate):
        raise Malformed("certificate propagation failure")
    claim = read_claim(headers.get(b"x-principal"), certificate=certificate)
    impersonate = _impersonates(headers)
    if impersonate and not claim.actor:
        raise Malformed("X-Impersonate needs an actor in X-Principal: name the one to act for")
    return Credentials(token=token, certificate=certificate, claim=claim, impersonate=impersonate)


def _impersonates(headers: Mapping[bytes, bytes]) -> bool:
    wish = headers.get(b"x-impersonate", b"false").lower()
    if wish not in {b"true", b"false"}:
        raise Malformed(
            "X-Impersonate is neither true nor false: send true to ask for what both may do, or leave it out"
        )
    return wish == b"true"


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
