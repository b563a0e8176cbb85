"""Client certificates: the form in which a proxy passes them on, and the authorities that must have issued them.

A proxy sends the client's certificate as PEM, usually percent-encoded because a header has no line breaks. The
intermediate certificates may follow it. The chain is verified in this process: up to one of our own authorities, for
the authentication of clients, at the present time. What the proxy says about it is not enough, since some proxies pass
on a header that the client itself has sent.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from remuda.http.revocations import RevocationLists
from remuda.kernel.errors import Malformed, Unauthenticated
from remuda.kernel.percent_encoding import percent_decoded

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----([0-9A-Za-z+/=\s]+)-----END CERTIFICATE-----\s*")
_LONGEST_CHAIN = 5
_LONGEST_HEADER = 48 * 1024

EXPIRED = "certificate has expired or is not yet valid"


def read_chain(header: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificate of a header, and the intermediate ones that follow it, or raise Malformed."""
    if len(header) > _LONGEST_HEADER:
        raise _malformed()
    try:
        text = percent_decoded(header)
    except ValueError:
        raise _malformed() from None
    blocks = _BLOCK.findall(text)
    if not 0 < len(blocks) <= _LONGEST_CHAIN or _BLOCK.sub(b"", text).strip():
        raise _malformed()
    try:
        return tuple(x509.load_der_x509_certificate(_decoded(block)) for block in blocks)
    except (ValueError, binascii.Error):
        raise _malformed() from None


def _decoded(block: bytes) -> bytes:
    return base64.b64decode(b"".join(block.split()), validate=True)


def _malformed() -> Malformed:
    return Malformed(
        "certificate propagation failure: the proxy must send ssl-client-cert as percent-encoded PEM "
        f"of at most {_LONGEST_CHAIN} certificates"
    )


def to_pem(chain: Sequence[x509.Certificate]) -> str:
    """Return certificates in the usual form, however they were sent."""
    return b"".join(each.public_bytes(Encoding.PEM) for each in chain).decode()


def check_client(certificate: x509.Certificate) -> None:
    """Raise Unauthenticated unless a certificate, whose signature is verified here or by TLS, may be that of a client.

    An authority is no client, and version 1 cannot say which of the two it is.
    """
    if certificate.version is not x509.Version.v3:
        raise Unauthenticated(
            "certificate has no extensions: use one of version 3 with basicConstraints CA:FALSE "
            "and extendedKeyUsage clientAuth"
        )
    try:
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise Unauthenticated("certificate has extensions that are not valid: use another one") from None
    if is_authority:
        raise Unauthenticated("certificate is that of an authority: use one that it has issued to a client")


class ClientAuthorities:
    """Authorities whose certificates clients may have. They are replaced when their file changes."""

    def __init__(self, pem: bytes, lists: bytes | None = None) -> None:
        """Take the certificates and the revocation lists of the authorities as PEM, or raise ValueError.

        Without lists no certificate is revoked.
        """
        self.replace(pem)
        self.revocations = None if lists is None else RevocationLists(lists, self.certificates)

    def replace(self, pem: bytes) -> None:
        """Replace the authorities, or raise ValueError and keep them."""
        certificates = x509.load_pem_x509_certificates(pem)
        self._store, self.certificates = Store(certificates), certificates

    def check_revocation(self, pem: str, now: datetime) -> None:
        """Raise Unauthenticated if the certificate of a client, which TLS has verified, may be revoked."""
        if self.revocations is None:
            return
        try:
            certificate = x509.load_pem_x509_certificate(pem.encode())
        except ValueError:
            raise Unauthenticated("certificate is not valid: use another one") from None
        self.revocations.check(certificate, now)

    def verify(self, chain: Sequence[x509.Certificate], now: datetime) -> None:
        """Raise Unauthenticated unless an authority has issued the first of these certificates to a client."""
        first, *others = chain
        check_client(first)
        if not first.not_valid_before_utc <= now < first.not_valid_after_utc:
            raise Unauthenticated(EXPIRED)
        policies = {"ca_policy": _OF_AUTHORITIES, "ee_policy": _OF_CLIENTS}
        builder = PolicyBuilder().store(self._store).time(now).extension_policies(**policies)
        try:
            builder.build_client_verifier().verify(first, others)
        except VerificationError:
            raise Unauthenticated(
                "certificate is not trusted: use one for client authentication that an authority in "
                "server.client_ca_file has issued"
            ) from None
        if self.revocations is not None:
            self.revocations.check(first, now)


def replace_lists(authorities: ClientAuthorities, path: Path) -> None:
    """Load the revocation lists again; or raise OSError or ValueError, and reject every certificate of a client."""
    assert authorities.revocations is not None, "there is a file of lists"
    try:
        pem = path.read_bytes()
    except OSError as error:
        authorities.revocations.fail(f"{path} cannot be read ({error.strerror})")
        raise
    authorities.revocations.replace(pem, authorities.certificates)


class RevocationMonitor:
    """Log lines about revocation lists that cannot be used, one for each change."""

    def __init__(self, authorities: ClientAuthorities | None) -> None:
        self._revocations = None if authorities is None else authorities.revocations
        self._problem = ""

    def check(self, now: datetime) -> None:
        """Log that certificates are rejected, or accepted again."""
        problem = "" if self._revocations is None else self._revocations.problem(now)
        if problem == self._problem:
            return
        self._problem = problem
        if problem:
            remedy = "replace server.client_crl_file by the present lists"
            structlog.get_logger().error("client certificates are rejected", cause=problem, remedy=remedy)
        else:
            structlog.get_logger().info("client certificates are accepted again")


def _check_authority(_policy: Policy, _certificate: x509.Certificate, extension: x509.BasicConstraints) -> None:
    if not extension.ca:
        raise ValueError("only an authority issues certificates")


def _check_key(_policy: Policy, _certificate: x509.Certificate, extension: x509.KeyUsage | None) -> None:
    if extension is not None and not extension.key_cert_sign:
        raise ValueError("the key is not for certificates")


def _check_purpose(_policy: Policy, _certificate: x509.Certificate, extension: x509.ExtendedKeyUsage | None) -> None:
    purposes = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if extension is not None and purposes.isdisjoint(extension):
        raise ValueError("the certificate is not for clients")


# The rules of the Web ask for more, such as a DNS name in each certificate, than private authorities comply with.
_OF_AUTHORITIES = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _check_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _check_key)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_purpose)
)
_OF_CLIENTS = ExtensionPolicy.permit_all().may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_purpose)
