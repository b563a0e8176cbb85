"""Self-signed certificate of a server, for a first try: a key and a certificate in the data directory.

They are kept, so that a client that has pinned the certificate finds the same one after a restart. The certificate is
renewed before it expires, with a new key.
"""

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from remuda.kernel.errors import Invalid
from remuda.kernel.files import write_private
from remuda.kernel.randomness import Randomness

LIFETIME = timedelta(days=825)
"""Longest lifetime that all browsers accept of a certificate that they are told to trust."""
RENEWED = timedelta(days=30)
"""Time before the end of a certificate at which it is renewed."""

_NAME = "Remuda"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_EARLIER = timedelta(hours=1)
_SPARE_BYTES = 8


def prepare_self_signed(
    certificate: Path, key: Path, *, hosts: Iterable[str], now: datetime, randomness: Randomness
) -> None:
    """Write a key and a certificate for these hosts, unless there is one that is valid for some time."""
    if _is_usable(certificate, key, now):
        return
    private = _new_key(randomness)
    made = _signed(private, hosts, now, randomness)
    content = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        write_private(key, content)
        write_private(certificate, made.public_bytes(Encoding.PEM))
    except OSError as error:
        problem = f"{certificate.parent} cannot be written ({error.strerror or error})"
        raise Invalid("--data", problem, remedy="check the directory and its permissions") from None


def _is_usable(certificate: Path, key: Path, now: datetime) -> bool:
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError):
        return False
    return key.exists() and found.not_valid_before_utc <= now < found.not_valid_after_utc - RENEWED


def _new_key(randomness: Randomness) -> ec.EllipticCurvePrivateKey:
    curve = ec.SECP256R1()
    length = curve.key_size // 8 + _SPARE_BYTES  # the spare bytes make every scalar as likely as any other
    scalar = int.from_bytes(randomness.token_bytes(length)) % (curve.group_order - 1) + 1
    return ec.derive_private_key(scalar, curve)


def _signed(
    key: ec.EllipticCurvePrivateKey, hosts: Iterable[str], now: datetime, randomness: Randomness
) -> x509.Certificate:
    names = [_alternative(host) for host in dict.fromkeys([*hosts, *_LOCAL])]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    begins = now.astimezone(UTC).replace(microsecond=0) - _EARLIER  # the client's clock may be late
    builder = (
        x509.CertificateBuilder(
            subject_name=subject,
            issuer_name=subject,
            public_key=key.public_key(),
            serial_number=int.from_bytes(randomness.token_bytes(16)) >> 1 | 1,
            not_valid_before=begins,
            not_valid_after=begins + LIFETIME,
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host.encode("idna").decode())
