"""Client certificates: whose name is in one, and when it holds.

That it was signed by somebody we trust has been verified by the proxy that passes it on.
"""

from dataclasses import dataclass
from datetime import datetime

from cryptography.x509 import load_pem_x509_certificate
from cryptography.x509.oid import NameOID

from remuda.kernel.errors import Unauthenticated

_NOT_VALID = "certificate is not valid"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What matters of one."""

    name: str
    """Its common name."""
    begins: datetime
    ends: datetime

    def check(self, now: datetime) -> None:
        """Raise Unauthenticated unless it holds now."""
        if not self.begins <= now < self.ends:
            raise Unauthenticated("certificate has expired or is not yet valid")


def read_certificate(pem: str) -> Certificate:
    """Return what a certificate says, or raise Unauthenticated if it is none, or names nobody or several."""
    try:
        certificate = load_pem_x509_certificate(pem.encode())
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except ValueError:
        raise Unauthenticated(_NOT_VALID) from None
    if len(names) != 1 or not isinstance(names[0].value, str):
        raise Unauthenticated(_NOT_VALID)
    return Certificate(names[0].value, begins, ends)
