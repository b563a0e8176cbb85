"""Authenticators in software: an app with one-time codes, and a key for WebAuthn as a browser would use it."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from fido2.cose import ES256
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

from remuda.kernel.encoding import from_base64url, to_base64url

ORIGIN = "https://remuda.test"
FLAG = AuthenticatorData.FLAG


def app_code(key: str, now: datetime, *, steps: int = 0) -> str:
    """Return the code that an app with this key shows, or showed some steps ago."""
    totp = TOTP(base64.b32decode(key.replace(" ", "")), 6, SHA1(), 30)
    return totp.generate(now.timestamp() + 30 * steps).decode()


@dataclass
class SecurityKey:
    """Key with one credential, which counts its signatures unless `counts` is false."""

    origin: str = ORIGIN
    rp_id: str = "remuda.test"
    counts: bool = True
    count: int = 0
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = b"credential-of-a-security-key"

    def create(self, options: dict[str, Any], **more: Any) -> str:
        """Return what a browser sends after `navigator.credentials.create` with these options."""
        public = ES256.from_cryptography_key(self.key.public_key())  # type: ignore[no-untyped-call]  # as the library has it
        credential = AttestedCredentialData.create(bytes(16), self.credential_id, public)
        data = AuthenticatorData.create(self._rp_id_hash(), FLAG.UP | FLAG.AT, self.count, credential)
        response = {
            "clientDataJSON": to_base64url(self._client_data("webauthn.create", options, **more)),
            "attestationObject": to_base64url(bytes(AttestationObject.create("none", data, {}))),
            "transports": ["usb"],
        }
        return json.dumps({"rawId": to_base64url(self.credential_id), "response": response})

    def get(self, options: dict[str, Any], *, flags: AuthenticatorData.FLAG = FLAG.UP, **more: Any) -> str:
        """Return what a browser sends after `navigator.credentials.get` with these options."""
        self.count += self.counts
        data = AuthenticatorData.create(self._rp_id_hash(), flags, self.count)
        client_data = self._client_data("webauthn.get", options, **more)
        signature = self.key.sign(bytes(data) + client_data.hash, ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": to_base64url(client_data),
            "authenticatorData": to_base64url(bytes(data)),
            "signature": to_base64url(signature),
        }
        return json.dumps({"rawId": to_base64url(self.credential_id), "response": response})

    def _client_data(self, kind: str, options: dict[str, Any], **more: Any) -> CollectedClientData:
        given = {"type": kind, "challenge": from_base64url(options["challenge"]), "origin": self.origin, **more}
        return CollectedClientData.create(**given)

    def _rp_id_hash(self) -> bytes:

        return hashlib.sha256(self.rp_id.encode()).digest()
