"""WebAuthn: options for the browser, and verification of its responses.

The relying party is the host of our public URL. Browsers require a name, reached over https or on this machine
(`localhost`): at an IP address, or in clear text, there are no passkeys. We ask for no attestation, since any
authenticator will do, and prefer user verification, since the password was already asked for.

A response is verified by `fido2`; the signature counter and the single use of a challenge by `Authenticators`, which
stores them.
"""

import ipaddress
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from remuda.identity.kinds.factors import Passkey
from remuda.identity.kinds.users import User
from remuda.kernel.encoding import from_base64url, to_base64url

if TYPE_CHECKING:
    from fido2.cose import CoseKey
    from fido2.server import Fido2Server
    from fido2.webauthn import AuthenticatorData

_ALGORITHMS = (-7, -8, -257)
"""ES256, EdDSA and RS256, which all authenticators have between them."""
_TIMEOUT_MS = 300_000
_NAME = "Remuda"
_MAX_ID_BYTES = 1023
_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    AssertionError,
    NotImplementedError,
    RecursionError,
    OverflowError,
    struct.error,
    UnsupportedAlgorithm,
)
"""Errors of the parsers of CBOR and COSE."""

_Text = Annotated[str, msgspec.Meta(max_length=16_384)]


class _Attestation(msgspec.Struct, frozen=True):
    client_data: _Text = msgspec.field(name="clientDataJSON")
    attestation_object: _Text = msgspec.field(name="attestationObject")
    transports: tuple[Annotated[str, msgspec.Meta(max_length=32)], ...] = ()


class _Assertion(msgspec.Struct, frozen=True):
    client_data: _Text = msgspec.field(name="clientDataJSON")
    authenticator_data: _Text = msgspec.field(name="authenticatorData")
    signature: _Text


class _Registration(msgspec.Struct, frozen=True):
    raw_id: _Text = msgspec.field(name="rawId")
    response: _Attestation


class _Authentication(msgspec.Struct, frozen=True):
    raw_id: _Text = msgspec.field(name="rawId")
    response: _Assertion


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCredential:
    """Credential that an authenticator created."""

    data: bytes
    """Attested credential data."""
    sign_count: int
    transports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeyUse:
    """Valid signature of a passkey over a challenge."""

    passkey: str
    """Our id of it."""
    sign_count: int


class RelyingParty:
    """Relying party of a public URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.id = parts.hostname or ""
        self._origin = f"{parts.scheme}://{parts.netloc}"
        is_local = self.id == "localhost" or self.id.endswith(".localhost")
        self.is_usable = not _is_address(self.id) and bool(self.id) and (parts.scheme == "https" or is_local)
        """Whether browsers offer passkeys at this URL."""

    def creation_options(self, user: User, challenge: str, existing: Sequence[Passkey]) -> Mapping[str, Any]:
        """Return the options of `navigator.credentials.create`, with bytes in base64url."""
        return {
            "rp": {"id": self.id, "name": _NAME},
            "user": {
                "id": to_base64url(user.name.encode()),
                "name": user.spec.subject,
                "displayName": user.spec.subject,
            },
            "challenge": challenge,
            "pubKeyCredParams": [{"type": "public-key", "alg": each} for each in _ALGORITHMS],
            "timeout": _TIMEOUT_MS,
            "excludeCredentials": _descriptors(existing),
            "authenticatorSelection": {"residentKey": "preferred", "userVerification": "preferred"},
            "attestation": "none",
        }

    def request_options(self, challenge: str, passkeys: Sequence[Passkey]) -> Mapping[str, Any]:
        """Return the options of `navigator.credentials.get`, with bytes in base64url."""
        return {
            "challenge": challenge,
            "timeout": _TIMEOUT_MS,
            "rpId": self.id,
            "allowCredentials": _descriptors(passkeys),
            "userVerification": "preferred",
        }

    def new_credential(self, response: str, challenge: str) -> NewCredential | None:
        """Return the credential of a browser's response to a challenge, or None if it is not valid."""
        try:
            sent = msgspec.json.decode(response, type=_Registration)
            data = self._registered(sent, challenge)
        except _MALFORMED:
            return None
        credential = data.credential_data
        if credential is None or len(credential.credential_id) > _MAX_ID_BYTES:
            return None
        if credential.public_key.ALGORITHM not in _ALGORITHMS:
            return None
        return NewCredential(
            data=bytes(credential), sign_count=data.counter, transports=tuple(sent.response.transports[:8])
        )

    def use(self, response: str, challenge: str, passkeys: Sequence[Passkey]) -> PasskeyUse | None:
        """Return the use of a passkey in a browser's response to a challenge, or None if it is not valid."""
        try:
            return self._used(msgspec.json.decode(response, type=_Authentication), challenge, passkeys)
        except _MALFORMED:
            return None

    def _registered(self, sent: _Registration, challenge: str) -> "AuthenticatorData":
        from fido2.webauthn import (  # noqa: PLC0415  it reads a long list of domains, and few logins need it
            AttestationObject,
            AuthenticatorAttestationResponse,
            CollectedClientData,
            RegistrationResponse,
        )

        raw = from_base64url(sent.response.attestation_object)
        _check_attestation(raw)
        response = AuthenticatorAttestationResponse(
            client_data=CollectedClientData(from_base64url(sent.response.client_data)),
            attestation_object=AttestationObject(raw),
        )
        registration = RegistrationResponse(raw_id=from_base64url(sent.raw_id), response=response)
        data = self._server().register_complete(_state(challenge), registration)
        if data.credential_data is not None:
            _check_key(data.credential_data.public_key)
        return data

    def _used(self, sent: _Authentication, challenge: str, passkeys: Sequence[Passkey]) -> PasskeyUse:
        from fido2.webauthn import (  # noqa: PLC0415  same
            AttestedCredentialData,
            AuthenticationResponse,
            AuthenticatorAssertionResponse,
            AuthenticatorData,
            CollectedClientData,
        )

        data = AuthenticatorData(from_base64url(sent.response.authenticator_data))
        response = AuthenticatorAssertionResponse(
            client_data=CollectedClientData(from_base64url(sent.response.client_data)),
            authenticator_data=data,
            signature=from_base64url(sent.response.signature),
        )
        authentication = AuthenticationResponse(raw_id=from_base64url(sent.raw_id), response=response)
        known = [AttestedCredentialData(from_base64url(each.credential)) for each in passkeys]
        credential = self._server().authenticate_complete(_state(challenge), known, authentication)
        used = next(each for each, candidate in zip(passkeys, known, strict=True) if candidate is credential)
        return PasskeyUse(passkey=used.id, sign_count=data.counter)

    def _server(self) -> "Fido2Server":
        from fido2.server import Fido2Server  # noqa: PLC0415  same
        from fido2.webauthn import PublicKeyCredentialRpEntity  # noqa: PLC0415  same

        return Fido2Server(PublicKeyCredentialRpEntity(id=self.id, name=_NAME), verify_origin=self._origin.__eq__)


def _check_attestation(raw: bytes) -> None:
    """Raise TypeError unless the authenticator data is a byte string: of a number the library makes as many bytes."""
    from fido2 import cbor  # noqa: PLC0415  same

    content = cbor.decode(raw)
    if not isinstance(content, Mapping) or not isinstance(content.get("authData"), bytes):
        raise TypeError("the attestation has no authenticator data")


def _check_key(key: "CoseKey") -> None:
    """Raise an error of `_MALFORMED` if a key cannot verify anything, such as a point beside its curve."""
    with suppress(InvalidSignature):
        key.verify(b"", bytes(64))


def _state(challenge: str) -> Mapping[str, Any]:
    return {"challenge": challenge, "user_verification": None}


def _descriptors(passkeys: Sequence[Passkey]) -> Sequence[Mapping[str, Any]]:
    return [
        {"type": "public-key", "id": to_base64url(_credential_id(each)), "transports": list(each.transports)}
        for each in passkeys
    ]


def _credential_id(passkey: Passkey) -> bytes:
    """Return the credential id: it follows the model of the authenticator (16 bytes) and its own length."""
    data = from_base64url(passkey.credential)
    (length,) = struct.unpack_from(">H", data, 16)
    return data[18 : 18 + length]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
