"""Secrets made fit for storing.

A sealed text is ``sealed:v1:<key id>:<nonce and ciphertext>``. The cipher is AES-256-GCM, and the context, which says
where the secret belongs, is authenticated with it: a sealed text moved elsewhere does not open. The store's context is
the object, its kind and name: between the fields of one object a sealed text can be moved.

The nonce is not drawn but computed, as a keyed hash of context and secret. So the same secret in the same place under
the same key always seals to the same text, and writing it again changes nothing: the store's rule that a write without
a change is no write holds for secrets too. The price is that whoever compares two copies of a store can see that a
secret did not change between them; like every seal without padding it also shows the secret's length. Two different
secrets share a nonce only if 96 bits of the hash collide.

A keyring has one current key, which seals, and the previous ones, which only open. Sealing always seals, even a text
that looks sealed already.
"""

import hmac
import re
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from remuda.kernel import base64url
from remuda.kernel.errors import Invalid, Unsealable
from remuda.kernel.secrets import Secret

_KEY_ID = re.compile(r"[a-z0-9-]{1,32}")
_SEALED = re.compile(r"sealed:v1:(?P<key_id>[a-z0-9-]{1,32}):(?P<payload>[A-Za-z0-9_-]+)")
_KEY_BYTES = 32
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A named key; its material never shows in a repr."""

    id: str
    material: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not _KEY_ID.fullmatch(self.id):
            raise Invalid("key id", "is malformed", remedy="use 1 to 32 lower-case letters, digits and dashes")
        if len(self.material) != _KEY_BYTES:
            raise Invalid(f"key {self.id}", "has the wrong length", remedy=f"use {_KEY_BYTES} random bytes")


@dataclass(frozen=True, slots=True)
class Keyring:
    """The key that seals, and the earlier ones that still open."""

    current: SealingKey
    previous: tuple[SealingKey, ...] = ()

    def __post_init__(self) -> None:
        if len({key.id for key in self.keys}) != len(self.keys):
            raise Invalid("keyring", "has two keys with one id", remedy="give every key an id of its own")

    @property
    def keys(self) -> tuple[SealingKey, ...]:
        """All keys, the current one first."""
        return (self.current, *self.previous)


class Sealer:
    """Seals with the current key of a keyring, and opens with any of its keys."""

    def __init__(self, keyring: Keyring) -> None:
        self._current_id = keyring.current.id
        self._ciphers = {key.id: _Cipher(key) for key in keyring.keys}

    def seal(self, secret: Secret, *, context: str) -> str:
        """Return the sealed text of the secret, which opens only in this context."""
        if "\0" in context:
            # It ends the context in the nonce's hash: inside, it would let two secrets share a nonce.
            raise Invalid("context", "holds a NUL character", remedy="name the place of the secret in plain text")
        payload = self._ciphers[self._current_id].encrypt(_to_bytes(secret.reveal()), context=_to_bytes(context))
        return f"sealed:v1:{self._current_id}:{base64url.encode(payload)}"

    def open(self, sealed: str, *, context: str) -> Secret:
        """Return the secret, or raise Unsealable if key, context or text are not those of the sealing."""
        parts = _SEALED.fullmatch(sealed)
        if parts is None:
            raise Unsealable("unknown")
        cipher = self._ciphers.get(parts["key_id"])
        if cipher is None:
            raise Unsealable(parts["key_id"])
        try:
            plain = cipher.decrypt(base64url.decode(parts["payload"]), context=_to_bytes(context))
        except (InvalidTag, ValueError):
            raise Unsealable(parts["key_id"]) from None
        return Secret(plain.decode("utf-8", "surrogatepass"))


class _Cipher:
    """One key at work, split into a key that encrypts and a key that makes nonces."""

    def __init__(self, key: SealingKey) -> None:
        self._aead = AESGCM(_derive(key.material, purpose=b"remuda sealing v1 encryption"))
        self._nonce_key = _derive(key.material, purpose=b"remuda sealing v1 nonce")

    def encrypt(self, plain: bytes, *, context: bytes) -> bytes:
        nonce = hmac.digest(self._nonce_key, context + b"\0" + plain, "sha256")[:_NONCE_BYTES]
        return nonce + self._aead.encrypt(nonce, plain, context)

    def decrypt(self, payload: bytes, *, context: bytes) -> bytes:
        return self._aead.decrypt(payload[:_NONCE_BYTES], payload[_NONCE_BYTES:], context)


def _derive(material: bytes, *, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=purpose).derive(material)


def _to_bytes(text: str) -> bytes:
    # A lone surrogate must not raise here: the encoding error would carry the whole secret.
    return text.encode("utf-8", "surrogatepass")
