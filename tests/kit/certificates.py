"""Certificates of tests: an authority, what it issues, and what an attacker issues himself."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from remuda.http.certificates import ClientAuthorities
from remuda.http.proxies import CertificateProxies
from remuda.http.server.tls import TlsFiles

_BEGIN, _END = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
Extension = tuple[x509.ExtensionType, bool]
"""An extension, and whether it is critical."""


@cache
def _key(name: str) -> ec.EllipticCurvePrivateKey:  # noqa: ARG001  one for each
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True)
class Issued:
    """A certificate with its key, and the intermediate authorities above it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    @property
    def pem(self) -> str:
        """The certificate, and what is above it."""
        return b"".join(each.public_bytes(Encoding.PEM) for each in (self.certificate, *self.chain)).decode()

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@dataclass(frozen=True)
class Authority:
    """An authority that issues certificates."""

    own: Issued
    is_root: bool = True

    @property
    def pem(self) -> str:
        return self.own.pem

    def issue(
        self,
        *names: str,
        begins: datetime = _BEGIN,
        ends: datetime = _END,
        extensions: Sequence[Extension] = (),
        key: str = "holder",
        serial: int = 7,
    ) -> Issued:
        """Return a certificate with these common names."""
        certificate = _signed(
            names, key, issuer=self.own, begins=begins, ends=ends, extensions=extensions, serial=serial
        )
        above = () if self.is_root else (self.own.certificate, *self.own.chain)
        return Issued(certificate, _key(key), above)

    def revocation_list(
        self,
        *serials: int,
        begins: datetime = _BEGIN,
        ends: datetime | None = _END,
        extensions: Sequence[Extension] = (),
    ) -> str:
        """Return the list of revoked certificates, as PEM."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.own.certificate.subject).last_update(begins)
        if ends is not None:
            builder = builder.next_update(ends)
        for serial in serials:
            revoked = x509.RevokedCertificateBuilder(serial_number=serial, revocation_date=begins).build()
            builder = builder.add_revoked_certificate(revoked)
        for extension, is_critical in extensions:
            builder = builder.add_extension(extension, critical=is_critical)
        return builder.sign(self.own.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    def subordinate(self, name: str, *, extensions: Sequence[Extension] = (), **constraints: Any) -> "Authority":
        """Return an authority below this one."""
        basic: Extension = (x509.BasicConstraints(ca=True, path_length=None), True)
        return Authority(self.issue(name, key=name, extensions=(basic, *extensions), **constraints), is_root=False)


def _signed(
    names: Sequence[str],
    key: str,
    *,
    issuer: Issued | None = None,
    begins: datetime = _BEGIN,
    ends: datetime = _END,
    extensions: Sequence[Extension] = (),
    serial: int = 7,
) -> x509.Certificate:
    """Return a certificate that the issuer signs or, without one, its own key."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    builder = x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=subject if issuer is None else issuer.certificate.subject,
        public_key=_key(key).public_key(),
        serial_number=serial,
        not_valid_before=begins,
        not_valid_after=ends,
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(_key(key) if issuer is None else issuer.key, hashes.SHA256())


@cache
def authority(name: str = "authority", *, path_length: int | None = None) -> Authority:
    """Return a root; the one without a name is that of the services."""
    basic: Extension = (x509.BasicConstraints(ca=True, path_length=path_length), True)
    return Authority(Issued(_signed([name], name, extensions=[basic]), _key(name)))


def namesake(other: Authority) -> Authority:
    """Return a root that has the name of another, and a key of its own."""
    basic: Extension = (x509.BasicConstraints(ca=True, path_length=None), True)
    names = [str(each.value) for each in other.own.certificate.subject]
    return Authority(Issued(_signed(names, "namesake", extensions=[basic]), _key("namesake")))


def version_1(issued: Issued, issuer: Authority) -> Issued:
    """Return a certificate as version 1, which has no extensions, signed again."""
    body = issued.certificate.tbs_certificate_bytes
    start = body.index(b"\xa0\x03\x02\x01\x02") + 5  # version 3, the first field
    assert not issued.certificate.extensions, "only version 3 has extensions"
    inner = _sequence(body[start:])
    signature = issuer.own.key.sign(inner, ec.ECDSA(hashes.SHA256()))
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")  # ecdsa-with-SHA256
    bits = b"\x03" + bytes([len(signature) + 1, 0]) + signature
    made = x509.load_der_x509_certificate(_sequence(inner + algorithm + bits))
    return Issued(made, issued.key, issued.chain)


def _sequence(content: bytes) -> bytes:
    length = len(content).to_bytes(2, "big")
    return b"\x30\x82" + length + content if len(content) > 255 else b"\x30\x81" + length[1:] + content


def server_files(directory: Path, *, key: str = "server", issuer: Authority | None = None) -> TlsFiles:
    """Write a certificate for a server on this machine, its key, and the authority of clients; return where."""
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")])
    made = (issuer or authority()).issue("server", extensions=[(names, False)], key=key)
    files = written_files(directory)
    files.certificate.write_text(made.pem)
    files.key.write_text(made.key_pem)
    (directory / "clients.pem").write_text(authority().pem)
    return files


def written_files(directory: Path) -> TlsFiles:
    """Return where `server_files` has written to."""
    return TlsFiles(directory / "server.pem", directory / "server.key", directory / "clients.pem")


def client_context(issuer: Authority | None = None, shown: Issued | None = None) -> ssl.SSLContext:
    """Return TLS settings of a client that trusts an authority and shows a certificate, if any."""
    context = ssl.create_default_context(cadata=(issuer or authority()).pem)
    if shown is not None:
        with NamedTemporaryFile("w") as file:
            file.write(shown.pem + shown.key_pem)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def self_signed(*names: str, extensions: Sequence[Extension] = ()) -> Issued:
    """Return what anybody can make."""
    return Issued(_signed(names, "self", extensions=extensions), _key("self"))


def certificate_proxies(*networks: str) -> CertificateProxies:
    """Return proxies that may pass on certificates of the services' authority: those on this machine by default."""
    return CertificateProxies(networks or ("127.0.0.1/32",), ClientAuthorities(authority().pem.encode()))
