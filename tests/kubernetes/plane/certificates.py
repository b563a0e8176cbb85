"""Who may talk to a control plane: its certificate authority, certificates, service account key and kubeconfigs.

`Authority.create(directory)` makes everything the three programs read, as PEM files; `Authority.load(directory)` takes
it up again. Afterwards `issue()` makes further client certificates, with any groups and any lifetime, a past one
included: a credential that has expired is something a client must survive. Keys are written for the owner's eyes only.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LONG = timedelta(days=3650)
CLOCK_SLACK = timedelta(hours=1)


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes

    @classmethod
    def read(cls, directory: Path, name: str) -> "Identity":
        return cls((directory / f"{name}.crt").read_bytes(), (directory / f"{name}.key").read_bytes())

    def save(self, directory: Path, name: str) -> tuple[Path, Path]:
        certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
        certificate.write_bytes(self.certificate)
        write_private(key, self.key)
        return certificate, key


@dataclass(frozen=True)
class Authority:
    """The one authority that signs servers and clients of a plane alike."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, directory: Path) -> "Authority":
        directory.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "remuda-plane-ca")])
        draft = certificate_for(name, key.public_key(), LONG).issuer_name(name)
        draft = draft.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        draft = draft.add_extension(key_usage(certifies=True), critical=True)
        authority = cls(draft.sign(key, hashes.SHA256()), key)
        Identity(authority.pem, private_pem(key)).save(directory, "ca")
        authority.issue("remuda-plane", serves="127.0.0.1").save(directory, "server")
        authority.issue("admin", groups=("system:masters",)).save(directory, "admin")
        authority.issue("system:kube-controller-manager").save(directory, "controller-manager")
        write_account_keys(directory)
        return authority

    @classmethod
    def load(cls, directory: Path) -> "Authority":
        key = load_pem_private_key((directory / "ca.key").read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{directory / 'ca.key'} holds another kind of key than we write")
        return cls(x509.load_pem_x509_certificate((directory / "ca.crt").read_bytes()), key)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(
        self, user: str, *, groups: Sequence[str] = (), lifetime: timedelta = LONG, serves: str | None = None
    ) -> Identity:
        """Certify a user and the groups it is in; `serves` also makes it good for a server at that address."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        key = ec.generate_private_key(ec.SECP256R1())
        draft = certificate_for(subject, key.public_key(), lifetime).issuer_name(self.certificate.subject)
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if serves is not None:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            names = [x509.IPAddress(ip_address(serves)), x509.DNSName("localhost")]
            draft = draft.add_extension(x509.SubjectAlternativeName(names), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        draft = draft.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        draft = draft.add_extension(key_usage(certifies=False), critical=True)
        draft = draft.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        draft = draft.add_extension(issuer, critical=False)
        return Identity(draft.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM), private_pem(key))


def certificate_for(subject: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: timedelta) -> x509.CertificateBuilder:
    """Begin a certificate that ends `lifetime` from now, even if that is in the past."""
    now = datetime.now(UTC)
    begin = min(now, now + lifetime) - CLOCK_SLACK
    draft = x509.CertificateBuilder(subject_name=subject, public_key=key, serial_number=x509.random_serial_number())
    draft = draft.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    return draft.not_valid_before(begin).not_valid_after(now + lifetime)


def key_usage(*, certifies: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=certifies,
        crl_sign=certifies,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def write_account_keys(directory: Path) -> None:
    """Make the key pair that signs service account tokens; it needs no certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    write_private(directory / "service-account.key", private_pem(key))
    (directory / "service-account.pub").write_bytes(public)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def embedded(identity: Identity) -> dict[str, str]:
    """Name a kubeconfig user by certificate and key inside the file."""
    return {"client-certificate-data": encoded(identity.certificate), "client-key-data": encoded(identity.key)}


def by_path(certificate: Path, key: Path) -> dict[str, str]:
    """Name a kubeconfig user by files, which may be replaced while a client runs."""
    return {"client-certificate": str(certificate), "client-key": str(key)}


def bearer(token: str) -> dict[str, str]:
    """Name a kubeconfig user by a token."""
    return {"token": token}


def write_kubeconfig(path: Path, url: str, ca: bytes, user: Mapping[str, str], namespace: str = "default") -> Path:
    """Write a kubeconfig of one context; `user` comes from `embedded`, `by_path` or `bearer`."""
    cluster = {"server": url, "certificate-authority-data": encoded(ca)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "plane",
        "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "plane", "namespace": namespace}}],
        "clusters": [{"name": "plane", "cluster": cluster}],
        "users": [{"name": "plane", "user": dict(user)}],
    }
    write_private(path, json.dumps(config, indent=2).encode())  # every JSON text is a YAML text
    return path


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
