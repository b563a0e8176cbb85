"""How services prove who they are in tests: X.509 certificates as a proxy passes them on, and signed assertions."""

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import ECKey

from remuda.identity.settings import SystemAccount
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness
from tests.kit.certificates import authority

YEAR = timedelta(days=365)

CI = "ci"
"""The service that has a key, and so no certificate."""
ROLES = {
    "unikorn-region": "region-service",
    "unikorn-kubernetes": "kubernetes-service",
    "unikorn-compute": "compute-service",
    "uni-storage": "storage-service",
}
"""The services that have certificates, and the role of each."""


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def system_accounts() -> Mapping[str, SystemAccount]:
    """Return the services: those with certificates, and one with a key."""
    certified = {name: SystemAccount(role=role) for name, role in ROLES.items()}
    return {**certified, CI: SystemAccount(role="platform-reader", public_key=_public())}


def environment(directory: Path) -> Mapping[str, str]:
    """Return the variables of a process that accepts the services' certificates from a proxy on this machine."""
    authorities = directory / "authorities.pem"
    authorities.write_text(authority().pem)
    accounts = ", ".join(f'{name} = {{ role = "{role}" }}' for name, role in ROLES.items())
    return {
        "REMUDA_SERVER__CERTIFICATE_PROXIES": '["127.0.0.1/32"]',
        "REMUDA_SERVER__CLIENT_CA_FILE": str(authorities),
        "REMUDA_IDENTITY__SYSTEM_ACCOUNTS": f"{{ {accounts} }}",
    }


def assertion(*, audience: str, now: datetime) -> str:
    """Return an assertion that the service with a key has signed, good for one token."""
    said = {
        "iss": CI,
        "sub": CI,
        "aud": audience,
        "exp": int(now.timestamp()) + 60,
        "jti": random_id(SystemRandomness()),
    }
    return jwt.encode({"alg": "ES256"}, said, ECKey.import_key(_key()))


def certificate(service: str, now: datetime, *, begins: timedelta = -YEAR, ends: timedelta = YEAR) -> str:
    """Return a service's certificate as PEM."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return authority().issue(service, begins=midnight + begins, ends=midnight + ends).pem


def certified(
    service: str, claim: Mapping[str, Any], *, now: datetime, impersonates: bool = False
) -> Mapping[str, str]:
    """Return the headers of a service's request, as the proxy passes them on that has verified its certificate."""
    return {
        "ssl-client-cert": quote(certificate(service, now), safe=""),
        "ssl-client-verify": "SUCCESS",
        "x-principal": principal(claim),
        **({"x-impersonate": "true"} if impersonates else {}),
    }


def principal(claim: Mapping[str, Any]) -> str:
    """Return for whom a service acts, as it says so in `X-Principal`."""
    return base64.urlsafe_b64encode(msgspec.json.encode(claim)).decode().rstrip("=")


def _public() -> str:
    return _key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
