"""`X-Principal` that the key of a service's certificate signed."""

import base64
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from remuda.http.authentication import (
    PrincipalClaim,
    read_claim,
    read_claim_of_bearer,
    read_credentials,
)
from remuda.kernel.errors import Malformed
from tests.kit.certificates import authority, certificate_proxies
from tests.kit.clocks import HandClock

CLAIM = {"actor": "anna", "type": "user", "organizationId": "o"}
PAYLOAD = msgspec.json.encode(CLAIM)
READ = PrincipalClaim(actor="anna", type="user", organization="o")
MADE: Mapping[str, Callable[[], Any]] = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "other": lambda: ec.generate_private_key(ec.SECP256R1()),
    "k256": lambda: ec.generate_private_key(ec.SECP256K1()),
    "ed": ed25519.Ed25519PrivateKey.generate,
}


@cache
def key(name: str) -> Any:
    return MADE[name]()


@cache
def certificate(name: str) -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "unikorn-compute")])
    now, own = datetime(2026, 1, 1, tzinfo=UTC), key(name)
    built = (
        x509.CertificateBuilder(
            authority().own.certificate.subject, subject, own.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=9))
    )
    signed = built.sign(authority().own.key, hashes.SHA256())
    return signed.public_bytes(Encoding.PEM).decode()


def signed(name: str, algorithm: str, payload: bytes = PAYLOAD, **header: Any) -> bytes:
    pem = key(name).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    own = RSAKey.import_key(pem) if name == "rsa" else ECKey.import_key(pem)
    return jws.serialize_compact({"alg": algorithm, **header}, payload, own, algorithms=[algorithm]).encode()


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("rsa", "PS256"), ("rsa", "PS512"), ("p256", "ES256"), ("p384", "ES384"), ("p521", "ES512")],
)
def test_a_claim_may_be_signed_with_the_key_of_the_certificate(name: str, algorithm: str) -> None:
    assert read_claim(signed(name, algorithm), certificate=certificate(name)) == READ


def test_a_claim_that_is_too_long_is_refused() -> None:
    def padded(length: int) -> bytes:
        return base64.urlsafe_b64encode(msgspec.json.encode({"actor": "x" * length})).rstrip(b"=")

    longest, longer = padded(6132), padded(6133)
    assert (len(longest), len(longer)) == (8192, 8194)
    assert read_claim(longest, certificate=certificate("p256")) == read_claim_of_bearer(longest)
    with pytest.raises(Malformed, match="X-Principal is too long: send at most 8192 bytes"):
        read_claim(longer, certificate=certificate("p256"))
    with pytest.raises(Malformed, match="X-Principal is too long: send at most 8192 bytes"):
        read_claim_of_bearer(longer)


def test_a_claim_need_not_be_signed() -> None:
    plain = base64.urlsafe_b64encode(PAYLOAD).rstrip(b"=")
    assert read_claim(plain, certificate=certificate("p256")) == READ


def forged(algorithm: str) -> bytes:
    """Sign with what everybody knows: the public key, as if it were a shared secret; or not at all."""
    head = base64.urlsafe_b64encode(msgspec.json.encode({"alg": algorithm})).rstrip(b"=")
    text = head + b"." + base64.urlsafe_b64encode(PAYLOAD).rstrip(b"=")
    if algorithm == "none":
        return text + b"."
    public = key("rsa").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text + b"." + base64.urlsafe_b64encode(hmac.digest(public, text, "sha256")).rstrip(b"=")


def bent(token: bytes) -> bytes:
    head, body, signature = token.split(b".")
    other = base64.urlsafe_b64encode(PAYLOAD.replace(b"anna", b"root")).rstrip(b"=")
    assert other != body
    return b".".join([head, other, signature])


@pytest.mark.parametrize(
    ("holder", "made"),
    [
        ("p256", lambda: signed("other", "ES256")),
        ("rsa", lambda: signed("rsa", "RS256")),
        ("rsa", lambda: signed("p256", "ES256")),
        ("rsa", lambda: forged("none")),
        ("rsa", lambda: forged("HS256")),
        ("p256", lambda: bent(signed("p256", "ES256"))),
        ("p256", lambda: signed("p256", "ES256")[:-4]),
        ("p256", lambda: signed("p256", "ES256") + b".x.y"),
        ("p256", lambda: signed("p256", "ES256", b"[1]")),
        ("p256", lambda: signed("p256", "ES256", b'{"type":"king"}')),
        ("k256", lambda: signed("p256", "ES256")),
        ("ed", lambda: signed("p256", "ES256")),
        ("p256", lambda: b"a.b"),
        ("p256", lambda: b"..."),
        ("p256", lambda: b"\xff.\xff.\xff"),
    ],
)
def test_another_key_another_algorithm_or_another_text_is_refused(holder: str, made: Callable[[], bytes]) -> None:
    with pytest.raises(Malformed, match="X-Principal is not valid"):
        read_claim(made(), certificate=certificate(holder))


def test_a_key_in_the_header_is_not_looked_at() -> None:
    own = ECKey.import_key(key("other").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    token = signed("other", "ES256", jwk=own.as_dict(private=False))
    with pytest.raises(Malformed):
        read_claim(token, certificate=certificate("p256"))


def test_a_certificate_that_is_none_is_refused() -> None:
    broken = "-----BEGIN CERTIFICATE-----\nbGl2ZXJ5\n-----END CERTIFICATE-----\n"
    with pytest.raises(Malformed):
        read_claim(signed("p256", "ES256"), certificate=broken)


def test_beside_a_token_alone_nothing_verifies_a_signed_claim() -> None:
    with pytest.raises(Malformed, match="a signed one needs the certificate whose key signed it"):
        read_claim_of_bearer(signed("p256", "ES256"))


def test_a_signed_claim_comes_through_the_proxy() -> None:
    sent = [
        (b"ssl-client-cert", quote(certificate("p521")).encode()),
        (b"ssl-client-verify", b"SUCCESS"),
        (b"x-principal", signed("p521", "ES512")),
    ]
    proxies = certificate_proxies("10.0.0.1")
    read = read_credentials(dict(sent), all_headers=sent, peer="10.0.0.1", proxies=proxies, clock=HandClock())
    assert read.claim == READ
