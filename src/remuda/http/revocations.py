"""Certificate revocation lists of the authorities of client certificates (RFC 5280, section 5).

With lists, a client certificate counts only while the present list of the authority that issued it does not name it.
Everything else is rejected: a list that has expired, a file that cannot be read, an authority without a list. Each list
is verified with the certificate of its authority, since lists are usually fetched over plain HTTP. An authority may
split its list by distribution point; all parts are needed then. Delta lists and indirect lists are not accepted.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtensionOID

from remuda.kernel.errors import Unauthenticated

LARGEST_FILE = 16 << 20
"""Largest size in bytes of a file of lists: about 400,000 revoked certificates."""

_BLOCK = re.compile(rb"-----BEGIN X509 CRL-----[0-9A-Za-z+/=\s]+-----END X509 CRL-----")
_CACHE_SIZE = 1024
_MOST_AUTHORITIES = 8
"""Largest number of authorities above a certificate that are looked at."""

_NO_LIST = (
    "certificate has no revocation list of its issuer: its authority must be in server.client_ca_file, and the list of "
    "this authority in server.client_crl_file"
)
_UNUSABLE = "certificate cannot be checked, because server.client_crl_file cannot be used: its operator must replace it"


@dataclass(frozen=True, slots=True)
class _List:
    """The revoked certificates of an authority."""

    authority: x509.Certificate
    begins: datetime
    ends: datetime
    serials: frozenset[int]

    @property
    def name(self) -> str:
        return self.authority.subject.rfc4514_string()

    def is_current(self, now: datetime) -> bool:
        return self.begins <= now < self.ends


class RevocationLists:
    """Lists of the authorities of client certificates. They are replaced when their file changes."""

    def __init__(self, pem: bytes, authorities: Sequence[x509.Certificate]) -> None:
        """Take the lists as PEM, or raise ValueError."""
        self._failure = ""
        self._lists: Mapping[x509.Name, Sequence[_List]] = {}
        self._issuers: OrderedDict[bytes, _List | None] = OrderedDict()
        self.replace(pem, authorities)

    def replace(self, pem: bytes, authorities: Sequence[x509.Certificate]) -> None:
        """Replace the lists; or raise ValueError, and reject every certificate until there are valid ones."""
        try:
            lists = _read(pem, authorities)
        except ValueError as error:
            self.fail(str(error))
            raise
        self._lists, self._failure = lists, ""
        self._issuers = OrderedDict()

    def fail(self, cause: str) -> None:
        """Reject every certificate, because the lists cannot be read."""
        self._failure = cause

    def check(self, certificate: x509.Certificate, now: datetime) -> None:
        """Raise Unauthenticated unless present lists say that neither a certificate nor its authority is revoked."""
        if self._failure:
            raise Unauthenticated(_UNUSABLE)
        found = self._list_of(certificate)
        if found is None:
            raise Unauthenticated(_NO_LIST)
        for _ in range(_MOST_AUTHORITIES):
            if not found.is_current(now):
                raise Unauthenticated("certificate cannot be checked, because the revocation list of its issuer is old")
            if certificate.serial_number in found.serials:
                raise Unauthenticated("certificate is revoked: use another one")
            certificate = found.authority
            above = None if certificate.issuer == certificate.subject else self._list_of(certificate)
            if above is None:  # the operator trusts this authority itself
                return
            found = above
        raise Unauthenticated("certificate has too many authorities above it")

    def problem(self, now: datetime) -> str:
        """Return why certificates are rejected now; empty if the lists can be used."""
        if self._failure:
            return self._failure
        old = sorted(each.name for each in self._all() if not each.is_current(now))
        return f"the list of {old[0]} is not valid at this time" if old else ""

    def next_end(self) -> tuple[datetime, timedelta]:
        """Return when the first of the lists expires, and for how long that list is valid in all."""
        first = min(self._all(), key=lambda each: each.ends)
        return first.ends, first.ends - first.begins

    def _all(self) -> Iterator[_List]:
        for lists in self._lists.values():
            yield from lists

    def _list_of(self, certificate: x509.Certificate) -> _List | None:
        """Return the list of the authority that issued a certificate."""
        key = certificate.fingerprint(SHA256())
        if key in self._issuers:
            self._issuers.move_to_end(key)
            return self._issuers[key]
        candidates = self._lists.get(certificate.issuer, ())
        found = next((each for each in candidates if _has_issued(each.authority, certificate)), None)
        self._issuers[key] = found
        if len(self._issuers) > _CACHE_SIZE:
            self._issuers.popitem(last=False)
        return found


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _read(pem: bytes, authorities: Sequence[x509.Certificate]) -> Mapping[x509.Name, Sequence[_List]]:
    """Return the lists of each authority by its name: one for each of its keys."""
    if len(pem) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE >> 20} MiB")
    blocks = _BLOCK.findall(pem)
    if not blocks:
        raise ValueError("it has no revocation list as PEM")
    parts: dict[tuple[bytes, bytes], _List] = {}
    for block in blocks:
        crl = x509.load_pem_x509_crl(block)
        part, found = _scope(crl), _verified(crl, authorities)
        key = (found.authority.fingerprint(SHA256()), part)
        if key not in parts or found.begins > parts[key].begins:
            parts[key] = found
    by_authority: dict[bytes, _List] = {}
    for (authority, _), each in parts.items():
        known = by_authority.get(authority)
        by_authority[authority] = each if known is None else _joined(known, each)
    lists: dict[x509.Name, list[_List]] = {}
    for each in by_authority.values():
        lists.setdefault(each.authority.subject, []).append(each)
    return lists


def _joined(one: _List, other: _List) -> _List:
    """Return two parts of a list as one, which is valid while both are."""
    begins, ends = max(one.begins, other.begins), min(one.ends, other.ends)
    return replace(one, begins=begins, ends=ends, serials=one.serials | other.serials)


def _verified(crl: x509.CertificateRevocationList, authorities: Sequence[x509.Certificate]) -> _List:
    name = crl.issuer.rfc4514_string()
    issuers = [each for each in authorities if each.subject == crl.issuer]
    if not issuers:
        raise ValueError(f"it has the list of {name}, which is not in server.client_ca_file")
    authority = next((each for each in issuers if _has_signed(each, crl)), None)
    if authority is None:
        raise ValueError(f"the list of {name} is not signed by this authority")
    if crl.next_update_utc is None:
        raise ValueError(f"the list of {name} has no nextUpdate")
    serials = frozenset(each.serial_number for each in crl)
    return _List(authority, crl.last_update_utc, crl.next_update_utc, serials)


def _has_signed(authority: x509.Certificate, crl: x509.CertificateRevocationList) -> bool:
    try:
        return crl.is_signature_valid(authority.public_key())  # type: ignore[arg-type]  # another key is a TypeError
    except (ValueError, TypeError, InvalidSignature):
        return False


def _scope(crl: x509.CertificateRevocationList) -> bytes:
    """Return the distribution point of a list; empty if it has all. Raise ValueError for a list of another sort."""
    name, scope = crl.issuer.rfc4514_string(), b""
    for extension in crl.extensions:
        if extension.oid == ExtensionOID.DELTA_CRL_INDICATOR:
            raise ValueError(f"the list of {name} is a delta: the complete list is needed")
        value = extension.value
        if isinstance(value, x509.IssuingDistributionPoint):
            is_partial = value.only_contains_ca_certs or value.only_contains_attribute_certs or value.only_some_reasons
            if is_partial or value.indirect_crl:
                raise ValueError(f"the list of {name} does not have all client certificates of this authority")
            scope = value.public_bytes()
        elif extension.critical:
            raise ValueError(f"the list of {name} has the critical extension {extension.oid.dotted_string}")
    return scope
