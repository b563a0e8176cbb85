"""For whom a service acts: `X-Principal`, read and, where it is signed, verified.

It is the JSON of a `Claim` in base64url without padding, or a compact JWS with that JSON as its payload. A JWS is
signed with the key of the service's client certificate, and nothing else verifies it: the key says which algorithms can
be meant, so nobody chooses a weaker one, and what its header says about keys is not looked at.
"""

from typing import Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from remuda.kernel import encoding as base64url
from remuda.kernel.errors import Malformed

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
