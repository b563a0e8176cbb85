"""Signed assertions: how a service or a client proves who it is with a key of its own (RFC 7523).

One says who it is from (`iss` and `sub`), is for us (`aud`), ends within five minutes, and counts once: its `jti` is
remembered until long after its end, in the store, so that no other process takes it either. The algorithms follow from
the key that we have for the sender, never from what was sent.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import deserialize_compact

from remuda.identity.kinds.oauth import OAuth2Client, UsedAssertion, UsedAssertionSpec
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jws import LONGEST
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel import encoding as base64url
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, OAuthRefusal
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Metadata

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
"""What `client_assertion_type` has to be."""

_LONGEST_LIFE = timedelta(minutes=5)
_LEEWAY = timedelta(seconds=5)
_LONGEST_ID = 255
_PARTS = 3
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_SHORTEST_RSA = 2048

ALGORITHMS = (*_CURVES.values(), *_RSA, "Ed25519")
"""Every algorithm that a key of some sender's can be for."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A sender's key, and what it can verify."""

    key: Key
    algorithms: tuple[str, ...]


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"x5t256": "x5t#S256"}):
    alg: str
    typ: str = ""
    kid: str = ""
    x5t: str = ""
    x5t256: str = ""


class _Said(msgspec.Struct, frozen=True):
    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    jti: str
    iat: float | None = None
    nbf: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertions:
    """Checks them."""

    store: Store
    clock: Clock
    settings: IdentitySettings

    async def prove(self, assertion: Secret, assertion_type: str) -> str:
        """Return who proves to be itself, a service or a client by its id, or raise OAuthRefusal. It counts once."""
        if assertion_type != ASSERTION_TYPE:
            raise OAuthRefusal("invalid_request", f"client_assertion_type is not supported: use {ASSERTION_TYPE}")
        token = assertion.reveal()
        claimed = _unverified(token)
        key = await self._key_of(claimed.sub) if claimed is not None else None
        if claimed is None or key is None:
            raise _refused()
        said = _verified(token, key)
        if said is None or said.iss != said.sub or not self._is_for_us(said) or not self._is_timely(said):
            raise _refused()
        await self._use(said)
        return said.sub

    async def _key_of(self, sender: str) -> PublicKey | None:
        account = self.settings.system_accounts.get(sender)
        if account is not None:
            return load_public_key(account.public_key) if account.public_key else None
        client = await find(self.store, OAuth2Client, sender, marked=False)
        return load_public_key(client.spec.public_key) if client is not None and client.spec.public_key else None

    def _is_for_us(self, said: _Said) -> bool:
        issuer = self.settings.issuer
        audiences = (said.aud,) if isinstance(said.aud, str) else said.aud
        return issuer in audiences or f"{issuer}/oauth2/v2/token" in audiences

    def _is_timely(self, said: _Said) -> bool:
        now = self.clock.now().timestamp()
        begins = max(said.iat or 0, said.nbf or 0)
        ends_in_time = now < said.exp <= now + (_LONGEST_LIFE + _LEEWAY).total_seconds()
        return ends_in_time and begins <= now + _LEEWAY.total_seconds() and 0 < len(said.jti) <= _LONGEST_ID

    async def _use(self, said: _Said) -> None:
        expires = datetime.fromtimestamp(said.exp, UTC)
        name = token_hash(msgspec.json.encode([said.sub, said.jti]).decode())
        used = UsedAssertion(metadata=Metadata(name=name), spec=UsedAssertionSpec(expires=expires))
        try:
            await self.store.create(used)
        except AlreadyExists:
            raise _refused() from None


def load_public_key(pem: str) -> PublicKey:
    """Return a public key that can verify assertions, or raise Invalid."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return PublicKey(ECKey.import_key(pem), (_CURVES[key.curve.name],))
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _SHORTEST_RSA:
        return PublicKey(RSAKey.import_key(pem), _RSA)
    if isinstance(key, ed25519.Ed25519PublicKey):
        return PublicKey(OKPKey.import_key(pem), ("Ed25519", "EdDSA"))
    raise Invalid(
        "spec.publicKey",
        "is no public key that we can use",
        remedy="send the PEM of an EC, Ed25519 or 2048-bit RSA key",
    )


def _unverified(token: str) -> _Said | None:
    """Return what an assertion says, to know whose key it must hold against."""
    parts = token.split(".") if len(token) <= LONGEST else []
    if len(parts) != _PARTS:
        return None
    try:
        msgspec.json.decode(base64url.decode(parts[0]), type=_Header)
        return msgspec.json.decode(base64url.decode(parts[1]), type=_Said)
    except (ValueError, RecursionError):
        return None


def _verified(token: str, key: PublicKey) -> _Said | None:
    try:
        payload = deserialize_compact(token, key.key, key.algorithms).payload
        return msgspec.json.decode(payload or b"", type=_Said)
    except (JoseError, ValueError, RecursionError):
        return None


def _refused() -> OAuthRefusal:
    return OAuthRefusal("access_denied", "client_assertion does not hold: sign a new one with the registered key", 401)
